"""The invariants of what is stored of a run: of every look at it, and of every commit."""

from collections.abc import Iterator
from itertools import pairwise

from aiki_push.domain.log_records import AnyRecord, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, Queued, Stalled
from aiki_push.domain.run_transitions import LEGAL
from aiki_push.domain.waits import earliest_deadline
from tests.simulation.inbox_rules import faults_of_inbox, faults_of_timeouts
from tests.simulation.record_rules import faults_of_records
from tests.simulation.stored import Stored, transitions_in


def faults_of(stored: Stored) -> Iterator[str]:
    """What is wrong with a run, seen by itself."""
    records = stored.records
    yield from _faults_of_slots(stored)
    yield from _faults_of_times(stored.run)
    yield from _faults_of_fields(stored.run)
    yield from _faults_of_transitions(stored.run, transitions_in(records))
    yield from faults_of_records(records)
    yield from faults_of_inbox(stored, records)


def _faults_of_slots(stored: Stored) -> Iterator[str]:
    run, slots = stored.run, stored.slots
    if [slot.position for slot in slots] != list(range(len(slots))):
        yield f"the log has a gap: slots {[slot.position for slot in slots]}"
    if run.tail.position > len(slots):
        yield f"the log has {len(slots)} slots, and its tail is at {run.tail.position}"
    if any(earlier.revision > later.revision for earlier, later in pairwise(slots)):
        yield f"an older claim wrote after a newer one: revisions {[slot.revision for slot in slots]}"
    if stored.is_sealed:
        hiding = slots[run.tail.position].records[: len(run.tail.records)]
        claim_id = run.claim.claim_id if run.claim else None
        if any(slot.claim_id != claim_id or slot.revision != run.revision for slot in slots[run.tail.position :]):
            yield f"a slot from the tail's position {run.tail.position} on is not by the run's owner"
        elif hiding != run.tail.records:
            yield f"slot {run.tail.position} hides records of the tail"


def _faults_of_times(run: Run) -> Iterator[str]:
    """A run goes on by itself, or waits for somebody to decide or to tell it something."""
    status = run.state.status
    deadline = earliest_deadline(run.waits)
    has_ended = not LEGAL[status]
    waits_for_others = status in PARKED and deadline is None and any(wait.kind in ("event", "child") for wait in run.waits)
    if run.due_at is None and not (has_ended or status in ("stalled", "paused") or waits_for_others):
        yield f"the run is {status} and never due: nothing will ever wake it"
    if has_ended and (run.due_at is not None) != bool(run.duties):
        yield f"the run is {status} with the duties {run.duties} and due at {run.due_at}: looked at for ever, or never"
    if status in ("stalled", "paused") and run.due_at is not None:
        yield f"the run is {status} and due, though it waits for somebody's decision"
    if status in PARKED and deadline is not None and not run.advance_errors and (run.due_at is None or run.due_at > deadline):
        yield f"the run is due at {run.due_at} and sleeps past its deadline {deadline}"
    if status == "queued" and run.ready_at is None:
        yield "the run is queued and in no queue"


def _faults_of_fields(run: Run) -> Iterator[str]:
    """What a header has in one state, and loses when it is left."""
    status = run.state.status
    has_waits = bool(run.waits or run.seen_seq or run.open_child_waits)
    if (run.claim is not None) != (status == "running"):
        yield f"the run is {status} with claim {run.claim}"
    if run.directive is not None and status != "running":
        yield f"the run is {status} with directive {run.directive}, which nobody is there to obey"
    if (run.paused_from is not None) != (status == "paused"):
        yield f"the run is {status} and was paused from {run.paused_from}"
    if has_waits and status not in PARKED and status != "paused":
        yield f"the run is {status} and still waits for {run.waits}"
    if status in PARKED and not run.waits:
        yield f"the run is {status} and waits for nothing"
    if run.duties and LEGAL[status]:
        yield f"the run is {status} with duties {run.duties}, which are for runs that have ended"


def _faults_of_transitions(run: Run, transitions: list[Transition]) -> Iterator[str]:
    if [record.revision for record in transitions] != list(range(run.revision + 1)):
        yield f"the run is at revision {run.revision}; its log has {[record.revision for record in transitions]}"
    elif transitions[-1].state != run.state or transitions[-1].attempts != run.attempts:
        yield f"the run is {run.state} in attempt {run.attempts}; its log ends with {transitions[-1]}"
    if transitions[:1] and transitions[0].state.status not in ("scheduled", "queued"):
        yield f"the run began as {transitions[0].state.status}"
    for earlier, later in pairwise(transitions):
        if later.origin != earlier.state.status or not _is_legal(later):
            yield f"the log has the illegal transition from {earlier.state} to {later.state}"
    retried = sum(record.state == Queued(reason="retry") for record in transitions)
    if run.attempts != 1 + retried:
        yield f"the run is in attempt {run.attempts} after {retried} retries"


def _is_legal(record: Transition) -> bool:
    reasons = LEGAL[record.origin].get(record.state.status) if record.origin else None
    reason = record.state.reason if isinstance(record.state, Queued | Stalled) else None
    return reasons is not None and (not reasons or reason in reasons)


def faults_between(before: Stored, after: Stored) -> Iterator[str]:
    """What is wrong with a commit that made `after` of `before`."""
    new = after.records[len(before.records) :]
    if after.records[: len(before.records)] != before.records:
        yield "records that were in the log are gone, or hidden"
    if after.slots[: len(before.slots)] != before.slots or after.messages[: len(before.messages)] != before.messages:
        yield "a slot or a message was changed"
    yield from _faults_of_step(before, after, transitions_in(new))
    if before.has_ended and (after.slots, after.messages, after.run.revision) != (
        before.slots,
        before.messages,
        before.run.revision,
    ):
        yield f"the run is {before.run.state.status}, and was changed"
    yield from _faults_of_owners(before, after, new)
    yield from faults_of_timeouts(before, after)


def _faults_of_step(before: Stored, after: Stored, entered: list[Transition]) -> Iterator[str]:
    """One transition at a time; two only where an owner that was directed to stop leaves the run in a state of its own."""
    directive = before.run.directive
    if after.run.revision != before.run.revision + len(entered) or len(entered) > (2 if directive else 1):
        yield f"the revision went from {before.run.revision} to {after.run.revision}"
    obeyed = {"pause": ("paused", "stalled"), "cancel": ("cancelled",)}
    has_ended = after.run.state.status in ("completed", "failed", "cancelled")
    if directive and entered and not has_ended and after.run.state.status not in obeyed[directive.action]:
        yield f"the directive to {directive.action} is gone, and the run {after.run.state}: nobody will do it any more"
    if directive and not entered and after.run.directive is None:
        yield "what the run's owner was directed to do is forgotten"


def _faults_of_owners(before: Stored, after: Stored, new: tuple[AnyRecord, ...]) -> Iterator[str]:
    claim_id = before.run.claim.claim_id if before.run.claim else None
    for slot in after.slots[len(before.slots) :]:
        if slot.checkpoint_id is not None and slot.claim_id != claim_id:
            yield f"claim {slot.claim_id} wrote slot {slot.position} while the run's owner was {claim_id}"
    if claim_id is not None and after.run.claim is not None and after.run.claim.claim_id != claim_id:
        yield f"the run went from owner {claim_id} to {after.run.claim.claim_id} in one step"
    if claim_id is None and new and after.run.revision == before.run.revision:
        yield f"the run is {before.run.state.status} and does something: {[record.type for record in new]}"
