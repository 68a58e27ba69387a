"""What belongs into one transaction, so that nobody ever sees one half of it: the invariants of a commit of several runs."""

from collections import Counter
from collections.abc import Iterator, Mapping

from aiki_push.domain.follow_ups import cancellation_of_children, children_in
from aiki_push.domain.inbox import RunEnding
from aiki_push.domain.log_records import CallEnded, Transition
from aiki_push.domain.messages import ending_of
from aiki_push.domain.run_states import PARKED, Cancelled, Queued, QueuedReason
from aiki_push.domain.values import PayloadReference, RunId
from tests.simulation.commits import Commit, RunChange
from tests.simulation.rules import faults_between, faults_of
from tests.simulation.stored import Stored, transitions_in

_REASONS: Mapping[QueuedReason, set[str]] = {
    "wakeup": {"timer due", "sleep due"},
    "wakeup_early": {"told of wakeup"},
    "event": {"told of event"},
    "event_wait_timeout": {"event due"},
    "child_workflow": {"told of child"},
    "child_workflow_wait_timeout": {"child due"},
    "task_retry": {"task_retry due"},
}
"""What a parked run is woken for, and what must have happened."""


def faults_in(commit: Commit, stored: Mapping[RunId, Stored]) -> Iterator[tuple[RunId, str]]:
    """What is wrong with `commit`, and with which run; `stored` is all that is stored after it."""
    for run_id, change in commit.changes.items():
        faults = [
            *faults_of(change.after),
            *(faults_between(change.before, change.after) if change.before else ()),
            *_faults_of_birth(run_id, change, commit),
            *_faults_of_calls(run_id, change, commit, stored),
            *_faults_of_events(run_id, change, commit),
            *_faults_of_ends(run_id, change, stored),
            *_faults_of_telling(run_id, change, commit, stored),
            *_faults_of_operations(change),
            *_faults_of_reasons(change),
            *_faults_of_cascade(change, stored),
        ]
        yield from ((run_id, fault) for fault in faults)


def _faults_of_birth(run_id: RunId, change: RunChange, commit: Commit) -> Iterator[str]:
    """A child is created in the transaction of the slot that says so."""
    parent = change.after.run.parent
    if change.before is None and parent is not None:
        calls = commit.changes[parent].calls if parent in commit.changes else []
        if not any(call.result == "created" and call.run_id == run_id for call in calls):
            yield f"the run is a child of {parent}, whose log does not say so"


def _faults_of_calls(run_id: RunId, change: RunChange, commit: Commit, stored: Mapping[RunId, Stored]) -> Iterator[str]:
    """A call that is recorded has had its effect, whose run will be told of the end."""
    born = {one for one, run in commit.created if run.parent == run_id}
    for call in change.calls:
        if call.result == "created" and call.run_id not in born:
            yield f"child {call.run_id} is recorded as created, and was not"
        elif call.kind == "child" and call.error is None and not _will_be_told(run_id, change, call.run_id, stored):
            yield f"nobody will tell the run of the end of {call.run_id}"
        elif call.result in ("done", "requested") and call.run_id not in commit.changes:
            yield f"call {call.kind} on {call.run_id} is recorded as {call.result}, and did nothing"


def _will_be_told(run_id: RunId, change: RunChange, child: RunId, stored: Mapping[RunId, Stored]) -> bool:
    is_told = any((message.kind, message.key) == ("child", child) for message in change.messages)
    return is_told or run_id in stored[child].watchers


def _faults_of_events(run_id: RunId, change: RunChange, commit: Commit) -> Iterator[str]:
    """An event comes with the reference that keeps it from coming again, and with a text of its own."""
    came = Counter(message.key for message in change.messages if message.kind == "event")
    sent = Counter({event: count for (target, event), count in commit.sent.items() if target == run_id})
    if sent != came:
        yield f"the events {dict(came)} came, and references of {dict(sent)} are remembered"
    data = Counter((message.key, str(message.data)) for message in change.after.messages if message.kind == "event")
    yield from (f"event {event} came {count} times with {text}" for (event, text), count in data.items() if count > 1)


