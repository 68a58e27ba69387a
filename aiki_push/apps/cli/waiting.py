"""What a parked run waits for, in words."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from aiki_push.apps.cli.timeline import clock_time
from aiki_push.domain.log_records import AnyRecord, Transition
from aiki_push.domain.waits import ANY_KEY, Wait


def waiting_lines(waits: Sequence[Wait], records: Sequence[AnyRecord]) -> Iterator[str]:
    """A line that says since when the run waits, and one for each thing that it waits for; none where it waits for nothing."""
    if not waits:
        return
    since = next((record.at for record in reversed(records) if isinstance(record, Transition)), None)
    yield "waits" + ("" if since is None else f" since {clock_time(since)}") + " for"
    for wait in waits:
        until = "" if wait.deadline_at is None else f", until {_date_time(wait.deadline_at)}"
        yield f"  {_what(wait)}{until}"


def _what(wait: Wait) -> str:
    if wait.kind == "timer":
        return "a timer"
    if wait.kind == "task_retry":
        return "the next attempt of a task"
    return f"several: any {wait.kind}" if wait.key == ANY_KEY else f"{wait.kind} {wait.key}"


def _date_time(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
