"""Control from outside as rules: what anyone may ask of a run at any time."""

from collections.abc import Callable
from typing import Literal

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from aiki_push.domain.changes import Change
from aiki_push.domain.controls import decide_cancel, decide_directive, decide_pause, decide_resume, decide_wake_up
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Directive
from aiki_push.domain.run_states import PARKED, Status
from aiki_push.domain.values import TimestampMs
from tests.unit.domain.run_history import RunHistory


class ControlledRun(RunHistory):
    """A run that is paused, resumed, woken and, now and then, cancelled."""

    @property
    def is_being_cancelled(self) -> bool:
        return self.run.directive is not None and self.run.directive.action == "cancel"

    @precondition(lambda self: self.is_in("queued", "running", *PARKED) and not self.is_being_cancelled)
    @rule(is_raced=st.booleans())
    def pause(self, is_raced: bool) -> None:
        operation_id = self.name()
        self.take(lambda: decide_pause(self.run, operation_id, self.last, self.now), "paused", is_raced)

    @precondition(lambda self: not self.is_in("completed", "failed", "cancelled"))
    @rule(is_raced=st.booleans(), luck=st.integers(0, 9))
    def cancel(self, is_raced: bool, luck: int) -> None:
        operation_id = self.name()
        if luck == 0:
            self.take(lambda: decide_cancel(self.run, operation_id, "é" * 300, self.last, self.now), "cancelled", is_raced)

    def take(self, decide: Callable[[], tuple[Change, ...]], status: Status, is_raced: bool) -> None:
        """The last append of an owner may still arrive between the look at the log and the commit."""
        changes, owner = decide(), self.owner
        if is_raced and owner and owner.unanswered and not self.has_landed(owner.unanswered):
            self.write([owner.put(owner.unanswered, self.now)], *owner.unanswered.records)
            taken_by = self.refuse(changes)
            assert taken_by
            assert taken_by.checkpoint_id == owner.unanswered.checkpoint_id
            changes = decide()
        if owner:
            owner.is_unaware = True
            self.fruitless = 0 if self.has_written(owner) else self.fruitless
        self.write(changes, enters=status)
        assert decide() == ()

    @precondition(lambda self: self.owner)
    @rule(action=st.sampled_from(["pause", "pause", "cancel"]))
    def direct(self, action: Literal["pause", "cancel"]) -> None:
        if action == "pause" and self.is_being_cancelled:
            return
        directive, before = Directive(action=action, operation_id=self.name()), self.run.directive
        self.write(decide_directive(self.run, directive))
        assert self.run.directive == (directive if before is None or before.action != action else before)
        assert decide_directive(self.run, directive) == ()

    @precondition(lambda self: self.is_in("paused"))
    @rule(wait_ms=st.sampled_from([0, 10_000]))
    def resume(self, wait_ms: int) -> None:
        self.now, operation_id = TimestampMs(self.now + wait_ms), self.name()
        origin, run = self.run.paused_from, self.run
        assert origin
        deadlines = [wait.deadline_at for wait in run.waits if wait.deadline_at is not None]
        is_still_parked = origin.status in PARKED and run.inbox_seq <= run.seen_seq and min(deadlines) > self.now
        self.write(decide_resume(run, operation_id, self.now, Limits()), enters=origin.status if is_still_parked else "queued")
        assert decide_resume(self.run, operation_id, self.now, Limits()) == ()
        assert self.run.waits == (run.waits if is_still_parked else ())

    @precondition(lambda self: self.is_in("queued", "running", "paused") or any(wait.kind == "sleep" for wait in self.run.waits))
    @rule()
    def wake_up(self) -> None:
        operation_id, is_parked = self.name(), self.is_in(*PARKED)
        self.write(decide_wake_up(self.run, operation_id, None, self.now), enters="queued" if is_parked else ())
        assert decide_wake_up(self.run, operation_id, None, self.now) == ()
