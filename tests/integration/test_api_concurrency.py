"""Twenty clients and a long poll against a real server on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Barrier, Event, Thread
from typing import Any

import pytest
import uvicorn

from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.transport.http_client import HttpApi
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.errors import PayloadTooLarge, RateLimited
from aiki_push.domain.ids import ulid
from aiki_push.domain.values import RunId
from aiki_push.ports.api.endpoints import EndpointList, ListEndpoints
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun, WaitRun
from tests.unit.adapters.transport.sample_service import PATIENCE_S, SampleService
from tests.unit.adapters.transport.sample_values import RUN

CLIENTS = 20
REQUESTS = 50


@contextmanager
def serving(service: SampleService, **options: int) -> Iterator[str]:
    """The URL of a server in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        app = asgi_api(Wire(service, namespace="blue", entropy=SystemEntropy(), **options))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@asynccontextmanager
async def client_of(url: str, retry_budget_ms: int = 20_000) -> AsyncIterator[HttpApi]:
    api = HttpApi(url, clock=SystemClock(), entropy=SystemEntropy(), retry_budget_ms=retry_budget_ms)
    try:
        yield api
    finally:
        await api.close()


def run_id(client: int, index: int) -> RunId:
    return RunId(ulid(client, index.to_bytes(10, "big")))


class HeldPoll:
    """A service's answers: runs with the id that was asked for, long polls held until `leave`, endpoints when all ask at once."""

    def __init__(self) -> None:
        self.polled = Event()
        self.leave = Event()
        self._all_inside = Barrier(CLIENTS, timeout=PATIENCE_S)

    def __call__(self, operation: Operation[Any]) -> object:
        match operation:
            case ListEndpoints():
                self._all_inside.wait()
                return EndpointList(endpoints=())
            case WaitRun(run_id=asked):
                self.polled.set()
                self.leave.wait(PATIENCE_S)
                return RUN.model_copy(update={"id": asked})
            case _:
                return RUN.model_copy(update={"id": operation.model_dump()["run_id"]})


async def ask_many(url: str, client: int) -> list[tuple[RunId, RunId]]:
    """The ids that a client of its own asked for, half of them at once, and those it got."""
    async with client_of(url) as api:
        await api.call(ListEndpoints())
        ids = [run_id(client, index) for index in range(REQUESTS)]
        one_by_one = [await api.call(GetRun(run_id=one)) for one in ids[: REQUESTS // 2]]
        at_once = await asyncio.gather(*(api.call(GetRun(run_id=one)) for one in ids[REQUESTS // 2 :]))
        return [(asked, got.id) for asked, got in zip(ids, [*one_by_one, *at_once], strict=True)]


def test_twenty_clients_are_served_side_by_side_while_one_holds_a_long_poll_and_no_answer_is_mixed_up() -> None:
    answers = HeldPoll()
    poll = WaitRun(run_id=run_id(CLIENTS, 0))

    async def main(url: str) -> tuple[bool, list[list[tuple[RunId, RunId]]], RunId]:
        async with client_of(url) as api:
            waiting = asyncio.create_task(api.call(poll))
            await asyncio.to_thread(answers.polled.wait, PATIENCE_S)
            pairs = await asyncio.gather(*(ask_many(url, client) for client in range(CLIENTS)))
            is_held = not waiting.done()
            answers.leave.set()
            return is_held, pairs, (await waiting).id

    # Up to half of their requests come at once: 500, and none may be turned away here.
    with serving(SampleService(answers), max_concurrent_requests=1_000) as url:
        is_held, pairs, polled = asyncio.run(main(url))
    expected = [[(one, one) for one in (run_id(client, index) for index in range(REQUESTS))] for client in range(CLIENTS)]
    assert (is_held, pairs, polled) == (True, expected, poll.run_id)


def test_clients_that_are_turned_away_come_back_until_they_are_served() -> None:
    async def main(url: str) -> list[RunId]:
        async with client_of(url) as api:
            runs = await asyncio.gather(*(api.call(GetRun(run_id=run_id(0, index))) for index in range(100)))
            return [run.id for run in runs]

    with serving(SampleService(HeldPoll()), max_concurrent_requests=2) as url:
        assert asyncio.run(main(url)) == [run_id(0, index) for index in range(100)]


def test_a_client_without_time_to_come_back_is_told_why() -> None:
    answers = HeldPoll()

    async def main(url: str) -> None:
        async with client_of(url, retry_budget_ms=0) as api:
            waiting = asyncio.create_task(api.call(WaitRun(run_id=run_id(0, 0))))
            await asyncio.to_thread(answers.polled.wait, PATIENCE_S)
            with pytest.raises(RateLimited, match="^the server takes 1 at a time"):
                await api.call(GetRun(run_id=run_id(0, 1)))
            answers.leave.set()
            await waiting

    with serving(SampleService(answers), max_concurrent_requests=1) as url:
        asyncio.run(main(url))


@pytest.mark.parametrize("size", [2_000_000, 50_000_000])
def test_a_client_that_sends_too_much_learns_of_it(size: int) -> None:
    service = SampleService(RUN)

    async def main(url: str) -> None:
        async with client_of(url, retry_budget_ms=0) as api:
            with pytest.raises(PayloadTooLarge):
                await api.call(StartRun(workflow="order", version="1", input="x" * size))

    with serving(service, max_body_bytes=1_000_000) as url:
        asyncio.run(main(url))
    assert service.calls == []
