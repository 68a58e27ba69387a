"""Histories as they are exported, and what must come with them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from aiki_push import Run, task, workflow
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.log_records import AnyRecord, Received
from aiki_push.domain.values import Json
from aiki_push.ports.api.runs import History, HistoryEntry
from aiki_push.testing import Harness, Replayed, replay
from tests.integration.orders_to_replay import ORIGINAL, Order, history_of


@pytest.fixture(scope="module")
def ended() -> Sequence[AnyRecord]:
    return history_of(ORIGINAL, days=40)


def exports(records: Sequence[AnyRecord]) -> dict[str, Any]:
    entries = [HistoryEntry(position=position, record=record) for position, record in enumerate(records)]
    dumped: list[Json] = [entry.model_dump(mode="json") for entry in entries]
    return {
        "entries": entries,
        "entries as JSON": dumped,
        "records as JSON": [record.model_dump(mode="json") for record in records],
        "one page": {"entries": dumped, "next_cursor": None},
        "two pages": [{"entries": dumped[:2], "next_cursor": "more"}, {"entries": dumped[2:]}],
        "pages as objects": [History(entries=tuple(entries))],
        "text": json.dumps({"entries": dumped}),
        "bytes": json.dumps(dumped).encode(),
    }


@pytest.mark.parametrize("form", exports([]))
def test_every_form_of_an_export_is_read(ended: Sequence[AnyRecord], form: str) -> None:
    assert replay(ORIGINAL, exports(ended)[form]) == Replayed(has_ended=True, output="shipped 7")


def test_the_history_of_a_handle_is_read() -> None:
    with Harness(ORIGINAL) as harness:

        async def scenario() -> list[HistoryEntry]:
            handle = await ORIGINAL.start(harness.client, Order(order_id="7"))
            await handle.wait()
            return [entry async for entry in handle.history()]

        assert replay(ORIGINAL, harness.run(scenario())).output == "shipped 7"


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        ("{", "the history is not JSON"),
        ([], "does not begin with the run's input"),
        ([{"type": "task_started", "at": "late"}], "the history cannot be read"),
        ({"entries": [], "next_cursor": "more"}, "does not begin with the run's input"),
    ],
)
def test_what_is_no_history_is_refused(history: Any, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        replay(ORIGINAL, history)


def test_a_history_with_pages_missing_is_refused(ended: Sequence[AnyRecord]) -> None:
    pages = exports(ended)["two pages"]
    with pytest.raises(SettingsError, match="goes on after its last page"):
        replay(ORIGINAL, pages[:1])


def test_a_value_that_is_not_in_the_history_must_be_given() -> None:
    large = "x" * 50_000

    @task("write")
    async def write() -> str:
        return large

    @workflow("writing").v("1.0.0")
    async def writing(run: Run) -> int:
        return len(await write.start(run))

    with Harness(writing) as harness:

        async def scenario() -> str:
            handle = await writing.start(harness.client)
            await handle.wait()
            return handle.id

        records = harness.records(harness.run(scenario()))
    with pytest.raises(SettingsError, match="values that are not in it: [0-9a-f]{64};") as raised:
        replay(writing, records)
    (sha256,) = [word.rstrip(";") for word in str(raised.value).split() if len(word) == 65]
    assert replay(writing, records, values={sha256: large}).output == 50_000


def test_a_message_that_was_received_must_be_given(ended: Sequence[AnyRecord]) -> None:
    received = Received(at=ended[-1].at, seq=3, kind="event", key="paid", ordinal=0)
    with pytest.raises(SettingsError, match="messages that are not given: 3;"):
        replay(ORIGINAL, [*ended, received])
