"""Sending events to runs: to one, or to many."""

from dataclasses import dataclass

from aiki_push.domain.canonical_json import check_json
from aiki_push.domain.changes import Change, PutEventReference
from aiki_push.domain.errors import ApiError, InternalError, InvalidRequest, NotFound, NotSerializable, UnsupportedVersion
from aiki_push.domain.messages import News, tell
from aiki_push.domain.run import Run
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.values import Json, RunId
from aiki_push.ports.api.events import (
    EventSent,
    EventsSent,
    MulticastEvent,
    RunWithId,
    RunWithReference,
    SendEvent,
    SendOutcome,
)
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.stored_values import StoredValues


@dataclass(frozen=True, slots=True)
class _Event:
    """What is sent. Without data is something else than with null. The same `reference` is the same event."""

    name: str
    has_data: bool
    data: Json
    reference: str | None


def send(context: ServerContext, namespace: str, request: SendEvent) -> EventSent:
    """The event lies in the run's inbox, once for each reference, and the run is woken if it waits for it."""
    return EventSent(delivered=_deliver(context, namespace, request.run_id, _event_of(request)))


def multicast(context: ServerContext, namespace: str, request: MulticastEvent) -> EventsSent:
    """The same for each target, one after the other. A run that cannot be read keeps the event from no other, and is reported last."""
    event = _event_of(request)
    outcomes: list[SendOutcome] = []
    unreadable: list[ApiError] = []
    for target in request.targets:
        try:
            outcomes.append(_outcome(context, namespace, target, event))
        except (InternalError, UnsupportedVersion) as error:
            unreadable.append(error)
    if unreadable:
        raise unreadable[0]
    return EventsSent(outcomes=tuple(outcomes))


def _event_of(request: SendEvent | MulticastEvent) -> _Event:
    try:
        check_json(request.data, at="data")
    except NotSerializable as error:
        raise InvalidRequest(str(error), errors=[{"field": "data", "message": str(error)}]) from None
    return _Event(request.event, "data" in request.model_fields_set, request.data, request.reference)


def _outcome(context: ServerContext, namespace: str, target: RunWithId | RunWithReference, event: _Event) -> SendOutcome:
    run_id = _run_id(context, namespace, target)
    try:
        return SendOutcome(run_id=run_id, delivered=run_id is not None and _deliver(context, namespace, run_id, event))
    except NotFound:
        return SendOutcome(run_id=None, delivered=False)


def _run_id(context: ServerContext, namespace: str, target: RunWithId | RunWithReference) -> RunId | None:
    if isinstance(target, RunWithId):
        return target.run_id
    named = context.store.reference(namespace, target.workflow, target.version, target.reference)
    return named.run_id if named is not None else None


def _deliver(context: ServerContext, namespace: str, run_id: RunId, event: _Event) -> bool:
    """False where the run has ended; then nothing is written. Raises NotFound, PayloadTooLarge, StorageUnavailable."""
    for attempt in range(MAX_ROUNDS):
        run = context.store.load(namespace, run_id)
        if is_terminal(run):
            return False
        try:
            context.commit(_delivery(context, run, event))
            return True
        except CommitRefused as refused:
            if refused.found_event() is not None:
                return True
            context.back_off(attempt)
    raise overcrowded(run_id)


def _delivery(context: ServerContext, run: Run, event: _Event) -> tuple[Change, ...]:
    values = StoredValues(context.payloads, run.namespace, run.id)
    data = values.store(event.data, field="data") if event.has_data else None
    told = tell(run, (News(kind="event", key=event.name, data=data),), context.clock.now())
    if event.reference is None:
        return told
    return *told, PutEventReference(run.namespace, run.id, event.name, event.reference)
