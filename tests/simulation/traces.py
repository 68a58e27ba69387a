"""What workflows saw, in order: each replay must see again what is recorded, whatever an executor saw that was lost with it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiki_push.domain.values import RunId

LENGTH = 40
"""So many characters are enough to tell the data of events from each other."""


@dataclass(slots=True)
class Traces:
    """What each segment's workflow saw, by claim; and what of it the log holds, by run and attempt of the workflow.

    Whatever a workflow was given before its executor sent a checkpoint is in that checkpoint, or in the log already. So what it
    saw until then can be counted on from the commit on. The rest may be seen otherwise by the next executor.
    """

    report: Callable[[str], None]
    _seen: dict[str, list[str]] = field(default_factory=dict)
    _sent: dict[str, tuple[str, int]] = field(default_factory=dict)
    _lasting: dict[tuple[RunId, int], list[str]] = field(default_factory=dict)
    _given: dict[str, list[str]] = field(default_factory=dict)

    def claimed(self, run_id: RunId, attempt: int, claim_id: str) -> None:
        """The claim was committed: its owner sees what lasts, and then goes on."""
        self._given[claim_id] = self._lasting.get((run_id, attempt), [])

    def saw(self, claim_id: str, what: str) -> None:
        """The workflow that is executed under this claim sees something."""
        seen = self._seen.setdefault(claim_id, [])
        given = self._given[claim_id]
        if len(seen) < len(given) and given[len(seen)] != what:
            self.report(f"under claim {claim_id} the workflow sees {what} where it saw {given[len(seen)]}, after {seen}")
        seen.append(what)

    def sends(self, claim_id: str, checkpoint_id: str) -> bool:
        """The owner sends a checkpoint; whether it does so for the first time."""
        is_new = checkpoint_id not in self._sent
        self._sent.setdefault(checkpoint_id, (claim_id, len(self._seen.get(claim_id, []))))
        return is_new

    def committed(self, run_id: RunId, attempt: int, checkpoint_id: str, received: Iterable[str] = ()) -> None:
        """The checkpoint was committed. It says that the workflow `received` events with these data."""
        claim_id, length = self._sent[checkpoint_id]
        seen, given = self._seen.get(claim_id, [])[:length], self._given[claim_id]
        if len(seen) < len(given):
            self.report(f"claim {claim_id} writes before its workflow saw {given[len(seen) :]} again")
        self._lasting[run_id, attempt] = seen
        for data in received:
            if not any(what.startswith(data[:LENGTH]) for what in seen):
                self.report(f"claim {claim_id} writes that its workflow received {data[:LENGTH]}, and it saw {seen}")
