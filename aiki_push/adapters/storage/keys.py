"""Every key of the table and its indexes.

| item            | PK                                     | SK                   |
|-----------------|----------------------------------------|----------------------|
| run header      | `RUN#{ns}#{run_id}`                    | `H`                  |
| inbox message   | same                                   | `I#{seq:08d}`        |
| log slot        | same                                   | `L#{position:08d}`   |
| payload         | same                                   | `P#{sha256}`         |
| watcher         | same                                   | `W#{watcher_run_id}` |
| event reference | `EVENTREF#{ns}#{run_id}`               | `{event}#{hash}`     |
| reference       | `REF#{ns}#{workflow}#{version}#{hash}` | `-`                  |
| endpoint        | `ENDPOINTS#{ns}`                       | `{endpoint_id}`      |

| index         | partition                                | sort key                               | which headers                |
|---------------|------------------------------------------|----------------------------------------|------------------------------|
| `due`         | `DUE#{shard}`                            | `{due_at:015d}#{PK}`                   | those with a `due_at`        |
| `ready`       | `READY#{ns}#{workflow}#{version}#{pool}` | `{ready_at:015d}#{priority}#{run_id}`  | of queued runs               |
| same          | `CLAIMS#{ns}#{request_id}`               | same as in its queue                   | of runs claimed by pull      |
| `by_workflow` | `{ns}#{workflow}#{shard}`                | `{created_at:015d}#{run_id}#{version}` | all                          |
| `by_state`    | `{ns}#{group}#{shard}`                   | same                                   | all                          |

Header, inbox and log lie next to each other, so one query reads a run; payloads and watchers come after them. Indexes with a
shard are spread over partitions by a hash of the run id, because a partition takes 1 000 write units a second. Groups of states
are few, so that most transitions leave a run where it is in `by_state`. Names cannot contain `#`; anything else that could,
arrives here escaped. A reference is hashed (SHA-256), so that a long one costs no more than a short one.
"""

from hashlib import sha256
from zlib import crc32

from aiki_push.adapters.storage.table import IndexName, Key, Query
from aiki_push.domain.run_states import TERMINAL, Status
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import DueRun, ListedRun, ListPlace
from aiki_push.ports.store import Queue as ReadyQueue

HEADER = "H"
GROUPS = ("active", "stalled", "completed", "failed", "cancelled")
"""Of states, as `by_state` knows them, in the order in which a run mostly goes through them."""

_LAST_NUMBER = 99_999_999


def _part(text: str) -> str:
    """`text` without separators: itself for every legal name."""
    return text.replace("%", "%25").replace("#", "%23")


def _unpart(text: str) -> str:
    return text.replace("%23", "#").replace("%25", "%")


def _shard(run_id: str, shards: int) -> int:
    return crc32(run_id.encode()) % shards


def _next(number: int) -> str:
    return f"{min(number + 1, _LAST_NUMBER):08d}"


def run_partition(namespace: str, run_id: str) -> str:
    """Where everything of one run lies."""
    return f"RUN#{_part(namespace)}#{_part(run_id)}"


def header(namespace: str, run_id: str) -> Key:
    """Key of a run's header."""
    return Key(run_partition(namespace, run_id), HEADER)


def slot(namespace: str, run_id: str, position: int) -> Key:
    """Key of a log slot."""
    return Key(run_partition(namespace, run_id), f"L#{position:08d}")


def message(namespace: str, run_id: str, seq: int) -> Key:
    """Key of an inbox message."""
    return Key(run_partition(namespace, run_id), f"I#{seq:08d}")


def payload(namespace: str, run_id: str, sha256: str) -> Key:
    """Key of a payload of a run."""
    return Key(run_partition(namespace, run_id), f"P#{_part(sha256)}")


def watcher(namespace: str, run_id: str, watcher_run_id: str) -> Key:
    """Key of a watcher of a run."""
    return Key(run_partition(namespace, run_id), f"W#{_part(watcher_run_id)}")


def reference(namespace: str, workflow: str, version: str, reference_id: str) -> Key:
    """Key of a reference."""
    return Key("#".join(("REF", *map(_part, (namespace, workflow, version)), _digest(reference_id))), "-")


def event_reference(namespace: str, run_id: str, event: str, reference_id: str) -> Key:
    """Key of a reference that an event was sent to a run with."""
    return Key(f"EVENTREF#{_part(namespace)}#{_part(run_id)}", f"{_part(event)}#{_digest(reference_id)}")


def _digest(reference_id: str) -> str:
    return sha256(reference_id.encode("utf-8", "surrogatepass")).hexdigest()


def endpoint(namespace: str, endpoint_id: str) -> Key:
    """Key of an endpoint."""
    return Key(f"ENDPOINTS#{_part(namespace)}", _part(endpoint_id))


def contents(namespace: str, run_id: str) -> Query:
    """Header, inbox and log of a run, in this order."""
    return Query(run_partition(namespace, run_id), HEADER, f"L#{_LAST_NUMBER}")


