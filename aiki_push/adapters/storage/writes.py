"""What a change is in the table: one write of one item, with its condition."""

from typing import TypeAlias

from aiki_push.adapters.storage import formats, keys
from aiki_push.adapters.storage.table import Absent, Always, Delete, EtagIs, Item, Put, Write
from aiki_push.domain.changes import (
    Change,
    CreateRun,
    DeleteEndpoint,
    DeleteWatcher,
    PutEventReference,
    PutMessage,
    PutReference,
    PutSlot,
    PutWatcher,
    SaveEndpoint,
    SaveRun,
)
from aiki_push.ports.store import SentEvent

Addition: TypeAlias = CreateRun | PutSlot | PutMessage | PutEventReference


def write_of(change: Change, etag: str, shards: formats.Shards) -> Write:
    """The write that makes `change`, in a commit with this `etag`."""
    match change:
        case SaveRun(run):
            return Put(formats.header_item(run, etag, shards), EtagIs(run.etag))
        case PutReference(reference):
            return Put(formats.reference_item(reference, etag), EtagIs(reference.etag) if reference.etag else Absent())
        case PutWatcher(namespace, run_id, watcher):
            return Put(formats.watcher_item(namespace, run_id, watcher, etag), Always())
        case DeleteWatcher(namespace, run_id, watcher):
            return Delete(keys.watcher(namespace, run_id, watcher.run_id), EtagIs(watcher.etag))
        case SaveEndpoint(endpoint):
            return Put(formats.endpoint_item(endpoint), Always())
        case DeleteEndpoint(namespace, endpoint_id):
            return Delete(keys.endpoint(namespace, endpoint_id))
        case _:
            return Put(_added(change, etag, shards), Absent())


def _added(change: Addition, etag: str, shards: formats.Shards) -> Item:
    match change:
        case CreateRun(run):
            return formats.header_item(run, etag, shards)
        case PutSlot(namespace, run_id, slot):
            return formats.slot_item(namespace, run_id, slot, etag)
        case PutMessage(namespace, run_id, message):
            return formats.message_item(namespace, run_id, message, etag)
        case PutEventReference(namespace, run_id, event, reference):
            return formats.event_reference_item(namespace, run_id, SentEvent(event, reference), etag)
