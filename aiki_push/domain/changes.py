"""What one decision asks the store to write, as data. A commit applies all of its changes or none."""

from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run, RunReference


@dataclass(frozen=True, slots=True)
class CreateRun:
    """Write a new header, if no run with this id exists."""

    run: Run


@dataclass(frozen=True, slots=True)
class SaveRun:
    """Replace the header, if it was not written since `run` was loaded (its `etag` is still the stored one)."""

    run: Run


@dataclass(frozen=True, slots=True)
class PutReference:
    """Have a reference name a run, if it was never used (no `etag`), or not written since it was loaded (its `etag` is the stored one)."""

    reference: RunReference


@dataclass(frozen=True, slots=True)
class PutSlot:
    """Write a log slot, if that position is free. This is the fence: two writers can never both have it."""

    namespace: str
    run_id: str
    slot: LogSlot


@dataclass(frozen=True, slots=True)
class PutMessage:
    """Write an inbox message, if its number is free."""

    namespace: str
    run_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class PutEventReference:
    """Remember that the event was sent with this reference, if it was not before."""

    namespace: str
    run_id: str
    event: str
    reference: str


@dataclass(frozen=True, slots=True)
class PutWatcher:
    """Have `watcher` told of the run's end. It may be there already."""

    namespace: str
    run_id: str
    watcher: Watcher


@dataclass(frozen=True, slots=True)
class DeleteWatcher:
    """Remove `watcher`, if it was not written since it was read (its `etag` is still the stored one)."""

    namespace: str
    run_id: str
    watcher: Watcher


@dataclass(frozen=True, slots=True)
class SaveEndpoint:
    """Write an endpoint, new or not."""

    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class DeleteEndpoint:
    """Remove an endpoint, if it is there."""

    namespace: str
    endpoint_id: str


Change: TypeAlias = (
    CreateRun
    | SaveRun
    | PutReference
    | PutSlot
    | PutMessage
    | PutEventReference
    | PutWatcher
    | DeleteWatcher
    | SaveEndpoint
    | DeleteEndpoint
)
