"""Sending events to runs."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from aiki_push.domain.run import ReferenceId
from aiki_push.domain.values import Frozen, Json, Name, RunId
from aiki_push.ports.api.operation import Answer, Operation
from aiki_push.ports.api.runs import RunIdField

MAX_TARGETS = 100
"""Runs that one multicast may name."""


class EventSent(Answer):
    """Whether the run will find the event in its inbox: one that has ended takes nothing more."""

    delivered: bool


class SendEvent(Operation[EventSent]):
    """Send an event to a run, whatever state it is in; it waits there until the run asks for it.

    Leave `data` out for events without any. The same `reference` again, for this run and event, is the same event: it is sent once.
    Raises NotFound, PayloadTooLarge.
    """

    operation, method, path, role = "send_event", "POST", "/v1/runs/{run_id}/events/{event}", "client"
    answer = TypeAdapter[EventSent](EventSent)

    run_id: RunIdField
    event: Name
    data: Json = None
    reference: ReferenceId | None = None


class RunWithId(Frozen):
    """The run with this id."""

    by: Literal["run_id"] = "run_id"
    run_id: RunIdField


class RunWithReference(Frozen):
    """The run of this workflow version that has this reference."""

    by: Literal["reference"] = "reference"
    workflow: Name
    version: Name
    reference: ReferenceId


class SendOutcome(Answer):
    """What became of the event for one target: `run_id` is None where there is no such run, `delivered` False where it has ended."""

    run_id: RunId | None
    delivered: bool


class EventsSent(Answer):
    """An outcome for each target, in the order of the targets."""

    outcomes: tuple[SendOutcome, ...]


class MulticastEvent(Operation[EventsSent]):
    """Send an event to up to 100 runs, each on its own: one that does not exist, or has ended, does not keep it from the others.

    A repeated `reference` is the same event for each run. Raises PayloadTooLarge; StorageUnavailable where some were not reached: repeat
    the request with its reference.
    """

    operation, method, path, role = "multicast_event", "POST", "/v1/events/{event}", "client"
    answer = TypeAdapter[EventsSent](EventsSent)

    event: Name
    targets: Annotated[
        tuple[Annotated[RunWithId | RunWithReference, Field(discriminator="by")], ...],
        Field(min_length=1, max_length=MAX_TARGETS),
    ]
    data: Json = None
    reference: ReferenceId | None = None
