"""What must be true once nothing happens any more."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from aiki_push.domain.log_records import Received, TaskCompleted
from aiki_push.domain.run_states import PARKED
from aiki_push.domain.values import Json, RunId, StoredValue
from tests.simulation.endings import FAILED, fits, texts_in
from tests.simulation.stored import Stored
from tests.simulation.workflows import SCENARIOS

Content: TypeAlias = Callable[[RunId, StoredValue | None], Json]
"""A value of a run, wherever it is."""


def is_quiet(stored: Stored) -> bool:
    """Whether nothing will happen to the run by itself."""
    return stored.run.due_at is None and stored.run.claim is None


def faults_of_the_end(stored: Mapping[RunId, Stored], content: Content) -> Iterator[str]:
    """What is wrong with how the runs ended, or wait for ever; and with how many there are: a reference is one run."""
    named = Counter((one.run.workflow, one.run.reference) for one in stored.values() if one.run.reference)
    yield from (f"{count} runs have the reference {reference}" for reference, count in named.items() if count > 1)
    for run_id, one in stored.items():
        faults = _faults_of_ending(one, content) if one.has_ended else _faults_of_waiting(one, stored)
        yield from (f"run {run_id} of {one.run.workflow} is {one.run.state}: {fault}" for fault in faults)


def _faults_of_ending(stored: Stored, content: Content) -> Iterator[str]:
    status = stored.run.state.status
    if status == "cancelled":
        return
    output = content(stored.run.id, stored.transitions[-1].output) if status == "completed" else FAILED
    if not fits(SCENARIOS[stored.run.workflow].ending, output):
        yield f"its output is {output}"
    if made_up := set(texts_in(output)) - set(_known(stored, content)):
        yield f"its output has what it was never given: {made_up}"


def _known(stored: Stored, content: Content) -> Iterator[str]:
    """What the log says that the workflow was given."""
    for record in stored.records:
        if isinstance(record, TaskCompleted):
            yield from texts_in(content(stored.run.id, record.output))
        elif isinstance(record, Received):
            message = stored.messages[record.seq - 1]
            yield from texts_in(content(stored.run.id, message.data))
            yield from texts_in(content(stored.run.id, message.ending.output if message.ending else None))


def _faults_of_waiting(stored: Stored, others: Mapping[RunId, Stored]) -> Iterator[str]:
    """A run may be paused, or wait for an event that nobody sends, or for a child that waits in its turn."""
    run = stored.run
    if run.state.status not in PARKED | {"paused"}:
        yield "it stands still"
    for wait in run.waits:
        if wait.kind == "child" and run.state.status in PARKED and others[RunId(wait.key)].has_ended:
            yield f"it waits for the end of {wait.key}, which has ended"
