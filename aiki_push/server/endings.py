"""How a run ended, as another run is told."""

from aiki_push.domain.errors import InternalError
from aiki_push.domain.inbox import RunEnding
from aiki_push.domain.messages import ending_of
from aiki_push.domain.run import Run
from aiki_push.domain.values import PayloadReference, RunId
from aiki_push.server.context import ServerContext
from aiki_push.server.run_views import last_transition


def ending_for(context: ServerContext, run: Run, *, watcher: RunId) -> RunEnding:
    """The ending of `run`, which has ended. A large output is first copied to the run `watcher`, so that each can go by itself.

    Raises InternalError (the log of `run` does not say how it ended), StorageUnavailable.
    """
    told = last_transition(context, run)
    if told is None:
        raise InternalError(f"the log of run {run.id} does not say how it ended", run_id=run.id)
    ending = ending_of(run, told)
    if not isinstance(ending.output, PayloadReference):
        return ending
    content = context.payloads.get(run.namespace, run.id, ending.output.sha256)
    return ending.model_copy(update={"output": context.payloads.put(run.namespace, watcher, content)})
