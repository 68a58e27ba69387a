"""What is refused of an event: before anything is sent or recorded, and by a sentence that names place and fix."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from aiki_push import Run, event
from aiki_push.errors import NotSerializable, PayloadTooLarge, SettingsError
from aiki_push.sdk.run_handle import Handle
from tests.unit.sdk.bodies import output_of, refusal_of, version_of
from tests.unit.sdk.recording_api import RecordingApi

RUN_ID = "01M8MER5BZSFP81HXYFC8VWCSD"


class Payment(BaseModel):
    transaction_id: str
    cents: int = 5


class Refund(Payment):
    reason: str = "none"


PAYMENT = Payment(transaction_id="t-1")
WRONG_PAYMENT = Payment.model_construct(transaction_id=5, cents="5")  # type: ignore[arg-type]  # what is looked at
paid: Any = event("paid", Payment)
stopped: Any = event("stopped")
anything: Any = event("anything", object)
"""As code without type hints uses them."""


async def noop(run: Run) -> Any: ...


async def refused_outside(call: Callable[[Any, Handle[Any]], Awaitable[Any]]) -> tuple[str, str]:
    """The name and message of the error that `call` with a client and a handle raises, before anything is asked of the server."""
    api = RecordingApi()
    client = api.client()
    handle = await version_of(noop).start(client)
    api.called.clear()
    with pytest.raises(Exception) as refused:  # noqa: PT011 - what it is, the test says
        await call(client, handle)
    assert api.called == []
    return refused.type.__name__, str(refused.value)


WRONG_NAMES = ["", "a b", "paid#1", "ü", "a" * 129, 5, None]


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_a_wrong_name_is_refused_when_the_event_is_defined(name: Any) -> None:
    with pytest.raises(SettingsError) as refused:
        event(name)
    assert str(refused.value) == f"{name!r} cannot name an event: use 1 to 128 letters, digits, and . _ : -"


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (datetime, 'paid: data is datetime: use str (ISO 8601) or int (milliseconds), or allow it with json="typed"'),
        (set[str], "paid: data is set[str]: it has no order; use list"),
        (dict[str, bytes], "paid: data[] is bytes: use str (base64)"),
    ],
)
def test_a_type_that_json_cannot_hold_is_refused_when_the_event_is_defined(declared: Any, sentence: str) -> None:
    with pytest.raises(NotSerializable) as refused:
        event("paid", declared)
    assert str(refused.value) == sentence


async def test_a_type_that_does_not_exist_is_named_when_it_is_first_needed() -> None:
    declared: Any = list["Ordr"]  # type: ignore[name-defined]  # noqa: F821 - the mistake
    late: Any = event("paid", declared)
    assert await refused_outside(lambda _, handle: late.send(handle, [])) == (
        "SettingsError",
        "paid: data uses the name Ordr, which does not exist: define or import it where the type is declared, "
        "not only for type checkers",
    )


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("delay", timedelta(1), "paid has no option 'delay'; the only option of an event is \"reference.id\""),
        ("reference.id", "", "paid: reference.id must be a str of 1 to 256 characters without control characters"),
        ("reference.id", "a\n", "paid: reference.id must be a str of 1 to 256 characters without control characters"),
        ("reference.id", "a" * 257, "paid: reference.id must be a str of 1 to 256 characters without control characters"),
        ("reference.id", 5, "paid: reference.id must be a str of 1 to 256 characters without control characters; it is int"),
    ],
)
def test_a_wrong_option_is_refused(path: str, value: Any, sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        paid.with_(path, value)
    assert str(refused.value) == sentence


WRONG_DATA: list[tuple[Any, tuple[Any, ...], str, str]] = [
    (paid, (), "TypeError", "paid: the event carries data: give one value of it, not 0"),
    (paid, (PAYMENT, PAYMENT), "TypeError", "paid: the event carries data: give one value of it, not 2"),
    (
        stopped,
        (PAYMENT,),
        "TypeError",
        "stopped: the event carries no data: give none, or define it with a type: event(name, type)",
    ),
    (
        paid,
        (WRONG_PAYMENT,),
        "InvalidValue",
        "paid: data does not fit Payment: transaction_id: Input should be a valid string; cents: Input should be a valid integer",
    ),
    (paid, ({"transaction_id": "t-1"},), "NotSerializable", "paid: data is dict and came back from JSON as Payment"),
    (paid, (Refund(transaction_id="t-1"),), "NotSerializable", "paid: data is Refund and came back from JSON as Payment"),
    (
        anything,
        ({"a": [1, {2}]},),
        "NotSerializable",
        "anything: data.a[1] is set: use None, bool, int, float, str, list or dict",
    ),
    (anything, ("a" * 262_143,), "PayloadTooLarge", "anything: data has 262145 bytes of JSON; the limit is 262144"),
]


@pytest.mark.parametrize(("told", "data", "error", "sentence"), WRONG_DATA)
async def test_wrong_data_is_refused_before_it_is_sent(told: Any, data: tuple[Any, ...], error: str, sentence: str) -> None:
    assert await refused_outside(lambda _, handle: told.send(handle, *data)) == (error, sentence)
    assert await refused_outside(lambda client, handle: told.multicast(client, [handle], *data)) == (error, sentence)


@pytest.mark.parametrize(("told", "data", "error", "sentence"), WRONG_DATA)
def test_wrong_data_is_refused_before_a_workflows_call_is_recorded(
    told: Any, data: tuple[Any, ...], error: str, sentence: str
) -> None:
    assert refusal_of(lambda run: told.send(run.peer(RUN_ID), *data)) == (error, sentence)


@pytest.mark.parametrize(
    ("target", "kind"), [(RUN_ID, "str"), (None, "NoneType"), (version_of(noop).referenced("order-123"), "Referenced")]
)
async def test_an_event_is_sent_to_a_handle_or_a_peer_only(target: Any, kind: str) -> None:
    assert await refused_outside(lambda _, handle: stopped.send(target)) == (
        "SettingsError",
        f"stopped: an event is sent to a handle, in a workflow to a child or a peer; this is {kind}",
    )


ULID = "must be the id of a run, a ULID of 26 digits and capital letters"


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([RUN_ID, "order-123"], f"stopped: targets[1] {ULID}"),
        (RUN_ID, f"stopped: targets[0] {ULID}"),
        ([RUN_ID, 5], "stopped: targets[1] must be a handle, version.referenced(…), or the id of a run; this is int"),
    ],
)
async def test_a_target_of_a_multicast_that_is_none_is_refused_by_its_place(targets: Any, sentence: str) -> None:
    assert await refused_outside(lambda client, handle: stopped.multicast(client, targets)) == ("SettingsError", sentence)


def test_a_peer_is_no_target_of_a_multicast() -> None:
    client = RecordingApi().client()
    assert refusal_of(lambda run: stopped.multicast(client, [run.peer(RUN_ID)])) == (
        "SettingsError",
        "stopped: targets[0] must be a handle, version.referenced(…), or the id of a run; this is Peer",
    )


WRONG_TIMEOUTS = [
    (5, "must be a timedelta, not int"),
    ("5 days", "must be a timedelta, not str"),
    (timedelta(0), "must be longer than zero"),
    (timedelta(seconds=-1), "must be longer than zero"),
    (timedelta(days=3_651), "must not be longer than ten years (3650 days)"),
]


@pytest.mark.parametrize(("timeout", "sentence"), WRONG_TIMEOUTS)
def test_a_timeout_that_is_no_length_of_time_is_refused_by_the_events_name(timeout: Any, sentence: str) -> None:
    assert refusal_of(lambda run: paid.wait(run, timeout=timeout)) == ("SettingsError", f"paid: timeout {sentence}")


@pytest.mark.parametrize("reference", ["", 5, "a\n"])
def test_a_reference_that_no_run_can_have_is_refused(reference: Any) -> None:
    version: Any = version_of(noop)
    with pytest.raises(SettingsError, match=r"^tested 1\.0\.0: reference must be a str of 1 to 256 characters"):
        version.referenced(reference)


def test_what_is_refused_can_be_caught_and_the_workflow_goes_on() -> None:
    async def body(run: Run) -> Any:
        try:
            await anything.send(run.peer(RUN_ID), "a" * 300_000)
        except PayloadTooLarge as error:
            return error.fields["size"]

    assert output_of(body) == 300_002
