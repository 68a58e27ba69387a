"""Carrying out what a workflow asks of other runs: as changes for the transaction of the checkpoint that asks."""

from dataclasses import dataclass

from aiki_push.domain.changes import Change, PutEventReference
from aiki_push.domain.children import decide_child, decide_link
from aiki_push.domain.controls import decide_cancel, decide_directive, decide_pause, decide_resume, decide_wake_up
from aiki_push.domain.errors import ApiError, IllegalTransition, NotFound, ReferenceConflict
from aiki_push.domain.log_records import CallEnded, CallError, CallResult
from aiki_push.domain.messages import News, tell
from aiki_push.domain.run import Directive, Run
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.starts import check_holder, is_same_start
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.calls import Call, ControlRun, SendEventTo, StartChild
from aiki_push.ports.api.runs import StartRun
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import ServerContext
from aiki_push.server.endings import ending_for
from aiki_push.server.starts import asked_start, hash_of_input, named_by
from aiki_push.server.stored_values import StoredValues

FENCE_ROUNDS = 5
"""After so many lost races for the next slot of a busy run, it is directed to stop instead."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call comes to: changes of other runs, what the calling run itself is told, and the result in a word."""

    run_id: RunId
    result: CallResult
    changes: tuple[Change, ...] = ()
    news: tuple[News, ...] = ()


class CallsOf:
    """Carries out the calls of one run."""

    def __init__(self, context: ServerContext, namespace: str, run_id: RunId) -> None:
        self._context = context
        self._namespace = namespace
        self._run_id = run_id
        self._sent: set[PutEventReference] = set()

    def learn(self, refused: CommitRefused) -> None:
        """Take note of the events that turn out to have been sent before, so that the next round leaves them out."""
        changes = (refusal.change for refusal in refused.refusals if refusal.found is not None)
        self._sent |= {change for change in changes if isinstance(change, PutEventReference)}

    def resolve(self, call: Call, attempt: int) -> tuple[Outcome | None, CallEnded]:
        """What `call` comes to now, in the `attempt`th round. Where it is refused there is nothing to change.

        Raises PayloadTooLarge, StorageUnavailable.
        """
        now = self._context.clock.now()
        try:
            outcome = self._outcome(call, attempt, now)
        except (ReferenceConflict, IllegalTransition, NotFound) as refusal:
            about = refusal.fields.get("run_id")
            return None, self._ended(call, now, RunId(about) if isinstance(about, str) else call.run_id, error=refusal)
        return outcome, self._ended(call, now, outcome.run_id, result=outcome.result)

    def _ended(
        self, call: Call, now: TimestampMs, run_id: RunId, *, result: CallResult | None = None, error: ApiError | None = None
    ) -> CallEnded:
        return CallEnded(
            at=now,
            kind=call.kind,
            key=call.key,
            ordinal=call.ordinal,
            run_id=run_id,
            name=_name(call),
            result=result,
            error=None if error is None else CallError(code=error.code, detail=error.detail),
        )

    def _outcome(self, call: Call, attempt: int, now: TimestampMs) -> Outcome:
        match call:
            case StartChild():
                return self._child(call, attempt, now)
            case SendEventTo():
                return self._event(call, now)
            case ControlRun():
                return self._control(call, attempt, now)

    def _child(self, call: StartChild, attempt: int, now: TimestampMs) -> Outcome:
        given = {"input": call.input} if "input" in call.model_fields_set else {}
        request = StartRun.model_validate(
            {
                "run_id": call.run_id,
                "workflow": call.workflow,
                "version": call.version,
                "options": call.options,
                "reference": call.reference,
                **given,
            }
        )
        named = named_by(self._context, self._namespace, request)
        holder = self._load(named.run_id) if named is not None else None
        if holder is not None and call.reference is not None:
            check_holder(holder, hash_of_input(request), call.reference.conflict_policy)
            return self._linked(holder, "existing")
        start = asked_start(self._context, self._namespace, request, call.run_id)
        # Its id is made from the call: where it exists, this call was carried out, and what says so was lost.
        if attempt and (own := self._load(call.run_id)) is not None:
            if own.parent != self._run_id or not is_same_start(own, start):
                raise ReferenceConflict(f"run id {call.run_id} is in use for another start", run_id=call.run_id)
            return self._linked(own, "created")
        return Outcome(call.run_id, "created", decide_child(start, self._run_id, now, over=named))

    def _linked(self, holder: Run, result: CallResult) -> Outcome:
        if changes := decide_link(holder, self._run_id):
            return Outcome(holder.id, result, changes)
        ending = ending_for(self._context, holder, watcher=self._run_id)
        return Outcome(holder.id, result, news=(News(kind="child", key=holder.id, ending=ending),))

    def _event(self, call: SendEventTo, now: TimestampMs) -> Outcome:
        target = self._context.store.load(self._namespace, call.run_id)
        sent = PutEventReference(self._namespace, target.id, call.event, call.reference)
        if sent in self._sent:
            return Outcome(target.id, "delivered")
        if is_terminal(target):
            return Outcome(target.id, "not_delivered")
        values = StoredValues(self._context.payloads, self._namespace, target.id)
        data = values.store(call.data, field="data") if "data" in call.model_fields_set else None
        news = (News(kind="event", key=call.event, data=data),)
        if target.id == self._run_id:
            return Outcome(target.id, "delivered", (sent,), news)
        return Outcome(target.id, "delivered", (*tell(target, news, now), sent))

    def _control(self, call: ControlRun, attempt: int, now: TimestampMs) -> Outcome:
        if call.run_id == self._run_id:
            raise IllegalTransition(f"run {call.run_id} cannot {call.kind} itself; return or raise instead", run_id=call.run_id)
        run = self._context.store.load(self._namespace, call.run_id)
        last = self._context.store.last_slot(self._namespace, run.id) if call.kind in ("cancel", "pause") else None
        match call.kind:
            case "resume":
                return Outcome(run.id, "done", decide_resume(run, call.operation_id, now, self._context.limits))
            case "wakeup":
                return Outcome(run.id, "done", decide_wake_up(run, call.operation_id, call.sleep, now))
            case "pause" | "cancel" if attempt >= FENCE_ROUNDS and run.state.status == "running":
                action = Directive(action=call.kind, operation_id=call.operation_id, explanation=call.explanation)
                return Outcome(run.id, "requested", decide_directive(run, action))
            case "pause":
                return Outcome(run.id, "done", decide_pause(run, call.operation_id, last, now))
            case _:
                return Outcome(run.id, "done", decide_cancel(run, call.operation_id, call.explanation, last, now))

    def _load(self, run_id: RunId) -> Run | None:
        try:
            return self._context.store.load(self._namespace, run_id)
        except NotFound:
            return None


def _name(call: Call) -> str | None:
    match call:
        case StartChild():
            return f"{call.workflow} {call.version}"
        case SendEventTo():
            return call.event
        case ControlRun():
            return call.sleep
