"""Whatever the kind of value, a workflow sees the same on its first run and on every replay, and so does who waits for it."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from aiki_push import Run, task, workflow
from aiki_push.sdk.types.allowed import JsonRule
from tests.integration.replays import Replaying
from tests.unit.sdk.types.test_round_trips import KEPT, same


class Colour(Enum):
    RED = "red"
    BLUE = 2


class Receipt(BaseModel):
    at: datetime
    lines: tuple[Decimal, ...] = ()
    of: UUID | None = None


MOMENT = datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC)

TYPED: list[tuple[Any, Any]] = [
    (datetime, MOMENT),
    (datetime, datetime(2024, 2, 29)),  # noqa: DTZ001 - a time without a zone is kept as one
    (date, date(2024, 2, 29)),
    (time, time(12, 30, 15)),
    (timedelta, timedelta(days=1, milliseconds=5)),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=1)),
    (Path, Path("a/b")),
    (PurePosixPath, PurePosixPath("a/b")),
    (bytes, b"abc"),
    (Colour, Colour.BLUE),
    (tuple[int, ...], (1, 2, 3)),
    (deque[int], deque([1, 2])),
    (Sequence[int], [1, 2]),
    (Mapping[str, int], {"a": 1}),
    (dict[int, str], {1: "a"}),
    (dict[UUID, list[date]], {UUID(int=1): [date(2024, 2, 29)]}),
    (Receipt, Receipt(at=MOMENT, lines=(Decimal("1.10"), Decimal("2")), of=UUID(int=2))),
    (list[Receipt | None], [Receipt(at=MOMENT), None]),
]

CASES: list[tuple[JsonRule, Any, Any]] = [
    *(("strict", declared, value) for declared, value, _ in KEPT),
    *(("typed", declared, value) for declared, value in TYPED),
]


@pytest.mark.parametrize(("rule", "declared", "value"), CASES, ids=lambda value: str(value)[:30])
async def test_a_value_is_equal_and_of_the_same_type_at_first_and_on_five_replays(
    rule: JsonRule, declared: Any, value: Any
) -> None:
    seen: list[Any] = []

    @task("echo", input=declared, output=declared, json=rule)
    def echo(given: Any) -> Any:
        seen.append(given)
        return given

    @workflow("values").v("1.0.0", input=declared, output=declared, json=rule)
    async def values(run: Run, given: Any) -> Any:
        output = await echo.start(run, given)
        seen.extend((given, output))
        for _ in range(5):
            await asyncio.sleep(60)
        return output

    stage = Replaying(values)
    handle = await values.start(stage.client, value)
    assert await stage.execute(handle.id) == [*5 * ["parked"], "completed"]
    seen.append((await handle.wait()).value())
    assert len(seen) == 1 + 6 * 2 + 1
    assert all(same(each, seen[0]) for each in seen)
    assert (seen[0], type(seen[0])) == (value, type(value))
    assert rule == "typed" or same(seen[0], value)  # pydantic's UTC is another object than the standard library's
