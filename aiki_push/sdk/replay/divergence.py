"""Saying how the code and the log differ, so that whoever reads it can find the change that did it."""

from collections.abc import Iterable

from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.replay.memory import RecordedTask

SHOWN = 10


def explain(new: Iterable[LiveTask], unasked: Iterable[RecordedTask]) -> str:
    """One paragraph that names the calls which the code makes now and those which only the log has. Inputs are not shown."""
    made = [f"{live.call.name} (call {live.ordinal + 1} with its input, {live.call.input_hash[:8]})" for live in new]
    missed = [f"{task.name} (task {task.task_id})" for task in unasked]
    return (
        f"the code has diverged from what this run did before: it now calls {_listed(made)}, which the log does not have, "
        f"and did not call {_listed(missed)}, which the log has. Nothing new was run. "
        "Deploy code that makes the recorded calls again, or the earlier code, and requeue the run; or give changed code a new version"
    )


def _listed(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
