"""Running the development server: one process, nothing to install beside it, nothing left behind."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.storage.dynamodb.definition import TABLE
from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Table
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.wakeups.memory import MemoryWakeups
from aiki_push.apps.build import Ports, build_context, build_publisher, build_wire
from aiki_push.apps.devserver.listening import listen
from aiki_push.apps.devserver.local_aws import create_table, local_aws
from aiki_push.apps.devserver.options import DevServerOptions, StoreName
from aiki_push.apps.folders import make_folder
from aiki_push.apps.settings import RuntimeSettings
from aiki_push.domain.errors import AikiError
from aiki_push.server.attention.advance import Attention
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.server.context import ServerContext

HOST = "127.0.0.1"
GRACE_S = 5
TABLE_NAME = "aiki-push"
SWEEP_INTERVAL_S = 1.0
SWEEP_PLAN = SweepPlan(overdue_ms=500, lookahead_ms=0, budget_ms=5_000)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DevServer:
    """A server that is ready: its URL, the public keys that sign its pushes, and `run`, which returns when it is told to end."""

    url: str
    public_keys: tuple[str, ...]
    run: Callable[[], None]


@contextmanager
def dev_server(settings: RuntimeSettings, options: DevServerOptions) -> Iterator[DevServer]:
    """A development server. Hints and sweeps are handled until the context ends. Raises SettingsError: the port is taken."""
    with ExitStack() as stack:
        listener = stack.enter_context(listen(HOST, options.port))
        clock, entropy = SystemClock(), SystemEntropy()
        keys = CachedKeyRing(_key_file(options.home, clock, entropy).read, clock)
        wakeups = MemoryWakeups(clock)
        table = stack.enter_context(_table(options.store))
        context = build_context(settings, Ports(table, wakeups, keys, (entropy.token(32),), clock=clock, entropy=entropy))
        publisher = build_publisher(settings, context)
        stack.callback(publisher.close)
        attention = Attention(context, publisher)
        wakeups.start(attention.handle, threads=8)
        stack.callback(wakeups.stop)
        stack.enter_context(_sweeping(context, attention))
        config = uvicorn.Config(
            asgi_api(build_wire(settings, context)),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
        )
        server = uvicorn.Server(config)
        yield DevServer(
            url=f"http://{HOST}:{listener.getsockname()[1]}",
            public_keys=keys.public_keys(),
            run=lambda: server.run(sockets=[listener]),
        )


def _key_file(home: Path, clock: SystemClock, entropy: SystemEntropy) -> KeyFile:
    make_folder(home)
    path = home / "signing-keys.json"
    file = KeyFile(path, clock, entropy)
    if not path.exists():
        file.init()
    return file


@contextmanager
def _table(store: StoreName) -> Iterator[Table]:
    if store == "memory":
        yield MemoryTable()
        return
    with local_aws() as client:
        create_table(client, TABLE_NAME, TABLE)
        yield DynamoDbTable(client, TABLE_NAME)


@contextmanager
def _sweeping(context: ServerContext, attention: Attention) -> Iterator[None]:
    stopped = threading.Event()

    def keep_sweeping() -> None:
        while not stopped.wait(SWEEP_INTERVAL_S):
            try:
                sweep(context, attention, SWEEP_PLAN)
            except AikiError:
                _log.exception("a sweep failed; the next one looks at the same runs")

    thread = threading.Thread(target=keep_sweeping, name="sweep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
