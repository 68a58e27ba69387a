"""The thread that keeps a claim: it refreshes and asks for news, however often each is due."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

import pytest

from aiki_push.adapters.system import SystemClock
from aiki_push.domain.values import RunId
from aiki_push.ports.api.claims import GetInbox, Inbox, RefreshClaim
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.operation import Api, Operation
from aiki_push.sdk.replay.claim_keeper import ThreadKeeper
from tests.integration.controls import call, cancel
from tests.integration.owners import claim, start
from tests.local_system import LocalSystem

R = TypeVar("R")

PATIENCE_S = 10.0


@dataclass
class Heard:
    """What a keeper told, and when it told anything at all."""

    news: list[Inbox] = field(default_factory=list)
    is_told: threading.Event = field(default_factory=threading.Event)
    is_lost: threading.Event = field(default_factory=threading.Event)

    def hear(self, inbox: Inbox) -> None:
        self.news.append(inbox)
        self.is_told.set()


@dataclass
class NotingApi:
    """An Api that notes which operations it is asked for, and says when both kinds of question were."""

    api: Api
    asked: set[str] = field(default_factory=set)
    is_asked_for_both: threading.Event = field(default_factory=threading.Event)

    async def call(self, operation: Operation[R]) -> R:
        answer = await self.api.call(operation)
        self.asked.add(operation.operation)
        if self.asked >= {RefreshClaim.operation, GetInbox.operation}:
            self.is_asked_for_both.set()
        return answer

    async def close(self) -> None:
        await self.api.close()


def keeper_of(system: LocalSystem, run_id: RunId, api: Callable[[], Api], heard: Heard, *, interval_ms: int) -> ThreadKeeper:
    claimed = claim(system, run_id)
    return ThreadKeeper(api, claimed, interval_ms=interval_ms, clock=SystemClock(), on_lost=heard.is_lost.set, on_news=heard.hear)


@pytest.mark.parametrize("interval_ms", [5, 20])
def test_a_claim_that_is_refreshed_all_the_time_is_asked_for_news_too(interval_ms: int) -> None:
    system, heard = LocalSystem(), Heard()
    api = NotingApi(system.api())
    run_id = start(system)
    keeper = keeper_of(system, run_id, lambda: cast(Api, api), heard, interval_ms=interval_ms)
    keeper.start()
    try:
        assert api.is_asked_for_both.wait(PATIENCE_S)
        call(system, SendEvent(run_id=run_id, event="paid"))
        assert heard.is_told.wait(PATIENCE_S)
        assert [message.key for message in heard.news[0].messages] == ["paid"]
        cancel(system, run_id)
        assert heard.is_lost.wait(PATIENCE_S)
    finally:
        keeper.stop()


def test_a_keeper_that_is_stopped_before_its_first_question_makes_no_connection() -> None:
    system, heard = LocalSystem(), Heard()
    made: list[Api] = []

    def connect() -> Api:
        made.append(system.api())
        return made[-1]

    keeper = keeper_of(system, start(system), connect, heard, interval_ms=30_000)
    keeper.start()
    keeper.stop()
    for thread in threading.enumerate():
        if thread.name.startswith("claim of"):
            thread.join(PATIENCE_S)
    assert made == []
