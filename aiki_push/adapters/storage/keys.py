"""Every key of the table and its indexes.

| item          | PK                     | SK                   |
|---------------|------------------------|----------------------|
| run header    | `RUN#{ns}#{run_id}`    | `H`                  |
| inbox message | same                   | `I#{seq:08d}`        |
| log slot      | same                   | `L#{position:08d}`   |
| payload       | same                   | `P#{sha256}`         |
| endpoint      | `ENDPOINTS#{ns}`       | `{endpoint_id}`      |

| index   | partition                                   | sort key                               | which items                  |
|---------|---------------------------------------------|----------------------------------------|------------------------------|
| `due`   | `DUE#{shard}`                               | `{due_at:015d}#{PK}`                   | headers with a `due_at`      |
| `ready` | `READY#{ns}#{workflow}#{version}#{pool}`    | `{ready_at:015d}#{priority}#{run_id}`  | headers of queued runs       |

Header, inbox and log lie next to each other, so one query reads a run; payloads come after them. The `due` index is spread over
shards by a hash of the run id, because a partition takes 1 000 write units a second. Names cannot contain `#`; anything else
that could, arrives here escaped.
"""

from zlib import crc32

from aiki_push.adapters.storage.table import Key, Query
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import DueRun
from aiki_push.ports.store import Queue as ReadyQueue

HEADER = "H"
_LAST_NUMBER = 99_999_999


def _part(text: str) -> str:
    """`text` without separators: itself for every legal name."""
    return text.replace("%", "%25").replace("#", "%23")


def _unpart(text: str) -> str:
    return text.replace("%23", "#").replace("%25", "%")


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


def endpoints(namespace: str) -> Query:
    """All endpoints of a namespace, by id. Names are printable ASCII."""
    return Query(f"ENDPOINTS#{_part(namespace)}", "!", "~")


def due_entry(namespace: str, run_id: str, due_at: TimestampMs, shards: int) -> tuple[str, str]:
    """Partition and sort key in the `due` index."""
    return f"DUE#{crc32(run_id.encode()) % shards}", f"{due_at:015d}#{run_partition(namespace, run_id)}"


def due_until(shard: int, until: TimestampMs, limit: int) -> Query:
    """Entries of one shard that are due at `until`, the earliest first."""
    return Query(f"DUE#{shard}", "0", f"{until:015d}#~", index="due", page_size=limit)


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


def ready_run(sort_key: str) -> RunId:
    """The run that a sort key of the `ready` index names."""
    return RunId(_unpart(sort_key.rsplit("#", 1)[1]))
