"""Ports that remember what they were asked, and do nothing else."""

from collections.abc import Callable, Sequence

from aiki_push.ports.publisher import Declined, Outcome, ReadyRun
from aiki_push.ports.wakeups import Hint


class RecordingWakeups:
    """Wakeups that keep every hint in `hints`, oldest first, and deliver none."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []

    def send(self, *hints: Hint) -> None:
        """Keep `hints`."""
        self.hints += hints


class RecordingPublisher:
    """A Publisher that keeps every offer in `offered`, oldest first, and answers each by `answer`."""

    def __init__(self, answer: Callable[[ReadyRun], Outcome] = lambda _: Declined()) -> None:
        self.offered: list[ReadyRun] = []
        self.answer = answer

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """Keep `runs`; one answer for each."""
        self.offered += runs
        return [self.answer(run) for run in runs]
