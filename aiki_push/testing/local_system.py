"""A whole system in one process, over any table."""

from collections.abc import Callable, Sequence

from aiki_push.adapters.signing.ed25519 import generate_signing_key
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.embedded import EmbeddedApi
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord
from aiki_push.domain.run import Run
from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.store import Store
from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.server.attention.advance import Attention
from aiki_push.server.context import ServerContext
from aiki_push.server.seals import Seals
from aiki_push.server.service import Server
from aiki_push.testing.faulty_api import FaultyApi
from aiki_push.testing.recorders import RecordingPublisher, RecordingWakeups

NAMESPACE = "default"


class LocalSystem:
    """A server on `table` (memory by default) with recording wake-ups and publisher, and executors that call it in process.

    `clock` and `entropy` are the server's and the executors'; a FakeClock lets claims go stale at will. `store` makes another store
    on the table.
    """

    def __init__(
        self,
        table: Table | None = None,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        limits: Limits = Limits(),
        store: Callable[[Table, Clock, Entropy], Store] = SingleTableStore,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.entropy: Entropy = entropy or SystemEntropy()
        self.table = table or MemoryTable()
        self.store = store(self.table, self.clock, self.entropy)
        self.wakeups = RecordingWakeups()
        self.publisher = RecordingPublisher()
        keys = KeySet(active=ActiveKey(secret=generate_signing_key(self.entropy), created_at=self.clock.now()))
        self.context = ServerContext(
            store=self.store,
            payloads=TablePayloadStore(self.table, self.clock, self.entropy),
            clock=self.clock,
            entropy=self.entropy,
            wakeups=self.wakeups,
            seals=Seals([b"a secret of thirty-two bytes or so"]),
            keys=CachedKeyRing(lambda: keys, self.clock),
            limits=limits,
            allow_loopback_http=True,
        )
        self.server = Server(self.context)
        self.attention = Attention(self.context, self.publisher)

    def api(self) -> Api:
        """The server's API, called on the event loop itself."""
        return EmbeddedApi(self.server, NAMESPACE, inline=True)

    def client(self, api: Api | None = None) -> Client:
        """A client of this server, or of `api` (say a FaultyApi around one)."""
        return Client(lambda: api or self.api(), clock=self.clock, entropy=self.entropy)

    def faulty_api(self) -> FaultyApi:
        """The server's API with hooks for faults."""
        return FaultyApi(self.api())

    def executor(
        self,
        *versions: AnyWorkflowVersion,
        api: Api | None = None,
        name: str = "executor",
        config: ExecutorConfig = ExecutorConfig(),
    ) -> Executor:
        """An executor of `versions`."""
        return Executor(self.client(api), Registry(versions), config=config, name=name)

    def run(self, run_id: str) -> Run:
        """The header as stored."""
        return self.store.load(NAMESPACE, run_id)

    def records(self, run_id: str) -> Sequence[AnyRecord]:
        """The whole log as stored, tail included."""
        run = self.run(run_id)
        slots = self.store.log(NAMESPACE, run_id, after=-1, max_bytes=2**31).slots
        is_sealed = any(slot.position >= run.tail.position for slot in slots)
        return [*(record for slot in slots for record in slot.records), *(() if is_sealed else run.tail.records)]
