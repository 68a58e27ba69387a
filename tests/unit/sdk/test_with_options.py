"""`with_`: what it sets, what it leaves alone, and what it refuses."""

from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Duration, Run, SingleStart, WorkflowVersion, exponential, never, task, workflow
from aiki_push.domain.errors import SettingsError
from tests.unit.sdk.recording_api import RecordingApi


@workflow("order-processing").v("1.0.0")
async def order(run: Run, order_id: str) -> str:
    return order_id


OPTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "retry",
        exponential(max_attempts=3, base_delay_ms=1_000),
        {
            "options": {
                "retry": {
                    "type": "exponential",
                    "max_attempts": 3,
                    "base_delay_ms": 1_000,
                    "factor": 2.0,
                    "max_delay_ms": None,
                    "non_retryable": (),
                },
            }
        },
    ),
    ("pool", "tenant-acme", {"options": {"pool": "tenant-acme"}}),
    ("priority", 0, {"options": {"priority": 0}}),
    ("priority", 9, {"options": {"priority": 9}}),
    ("delay", timedelta(seconds=30), {"options": {"delay_ms": 30_000}}),
    ("delay", Duration(hours=1, minutes=30), {"options": {"delay_ms": 5_400_000}}),
    ("reference.id", "order-123", {"options": {}, "reference": {"id": "order-123"}}),
    ("reference", {"id": "order-123"}, {"options": {}, "reference": {"id": "order-123"}}),
    (
        "reference",
        {"id": "Ä b#1", "conflict_policy": "return_existing"},
        {"options": {}, "reference": {"id": "Ä b#1", "conflict_policy": "return_existing"}},
    ),
]

SINGLE = {"delay", "reference", "reference.id", "reference.conflict_policy"}


async def sent_by(startable: Any) -> dict[str, Any]:
    """What starting it asks the server for."""
    api = RecordingApi()
    await startable.start(api.client(), "123")
    return {name: value for name, value in api.sent.items() if name in ("options", "reference")}


def set_option(startable: Any, path: str, value: object) -> Any:
    """`with_` as untyped code calls it."""
    return startable.with_(path, value)


@pytest.mark.parametrize(("path", "value", "sent"), OPTIONS)
async def test_an_option_travels_with_the_start_and_the_original_keeps_its_own(
    path: str, value: Any, sent: dict[str, Any]
) -> None:
    configured = set_option(order, path, value)
    assert await sent_by(configured) == sent
    assert await sent_by(order) == {"options": {}}
    assert isinstance(configured, SingleStart if path in SINGLE else WorkflowVersion)


async def test_a_start_names_workflow_version_and_input() -> None:
    api = RecordingApi()
    await order.start(api.client(), "123")
    expected = {"workflow": "order-processing", "version": "1.0.0", "input": "123", "options": {}}
    assert api.sent == expected


async def test_options_are_chained_and_the_later_one_wins() -> None:
    first = order.with_("pool", "one").with_("priority", 1)
    second = first.with_("pool", "two")
    single = second.with_("reference.conflict_policy", "return_existing").with_("reference.id", "a")
    other = single.with_("reference.id", "b").with_("priority", 2).with_("delay", timedelta(milliseconds=5))
    again = other.with_("reference", {"id": "c"})
    assert [await sent_by(each) for each in (first, second, single, other, again)] == [
        {"options": {"pool": "one", "priority": 1}},
        {"options": {"pool": "two", "priority": 1}},
        {"options": {"pool": "two", "priority": 1}, "reference": {"id": "a", "conflict_policy": "return_existing"}},
        {
            "options": {"pool": "two", "priority": 2, "delay_ms": 5},
            "reference": {"id": "b", "conflict_policy": "return_existing"},
        },
        {"options": {"pool": "two", "priority": 2, "delay_ms": 5}, "reference": {"id": "c"}},
    ]


async def test_a_version_is_defined_with_options_and_with_replaces_them() -> None:
    @workflow("defined").v("1.0.0", retry=never(), pool="tenant-acme", priority=0)
    async def defined(run: Run, order_id: str) -> str:
        return order_id

    never_again = {"type": "never", "non_retryable": ()}
    assert await sent_by(defined) == {"options": {"pool": "tenant-acme", "priority": 0, "retry": never_again}}
    assert await sent_by(defined.with_("priority", 3)) == {
        "options": {"pool": "tenant-acme", "priority": 3, "retry": never_again}
    }


PRIORITY = "order-processing 1.0.0: priority must be an int from 0 (goes first) to 9 (goes last); it is"
POOL = "order-processing 1.0.0: pool must be the name of a pool: 1 to 128 letters, digits, and . _ : -"
RETRY = "order-processing 1.0.0: retry must be made by exponential(), fixed(), jittered() or never(); it is"
REFERENCE_ID = "reference.id must be a str of 1 to 256 characters without control characters"
REFERENCE = 'order-processing 1.0.0: reference must be a dict with "id", and "conflict_policy" if wanted'
POLICY = 'conflict_policy must be "error" or "return_existing"; it is'
PATHS = '"retry", "pool", "priority", "delay", "reference", "reference.id", "reference.conflict_policy"'

