"""Saying why nothing happens any more: which runs there are, and what each waits for."""

from collections.abc import Iterator

from aiki_push.domain.log_records import Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, TERMINAL, Paused, Running, Stalled
from aiki_push.ports.store import Listing
from aiki_push.sdk.replay.memory import Memory
from aiki_push.testing.local_system import NAMESPACE, LocalSystem

MOST_RUNS = 20
"""Runs named, and looked at for being named: the newest."""

MOST_WAITS = 10


def where_runs_stand(system: LocalSystem) -> str:
    """A line for each of the newest runs that has not ended."""
    listed = system.store.newest_runs(Listing(NAMESPACE), before=None, limit=MOST_RUNS)
    runs = [system.run(one.place.run_id) for one in reversed(listed)]
    lines = [
        f"run {run.id} ({run.workflow} {run.version}) {_stand(system, run)}" for run in runs if run.state.status not in TERMINAL
    ]
    return "\n".join(lines) or ("every run has ended" if runs else "no run was started")


def _stand(system: LocalSystem, run: Run) -> str:
    match run.state:
        case state if state.status in PARKED:
            return f"waits for {_listed(run)}, and nothing in the test brings it"
        case Running():
            return f"is being executed, and {_open_handlers(system, run) or 'the executor'} does not end"
        case Stalled(reason=reason):
            return f"is stalled ({reason}): {next(_explanations(system, run), '')}"
        case Paused():
            return "is paused, and nothing in the test resumes it"
        case state:
            return f"is {state.status}"


def _listed(run: Run) -> str:
    waits = [f"{wait.kind} {wait.key}" for wait in run.waits]
    more = f" and {len(waits) - MOST_WAITS} more" if len(waits) > MOST_WAITS else ""
    return ", ".join(waits[:MOST_WAITS]) + more


def _open_handlers(system: LocalSystem, run: Run) -> str:
    tasks = Memory.of(system.records(run.id)).tasks.values()
    return ", ".join(f"the handler of {task.name}" for task in tasks if task.is_open and not task.is_cancelled)


def _explanations(system: LocalSystem, run: Run) -> Iterator[str]:
    for record in reversed(system.records(run.id)):
        if isinstance(record, Transition) and record.explanation:
            yield record.explanation