def slots(namespace: str, run_id: str, *, after: int) -> Query:
    """Log slots at positions greater than `after`, in order."""
    return Query(run_partition(namespace, run_id), f"L#{_next(after)}", f"L#{_LAST_NUMBER}")


def last_slot(namespace: str, run_id: str) -> Query:
    """The log slots from the last to the first, one a page."""
    return Query(run_partition(namespace, run_id), "L#", f"L#{_LAST_NUMBER}", ascending=False, page_size=1)


def messages(namespace: str, run_id: str, *, after: int) -> Query:
    """Messages with a number greater than `after`, in order."""
    return Query(run_partition(namespace, run_id), f"I#{_next(after)}", f"I#{_LAST_NUMBER}")


def watchers(namespace: str, run_id: str, limit: int) -> Query:
    """Watchers of a run, by id. Ids are printable ASCII."""
    return Query(run_partition(namespace, run_id), "W#", "W#~", page_size=limit)


def endpoints(namespace: str) -> Query:
    """All endpoints of a namespace, by id. Names are printable ASCII."""
    return Query(f"ENDPOINTS#{_part(namespace)}", "!", "~")


def due_entry(namespace: str, run_id: str, due_at: TimestampMs, shards: int) -> tuple[str, str]:
    """Partition and sort key in the `due` index."""
    return f"DUE#{_shard(run_id, shards)}", f"{due_at:015d}#{run_partition(namespace, run_id)}"


def due_until(shard: int, until: TimestampMs, limit: int) -> Query:
    """Entries of one shard that are due at `until`, the earliest first."""
    return Query(f"DUE#{shard}", "0", f"{until:015d}#~", index="due", page_size=limit)


def is_due(sort_key: str, until: TimestampMs) -> bool:
    """Whether a sort key of the `due` index is of something that is due at `until`."""
    return int(sort_key.partition("#")[0]) <= until


def due_run(sort_key: str) -> DueRun:
    """The run that a sort key of the `due` index names."""
    due_at, _, namespace, run_id = sort_key.split("#")
    return DueRun(_unpart(namespace), RunId(_unpart(run_id)), TimestampMs(int(due_at)))


def _ready_partition(queue: ReadyQueue) -> str:
    return "#".join(("READY", *map(_part, (queue.namespace, queue.workflow, queue.version, queue.pool or ""))))


def ready_entry(queue: ReadyQueue, run_id: str, ready_at: TimestampMs, priority: int) -> tuple[str, str]:
    """Partition and sort key in the `ready` index."""
    return _ready_partition(queue), f"{ready_at:015d}#{priority}#{_part(run_id)}"


def ready_in(queue: ReadyQueue, limit: int) -> Query:
    """Entries of one queue by ready time, then priority, then id."""
    return Query(_ready_partition(queue), "0", "9~", index="ready", page_size=limit)


def claimed_entry(namespace: str, request_id: str, ready_sort_key: str) -> tuple[str, str]:
    """Partition and sort key in the `ready` index of a run that a request pulled out of its queue."""
    return _claims_partition(namespace, request_id), ready_sort_key


def claimed_by(namespace: str, request_id: str) -> Query:
    """Entries of the runs that a request pulled, in the order of their queues."""
    return Query(_claims_partition(namespace, request_id), "0", "9~", index="ready")


def _claims_partition(namespace: str, request_id: str) -> str:
    return f"CLAIMS#{_part(namespace)}#{_part(request_id)}"


def ready_run(sort_key: str) -> RunId:
    """The run that a sort key of the `ready` index names."""
    return RunId(_unpart(sort_key.rsplit("#", 1)[1]))


def group_of(status: Status) -> str:
    """The group of a status: one of GROUPS."""
    return status if status in TERMINAL or status == "stalled" else "active"


def list_partitions(namespace: str, name: str, shards: int) -> tuple[str, ...]:
    """The partitions in a listing index of a workflow, or of a group of states."""
    return tuple(f"{_part(namespace)}#{_part(name)}#{shard}" for shard in range(shards))


def list_partition(namespace: str, name: str, run_id: str, shards: int) -> str:
    """The one of `list_partitions` that a run is in."""
    return f"{_part(namespace)}#{_part(name)}#{_shard(run_id, shards)}"


def created(place: ListPlace, version: str) -> str:
    """Sort key in the listing indexes."""
    return f"{place.created_at:015d}#{_part(place.run_id)}#{_part(version)}"


def listed(index: IndexName, partition: str, before: ListPlace | None, limit: int) -> Query:
    """Entries of one partition of a listing index that come after a place, the newest first."""
    # Without its version a place is a prefix of its own sort key, and so lies below it and above all older ones.
    high = "9~" if before is None else f"{before.created_at:015d}#{_part(before.run_id)}"
    return Query(partition, "0", high, index=index, ascending=False, page_size=limit)


def listed_run(sort_key: str) -> ListedRun:
    """The run that a sort key of a listing index names."""
    created_at, run_id, version = sort_key.split("#")
    return ListedRun(ListPlace(TimestampMs(int(created_at)), RunId(_unpart(run_id))), _unpart(version))
