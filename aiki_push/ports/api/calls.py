"""What a workflow asks of other runs. It travels in a checkpoint, and is carried out in that checkpoint's transaction."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from aiki_push.domain.run import ReferenceId
from aiki_push.domain.values import Frozen, Identifier, Json, Name
from aiki_push.ports.api.runs import Explanation, RunIdField, SleepName, StartOptions, StartReference

CallKey = Annotated[str, Field(min_length=1, max_length=2_048)]
Ordinal = Annotated[int, Field(ge=0, strict=True)]

MAX_CHILD_STARTS = 24
"""In one checkpoint: each takes up to four items of a transaction, which holds 100."""

MAX_OPERATIONS = 20
"""Calls of the other kinds in one checkpoint."""


class _OnRun(Frozen):
    key: CallKey
    ordinal: Ordinal
    run_id: RunIdField

    @property
    def targets(self) -> tuple[object, ...]:
        """What no other call of the same checkpoint may be about: the run, and the reference that stands for one."""
        return (self.run_id,)

    @model_serializer(mode="wrap")
    def _as_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Without what is None because it was not set: no input, or data, is not the same as null."""
        fields: dict[str, object] = handler(self)
        return {name: value for name, value in fields.items() if value is not None or name in self.model_fields_set}


class StartChild(_OnRun):
    """Start a run as a child of this one, or find the one with the reference; this run is told of its end.

    `run_id` is that of the run to be. Leave `input` out for workflows that take none.
    """

    kind: Literal["child"] = "child"
    workflow: Name
    version: Name
    input: Json = None
    options: StartOptions = StartOptions()
    reference: StartReference | None = None

    @property
    def targets(self) -> tuple[object, ...]:
        """See the base."""
        named = () if self.reference is None else ((self.workflow, self.version, self.reference.id),)
        return (self.run_id, *named)


class SendEventTo(_OnRun):
    """Send an event to the run `run_id`, once, whatever happens. Leave `data` out for events without any."""

    kind: Literal["send_event"] = "send_event"
    event: Name
    data: Json = None
    reference: ReferenceId


class ControlRun(_OnRun):
    """Cancel (with an explanation), pause, resume or wake up the run `run_id`; `sleep` names one sleep, None all of them."""

    kind: Literal["cancel", "pause", "resume", "wakeup"]
    operation_id: Identifier
    explanation: Explanation | None = None
    sleep: SleepName | None = None


Call: TypeAlias = StartChild | SendEventTo | ControlRun
