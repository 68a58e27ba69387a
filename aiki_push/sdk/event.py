"""Events: what the world, or another run, tells a run while it goes on."""

import sys
from collections import ChainMap
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

from typing_extensions import TypeForm

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash
from aiki_push.domain.durations import duration_ms
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.ids import join_key, token_text
from aiki_push.domain.values import Json
from aiki_push.ports.api.calls import SendEventTo
from aiki_push.ports.api.events import MAX_TARGETS, MulticastEvent, RunWithId, RunWithReference, SendEvent
from aiki_push.sdk.calls import RunCall, WaitCall
from aiki_push.sdk.client import Client
from aiki_push.sdk.names import check_name
from aiki_push.sdk.options import check_reference
from aiki_push.sdk.peer import Peer, check_outcome, check_run_id
from aiki_push.sdk.results import Received, TimedOut
from aiki_push.sdk.run import Run
from aiki_push.sdk.run_handle import Handle
from aiki_push.sdk.sizes import check_size
from aiki_push.sdk.types.allowed import JsonRule
from aiki_push.sdk.types.hints import Hint
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.sdk.types.restoring import CannotRestore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Referenced:
    """The run of a workflow version that has this reference, whichever it is. Made by `version.referenced(…)`."""

    workflow: str
    version: str
    reference: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an event for one run: `run_id` is None where there is no such run, `delivered` False where it has ended."""

    run_id: str | None
    delivered: bool


Target: TypeAlias = "str | Referenced | Handle[Any]"
"""A run to send an event to: its id, its reference, or its handle."""


class Event(Generic[T]):
    """Something that runs can wait for and that can be sent to them. Made by `event(name, type)`."""

    def __init__(self, name: str, data_type: JsonType[T] | None) -> None:
        self.name = name
        self._data_type = data_type
        self._reference: str | None = None

    def __repr__(self) -> str:
        return f"Event({self.name})"

    def with_(self, path: Literal["reference.id"], value: str, /) -> "Event[T]":
        """A copy that, sent again to a run with this reference, is the same event: the run gets it once.

        Raises SettingsError for another path or value.
        """
        if path != "reference.id":
            raise SettingsError(f'{self.name} has no option {path!r}; the only option of an event is "reference.id"')
        changed = copy(self)
        changed._reference = check_reference(value, f"{self.name}: reference.id")
        return changed

    @overload
    async def wait(self, run: Run, /) -> Received[T]: ...
    @overload
    async def wait(self, run: Run, /, *, timeout: timedelta | None) -> Received[T] | TimedOut: ...

    async def wait(self, run: Run, /, *, timeout: timedelta | None = None) -> Received[T] | TimedOut:
        """The next event of this name that the run has not taken yet, however early it was sent; TimedOut after `timeout`.

        Each event is taken by one wait. Raises SettingsError (a timeout that is no length of time).
        """
        longest = None if timeout is None else duration_ms(timeout, name=f"{self.name}: timeout")
        message = await run.calls.wait(WaitCall("event", self.name, longest))
        if message is None:
            return TimedOut()
        data = None if message.data is None else run.calls.value_of(message.data)
        try:
            return Received(self._decode(data))
        except CannotRestore as error:
            run.calls.cannot_restore(str(error))
            raise

    @overload
    async def send(self: "Event[None]", target: Handle[Any] | Peer, /) -> bool: ...
    @overload
    async def send(self, target: Handle[Any] | Peer, data: T, /) -> bool: ...

    async def send(self, target: Handle[Any] | Peer, /, *data: Any) -> bool:
        """Send the event to a run; whether it will find it: a run that has ended takes nothing more.

        In a workflow the target is a child or a peer, and the event is sent exactly once. Raises NotFound, InvalidValue (lists each
        field at fault), NotSerializable, PayloadTooLarge, ServerUnreachable, SettingsError (a target that is none).
        """
        given = self._encode(data)
        if isinstance(target, Peer):
            return await self._send_from_workflow(target, given, self._reference or self._digest(data))
        if not isinstance(target, Handle):
            raise SettingsError(
                f"{self.name}: an event is sent to a handle, in a workflow to a child or a peer; this is {type(target).__name__}"
            )
        client = target.client
        asked: dict[str, Json] = {"run_id": target.id, "event": self.name, "reference": self._reference or _new_reference(client)}
        return (await client.api.call(SendEvent.model_validate(asked | given))).delivered

    async def _send_from_workflow(self, target: Peer, given: dict[str, Json], what: str) -> bool:
        content = join_key("send_event", target.id, self.name, what)

        def request(ordinal: int, own_id: str) -> SendEventTo:
            asked: dict[str, Json] = {
                "key": content,
                "ordinal": ordinal,
                "run_id": target.id,
                "event": self.name,
                "reference": self._reference or own_id,
            }
            return SendEventTo.model_validate(asked | given)

        return check_outcome(await target.calls.call_run(RunCall(content, request))).result == "delivered"

    @overload
    async def multicast(self: "Event[None]", client: Client, targets: Sequence[Target], /) -> tuple[Sent, ...]: ...
    @overload
    async def multicast(self, client: Client, targets: Sequence[Target], data: T, /) -> tuple[Sent, ...]: ...

    async def multicast(self, client: Client, targets: Sequence[Target], /, *data: Any) -> tuple[Sent, ...]:
        """Send the event to many runs, each on its own; an outcome for each, in the order of the targets.

        Raises InvalidValue, NotSerializable, PayloadTooLarge, ServerUnreachable, SettingsError (a target that is none).
        """
        reference = self._reference or _new_reference(client)
        asked: dict[str, Json] = {"event": self.name, "reference": reference, **self._encode(data)}
        wanted = [_target(target, f"{self.name}: targets[{index}]") for index, target in enumerate(targets)]
        outcomes: list[Sent] = []
        for start in range(0, len(wanted), MAX_TARGETS):
            part = {"targets": [one.model_dump() for one in wanted[start : start + MAX_TARGETS]]}
            answer = await client.api.call(MulticastEvent.model_validate(asked | part))
            outcomes += [Sent(outcome.run_id, outcome.delivered) for outcome in answer.outcomes]
        return tuple(outcomes)

    def _encode(self, data: tuple[Any, ...]) -> dict[str, Json]:
        if self._data_type is None:
            if data:
                raise TypeError(f"{self.name}: the event carries no data: give none, or define it with a type: event(name, type)")
            return {}
        if len(data) != 1:
            raise TypeError(f"{self.name}: the event carries data: give one value of it, not {len(data)}")
        at = f"{self.name}: data"
        encoded, _ = self._data_type.round_trip(data[0], at=at)
        check_size(encoded, at=at)
        return {"data": encoded}

    def _digest(self, data: tuple[Any, ...]) -> str:
        if self._data_type is None:
            return NO_INPUT_HASH
        return input_hash(self._data_type.key_value(data[0], at=f"{self.name}: data"))

    def _decode(self, data: Json) -> Any:
        return None if self._data_type is None else self._data_type.decode(data, at=f"{self.name}: data")


def _new_reference(client: Client) -> str:
    return token_text(client.entropy.token(15))


def _target(target: Target, at: str) -> RunWithId | RunWithReference:
    match target:
        case Referenced():
            return RunWithReference(workflow=target.workflow, version=target.version, reference=target.reference)
        case Handle():
            return RunWithId(run_id=target.id)
        case str():
            return RunWithId(run_id=check_run_id(target, at))
        case _:
            raise SettingsError(
                f"{at} must be a handle, version.referenced(…), or the id of a run; this is {type(target).__name__}"
            )


@overload
def event(name: str, /) -> Event[None]: ...
@overload
def event(name: str, data: TypeForm[T], /, *, json: JsonRule = "strict") -> Event[T]: ...


def event(name: str, data: object = None, /, *, json: JsonRule = "strict") -> Event[Any]:
    """Name an event, and say of what type its data is; without a type it has none.

    `json="typed"` also allows types that pydantic itself takes to JSON and back, like datetime and UUID.
    Raises SettingsError (a wrong name), NotSerializable (a type that JSON cannot hold), naming the place.
    """
    check_name(name, what="event")
    if data is None:
        return Event(name, None)
    frame = sys._getframe(1)
    names = ChainMap(frame.f_locals, frame.f_globals)
    return Event(name, JsonType(Hint(data, names), at=f"{name}: data", json=json))