def _faults_of_ends(run_id: RunId, change: RunChange, stored: Mapping[RunId, Stored]) -> Iterator[str]:
    """The message of a child's end says how it ended, and comes with the removal of the watcher, or with a link to the child."""
    linked = {call.run_id for call in change.calls if call.kind == "child" and call.result == "existing"}
    ends = [message for message in change.messages if message.kind == "child"]
    for message in ends:
        child = stored[RunId(message.key)]
        if not child.has_ended or not _is_same(message.ending, child):
            yield f"the run is told that {child.run.id} ended by {message.ending}, and it is {child.run.state}"
        if run_id in child.watchers and child.run.id not in linked:
            yield f"the run is told of the end of {child.run.id}, and will be told again"
    if ends:
        told = Counter(message.key for message in change.after.messages if message.kind == "child")
        links = Counter(one.run_id for one in change.after.records if isinstance(one, CallEnded) and one.kind == "child")
        yield from (f"the run is told {told[key]} times of the end of {key}" for key in told if told[key] > links[RunId(key)])


def _is_same(told: RunEnding | None, child: Stored) -> bool:
    """Whether this is how the child ended. A large output is copied to whoever is told."""
    ending = ending_of(child.run, child.transitions[-1])
    if told is not None and isinstance(told.output, PayloadReference) and isinstance(ending.output, PayloadReference):
        is_same_output = told.output.sha256 == ending.output.sha256
        return is_same_output and told == ending.model_copy(update={"output": told.output})
    return told == ending


def _faults_of_telling(run_id: RunId, change: RunChange, commit: Commit, stored: Mapping[RunId, Stored]) -> Iterator[str]:
    """A watcher is removed together with telling it, or where it has ended itself."""
    for watcher in change.untold:
        told = commit.changes[watcher].messages if watcher in commit.changes else ()
        is_told = any((message.kind, message.key) == ("child", run_id) for message in told)
        if not change.after.has_ended or not (is_told or stored[watcher].has_ended):
            yield f"run {watcher} is not told of the end, and never will be"


def _faults_of_operations(change: RunChange) -> Iterator[str]:
    """What only somebody outside, or another run, can decide comes with the operation's id, or was directed with it before."""
    directive = change.before.run.directive if change.before else None
    operations = len(change.new_operations) + (directive is not None)
    decided = [record for record in transitions_in(change.records) if _is_decided(record)]
    wakes = [message for message in change.messages if message.kind == "wakeup"]
    if len(decided) + len(wakes) > operations:
        yield f"{[str(record.state) for record in decided]} and {len(wakes)} wake-ups by {operations} operations"
    if change.new_operations and not (decided or wakes or change.after.run.directive):
        yield f"the operations {change.new_operations} are remembered, and did nothing"


def _faults_of_reasons(change: RunChange) -> Iterator[str]:
    """A parked run is woken by what it waits for."""
    for record in transitions_in(change.records):
        if change.before is None or record.origin not in PARKED or not isinstance(record.state, Queued):
            continue
        told = {message.kind for message in change.after.messages[change.before.run.seen_seq :]}
        due = {wait.kind for wait in change.before.run.waits if wait.deadline_at is not None and wait.deadline_at <= record.at}
        if not _REASONS.get(record.state.reason, set()) & (
            {f"told of {kind}" for kind in told} | {f"{kind} due" for kind in due}
        ):
            yield f"the run is woken for {record.state.reason}; it was told of {told}, and due are {due}"


def _is_decided(record: Transition) -> bool:
    return record.state.status in ("cancelled", "paused") or record.origin in ("paused", "stalled")


def _faults_of_cascade(change: RunChange, stored: Mapping[RunId, Stored]) -> Iterator[str]:
    """With a cancelled run its children end, and nobody else's."""
    after = change.after
    if after.run.state == Cancelled() and "cancel_children" not in after.run.duties:
        living = [child for child in children_in(after.records) if not stored[child].has_ended]
        if living:
            yield f"the run is cancelled, and nobody will end its children {living}"
    for operation_id in change.new_operations:
        for other_id, other in stored.items():
            if operation_id == cancellation_of_children(other.run) and other_id != after.run.parent:
                yield f"the run ends with {other_id}, whose child it is not"
