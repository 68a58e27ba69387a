"""The whole system in processes of its own: a development server and endpoints, and what a test asks of them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from aiki_push import Client, Finished, Handle
from aiki_push.domain.log_records import AnyRecord, CallEnded, TaskStarted, Transition
from aiki_push.domain.run_states import Queued, Status
from aiki_push.domain.values import RunId
from aiki_push.ports.api.endpoints import DeleteEndpoint, PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.runs import GetHistory, GetRun, ListRuns, RunView
from tests.e2e import waiting
from tests.e2e.processes import CLOCK, PATIENCE_S, Process, Processes, is_listening, until

T = TypeVar("T")

IDLE_TIMEOUT_MS = 5_000
REFRESH_MS = 500
IDLE_TIMEOUT = "AIKI_DAEMONS__RECOVER_OVERDUE_OUTBOX_ENTRIES__CLAIM_IDLE_TIMEOUT_MS"

AIKI_PUSH = Path(sys.executable).with_name("aiki-push")
WORKFLOWS = tuple(WorkflowVersionField(name=one.name, version=one.version) for one in waiting.ALL)


@dataclass(frozen=True, slots=True)
class DevServer:
    """A development server that is listening. `home` has its signing keys."""

    process: Process
    url: str
    public_keys: str
    home: Path


def start_server(
    processes: Processes, *, store: str = "memory", idle_timeout_ms: int = IDLE_TIMEOUT_MS, **environment: str
) -> DevServer:
    """`aiki-push dev` on a free port."""
    home = processes.folder / "server"
    command = [str(AIKI_PUSH), "dev", "--port", "0", "--store", store, "--home", str(home)]
    process = processes.start("server", command, {IDLE_TIMEOUT: str(idle_timeout_ms), **environment})
    url = process.find(r"http://127\.0\.0\.1:\d+")
    server = DevServer(process, url, process.find(r"(?<=endpoints trust: )\S.*"), home)
    until(lambda: is_listening(int(url.rpartition(":")[2])), "the server listening")
    return server


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that is listening; whether it is registered is another matter."""

    name: str
    process: Process
    url: str


class System:
    """A server, what a client can ask of it, and endpoints that are started on demand. `client` calls the server directly."""

    def __init__(self, processes: Processes, server: DevServer) -> None:
        self.processes = processes
        self.server = server
        self.client = Client(url=server.url, retry_budget_ms=PATIENCE_S * 1_000)

    def start_endpoint(
        self,
        name: str,
        *,
        server_url: str | None = None,
        refresh_ms: int = REFRESH_MS,
        module: str = "tests.e2e.endpoint_process",
    ) -> Endpoint:
        """An endpoint that reaches the server at `server_url`, by default directly. `module` is what the process executes."""
        environment = {
            "E2E_SERVER_URL": server_url or self.server.url,
            "E2E_PUBLIC_KEYS": self.server.public_keys,
            "E2E_EXECUTOR": name,
            "E2E_FOLDER": str(self.processes.folder),
            "E2E_REFRESH_MS": str(refresh_ms),
        }
        process = self.processes.python(name, ["-m", module], environment)
        url = process.find(r"http://127\.0\.0\.1:\d+/")
        until(lambda: is_listening(int(url.strip("/").rpartition(":")[2])), f"endpoint {name} listening")
        return Endpoint(name, process, url)

    async def register(self, endpoint: Endpoint, *pools: str) -> None:
        """From now on runs are pushed to it: those of these pools, or where none is named those without a pool."""
        request = PutEndpoint(endpoint_id=endpoint.name, url=endpoint.url, workflows=WORKFLOWS, pools=pools)
        await self.client.api.call(request)

    async def deregister(self, endpoint: Endpoint) -> None:
        """From now on they are not."""
        await self.client.api.call(DeleteEndpoint(endpoint_id=endpoint.name))

    async def run(self, run_id: str) -> RunView:
        """The run, as it stands now."""
        return await self.client.api.call(GetRun(run_id=RunId(run_id)))

    async def standing(self, run_id: str) -> tuple[int, str, str | None]:
        """The run's revision, its status, and who executes it."""
        run = await self.run(run_id)
        return run.revision, run.state.status, run.claim.executor if run.claim else None

    async def until_revision(self, run_id: str, revision: int) -> None:
        """Return once the run has this revision, or a later one."""
        await self._until(run_id, lambda run: run.revision >= revision, f"revision {revision}")

    async def until_status(self, run_id: str, status: Status) -> None:
        """Return once the run is seen in this state."""
        await self._until(run_id, lambda run: run.state.status == status, status)

    async def _until(self, run_id: str, is_reached: Callable[[RunView], bool], what: str) -> None:
        ends_at_ms = CLOCK.monotonic_ms() + PATIENCE_S * 1_000
        while not is_reached(run := await self.run(run_id)):
            assert CLOCK.monotonic_ms() < ends_at_ms, f"after {PATIENCE_S} s the run is not at {what} yet: {run}"
            await asyncio.sleep(0.05)

    async def records(self, run_id: str) -> list[AnyRecord]:
        """What the run did so far; it must not be too much for one page."""
        page = await self.client.api.call(GetHistory(run_id=RunId(run_id)))
        assert page.next_cursor is None
        return [entry.record for entry in page.entries]

    async def children(self, run_id: str) -> list[RunId]:
        """The runs that the run says it has created, in their order."""
        calls = [one for one in await self.records(run_id) if isinstance(one, CallEnded) and one.kind == "child"]
        assert {one.result for one in calls} <= {"created"}
        return [one.run_id for one in calls]

    async def runs_of(self, workflow: str) -> set[RunId]:
        """Every run of that workflow that there is; not more than a hundred."""
        page = await self.client.api.call(ListRuns(workflow=workflow, limit=100))
        assert page.next_cursor is None
        return {run.id for run in page.runs}

    async def story(self, run_id: str) -> list[str]:
        """The states that the run went through; what was queued with the reason."""
        states = [one.state for one in await self.records(run_id) if isinstance(one, Transition)]
        return [f"{one.status}: {one.reason}" if isinstance(one, Queued) else one.status for one in states]


async def end_of(handle: Handle[T]) -> Finished[T]:
    """How the run ended, once it has."""
    finished = await handle.wait(timeout=timedelta(seconds=PATIENCE_S))
    assert isinstance(finished, Finished), f"after {PATIENCE_S} s the run has not ended yet: {handle.run}"
    return finished


async def transitions(handle: Handle[T]) -> list[tuple[int, str, str | None]]:
    """Revision, status and executor of each."""
    records = [entry.record async for entry in handle.history()]
    return [(one.revision, one.state.status, one.executor) for one in records if isinstance(one, Transition)]


async def attempts(handle: Handle[T]) -> list[tuple[str, int]]:
    """Task and attempt of each recorded start."""
    return [
        (entry.record.name, entry.record.attempt) async for entry in handle.history() if isinstance(entry.record, TaskStarted)
    ]


@asynccontextmanager
async def system_in(
    processes: Processes, *, store: str = "memory", idle_timeout_ms: int = IDLE_TIMEOUT_MS
) -> AsyncIterator[System]:
    """A system without endpoints."""
    system = System(processes, start_server(processes, store=store, idle_timeout_ms=idle_timeout_ms))
    try:
        yield system
    finally:
        await system.client.close()