REFUSED: list[tuple[Any, Any, str]] = [
    ("reference.di", "a", f"order-processing 1.0.0 has no option 'reference.di'; its options are {PATHS}"),
    (5, "a", f"order-processing 1.0.0 has no option 5; its options are {PATHS}"),
    ("pools", "a", f"order-processing 1.0.0 has no option 'pools'; its options are {PATHS}"),
    ("priority", 10, f"{PRIORITY} 10"),
    ("priority", -1, f"{PRIORITY} -1"),
    ("priority", True, f"{PRIORITY} bool"),
    ("priority", "5", f"{PRIORITY} str"),
    ("pool", "a b", POOL),
    ("pool", "a\n", POOL),
    ("pool", "", POOL),
    ("pool", None, POOL),
    ("retry", {"type": "never"}, f"{RETRY} dict"),
    ("retry", None, f"{RETRY} None"),
    ("delay", 30, "order-processing 1.0.0: delay must be a timedelta, not int"),
    ("delay", timedelta(0), "order-processing 1.0.0: delay must be longer than zero"),
    ("delay", timedelta(days=4_000), "order-processing 1.0.0: delay must not be longer than ten years (3650 days)"),
    ("reference.id", 123, f"order-processing 1.0.0: {REFERENCE_ID}; it is int"),
    ("reference.id", "", f"order-processing 1.0.0: {REFERENCE_ID}"),
    ("reference.id", "a" * 257, f"order-processing 1.0.0: {REFERENCE_ID}"),
    ("reference.id", "a\n", f"order-processing 1.0.0: {REFERENCE_ID}"),
    ("reference.id", "\ud800", f"order-processing 1.0.0: {REFERENCE_ID}"),
    ("reference", "a", REFERENCE),
    ("reference", {}, REFERENCE),
    ("reference", {"id": "a", "policy": "error"}, REFERENCE),
    ("reference", {"id": 5}, f"order-processing 1.0.0: reference.{REFERENCE_ID.removeprefix('reference.')}; it is int"),
    ("reference", {"id": "a", "conflict_policy": "replace"}, f"order-processing 1.0.0: reference.{POLICY} str"),
    ("reference.conflict_policy", "replace", f"order-processing 1.0.0: reference.{POLICY} str"),
    ("reference.conflict_policy", ["error"], f"order-processing 1.0.0: reference.{POLICY} list"),
]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("path", "value", "sentence"), REFUSED)
def test_a_wrong_path_or_value_is_refused_by_name(path: Any, value: Any, sentence: str, *, single: bool) -> None:
    with pytest.raises(SettingsError) as refused:
        set_option(order.with_("delay", timedelta(1)) if single else order, path, value)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"pool": "a b"}, "defined 1.0.0: pool must be the name of a pool: 1 to 128 letters, digits, and . _ : -"),
        ({"priority": 10}, "defined 1.0.0: priority must be an int from 0 (goes first) to 9 (goes last); it is 10"),
        ({"retry": 3}, "defined 1.0.0: retry must be made by exponential(), fixed(), jittered() or never(); it is int"),
    ],
)
def test_a_version_is_not_defined_with_a_wrong_option(option: Any, sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        workflow("defined").v("1.0.0", **option)
    assert str(refused.value) == sentence


async def test_a_conflict_policy_without_a_reference_is_refused_before_anything_is_sent() -> None:
    api = RecordingApi()
    with pytest.raises(SettingsError) as refused:
        await order.with_("reference.conflict_policy", "error").start(api.client(), "123")
    assert str(refused.value) == (
        "order-processing 1.0.0: reference.conflict_policy says what a second start with one reference.id gets: "
        "set reference.id too"
    )
    assert api.called == []


def test_a_single_start_can_be_started_and_given_options_and_nothing_else() -> None:
    single = order.with_("reference.id", "order-123")
    assert {name for name in dir(single) if not name.startswith("_")} == {"start", "start_as_child", "with_"}
    assert repr(single) == "SingleStart(order-processing 1.0.0)"


def test_a_task_has_only_the_option_retry() -> None:
    @task("ship")
    def ship(order_id: str) -> str:
        return order_id

    wrong = [("pool", "a"), ("retry", 3)]
    sentences = []
    for path, value in wrong:
        with pytest.raises(SettingsError) as refused:
            set_option(ship, path, value)
        sentences.append(str(refused.value))
    assert sentences == [
        "ship has no option 'pool'; the only option of a task is \"retry\"",
        "ship: retry must be made by exponential(), fixed(), jittered() or never(); it is int",
    ]


def test_a_task_is_not_defined_with_a_wrong_strategy() -> None:
    wrong: Any = {"type": "never"}
    with pytest.raises(SettingsError) as refused:
        task("ship", retry=wrong)
    assert str(refused.value) == "ship: retry must be made by exponential(), fixed(), jittered() or never(); it is dict"
