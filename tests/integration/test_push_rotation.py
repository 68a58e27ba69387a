"""Signing keys are replaced while runs are pushed, and no push is lost."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import KEY_CACHE_MS
from aiki_push.adapters.system import SystemEntropy
from aiki_push.apps.endpoint.endpoint import endpoint
from aiki_push.domain.endpoints import Endpoint
from aiki_push.ports.publisher import Failed, Outcome, Published, ReadyRun
from aiki_push.sdk.run import Run
from aiki_push.sdk.workflow import workflow
from aiki_push.testing import FakeClock
from tests.integration.endpoint_server import endpoint_server
from tests.integration.pushing import only, publisher
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.adapters.delivery.delivery_examples import endpoint_at

orders = workflow("order")


@orders.v("1.0.0")
async def order_v1(run: Run) -> str:
    return run.id


class Traffic:
    """Starts runs and pushes each once, without a pause, to whatever endpoint is `current`."""

    def __init__(self, system: LocalSystem, keys: CachedKeyRing, current: Endpoint) -> None:
        self.current = current
        self.outcomes: dict[str, Outcome] = {}
        self._system = system
        self._keys = keys
        self._pushed = threading.Semaphore(0)
        self._is_over = threading.Event()

    @contextmanager
    def flowing(self) -> Iterator["Traffic"]:
        thread = threading.Thread(target=self._flow)
        thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            thread.join()

    def let_pass(self, pushes: int = 10) -> None:
        """Wait until as many more pushes have been answered, the first of which may have begun earlier."""
        for _ in range(pushes):
            assert self._pushed.acquire(timeout=30)

    def _flow(self) -> None:
        # The time of the pushes stands still; the keys have a clock of their own.
        with publisher(listing=lambda _: [self.current], keys=self._keys, clock=FakeClock()) as pushing:
            while not self._is_over.is_set():
                run = self._start()
                self.outcomes[run.run_id] = only(pushing.publish([run]))
                self._pushed.release()

    def _start(self) -> ReadyRun:
        async def started() -> str:
            return (await order_v1.start(self._system.client())).id

        run = self._system.run(asyncio.run(started()))
        return ReadyRun(NAMESPACE, run.id, run.workflow, run.version, None, 5, run.revision, run.created_at, 1)


@contextmanager
def deployed(system: LocalSystem, *trusted: str) -> Iterator[Endpoint]:
    """An endpoint that trusts these keys, while the context lasts."""
    made = endpoint(workflows=[order_v1], client=system.client(), public_keys=trusted)
    with endpoint_server(made.asgi) as url:
        yield endpoint_at(url, namespace=NAMESPACE)


def test_a_rotation_under_traffic_loses_no_push(tmp_path: Path) -> None:
    system = LocalSystem(clock=FakeClock())
    key_clock = FakeClock()
    file = KeyFile(tmp_path / "keys.json", key_clock, SystemEntropy())
    old = file.init()

    with (
        deployed(system, old) as trusts_old,
        Traffic(system, CachedKeyRing(file.read, key_clock), trusts_old).flowing() as traffic,
    ):
        traffic.let_pass()
        new = file.rotate()
        traffic.let_pass()
        key_clock.advance(KEY_CACHE_MS)
        traffic.let_pass()
        with deployed(system, new, old) as trusts_both, deployed(system, new) as trusts_new:
            traffic.current = trusts_both
            traffic.let_pass()
            traffic.current = trusts_new
            traffic.let_pass()
            key_clock.advance(1)
            assert file.retire() == (old,)
            traffic.let_pass()
            key_clock.advance(KEY_CACHE_MS)
            traffic.let_pass()
            lost = {run_id: outcome for run_id, outcome in traffic.outcomes.items() if outcome != Published()}
            assert lost == {}

            # The rotation did take place: the old key alone is worth nothing now.
            traffic.current = trusts_old
            traffic.let_pass(20)
            refused = [outcome for outcome in traffic.outcomes.values() if isinstance(outcome, Failed)]
            assert len(refused) >= 15

    ended = {run_id: system.run(run_id).state.status for run_id, outcome in traffic.outcomes.items() if outcome == Published()}
    assert len(ended) >= 70
    assert set(ended.values()) == {"completed"}


def test_a_new_key_alone_is_refused_by_an_endpoint_that_does_not_know_it(tmp_path: Path) -> None:
    system = LocalSystem(clock=FakeClock())
    clock = FakeClock()
    file = KeyFile(tmp_path / "keys.json", clock, SystemEntropy())
    old = file.init()
    file.rotate()
    clock.advance(KEY_CACHE_MS + 1)
    file.retire()

    with deployed(system, old) as target, Traffic(system, CachedKeyRing(file.read, clock), target).flowing() as traffic:
        traffic.let_pass(1)
    assert {type(outcome) for outcome in traffic.outcomes.values()} == {Failed}
