"""The system in one process, on the memory store: the framework alone."""

from collections.abc import Sequence

from aiki_push.adapters.signing.ed25519 import generate_signing_key
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.embedded import EmbeddedApi
from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.workflow import AnyWorkflowVersion
from aiki_push.server.attention.advance import Attention
from aiki_push.server.context import ServerContext
from aiki_push.server.seals import Seals
from aiki_push.server.service import Server
from aiki_push.testing import RecordingPublisher, RecordingWakeups

NAMESPACE = "default"


class ShiftedClock(SystemClock):
    """The machine's clock, a while ahead: hours of waiting pass at once."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> TimestampMs:
        """The machine's time and what it is ahead."""
        return TimestampMs(super().now() + self.ahead_ms)


class EmbeddedSystem:
    """A server in memory, a client that calls it in process, and executors."""

    def __init__(self) -> None:
        self.clock, self.entropy, table = ShiftedClock(), SystemEntropy(), MemoryTable()
        keys = KeySet(active=ActiveKey(secret=generate_signing_key(self.entropy), created_at=self.clock.now()))
        context = ServerContext(
            store=SingleTableStore(table, self.clock, self.entropy),
            payloads=TablePayloadStore(table, self.clock, self.entropy),
            clock=self.clock,
            entropy=self.entropy,
            wakeups=RecordingWakeups(),
            seals=Seals([self.entropy.token(32)]),
            keys=CachedKeyRing(lambda: keys, self.clock),
        )
        server = Server(context)
        self.attention = Attention(context, RecordingPublisher())
        self.client = Client(lambda: EmbeddedApi(server, NAMESPACE, inline=True), clock=self.clock, entropy=self.entropy)

    def executor(self, versions: Sequence[AnyWorkflowVersion]) -> Executor:
        """An executor of `versions`."""
        return Executor(self.client, Registry(versions), config=ExecutorConfig(), name="bench")

    def wake(self, run_id: str) -> None:
        """Let an hour pass, and give the run what it needs then."""
        self.clock.ahead_ms += 3_700_000
        self.attention.advance(NAMESPACE, run_id)
