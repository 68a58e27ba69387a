"""Every order of few requests; `make simulate` looks further."""

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.ports.api.checkpoints import HandBack, SegmentEnd
from tests.simulation.planted import UnfencedStore
from tests.simulation.protocol import FINISH, PARK, Bounds, Protocol
from tests.simulation.schedule import Violation
from tests.simulation.servers import StoreFactory
from tests.simulation.stored_states import StoredStates

NARROW = [Bounds(revisions=4, appends=1), Bounds(revisions=3, appends=2), Bounds(revisions=3, appends=1, overtaking=True)]


@pytest.mark.parametrize("bounds", NARROW, ids=str)
def test_no_order_of_requests_breaks_a_promise(bounds: Bounds) -> None:
    assert Protocol(StoredStates(), bounds).explore() > 1_000


@pytest.mark.parametrize(
    ("store", "bounds", "give_up", "found"),
    [
        (UnfencedStore, NARROW[1], HandBack(), "append of A1 at 1: .*claim A1 wrote slot 1 while the run's owner was None"),
        (UnfencedStore, NARROW[2], HandBack(), "append of A1 at 0, overtaken by recovery before its 2. access: .*wrote slot 0"),
        (SingleTableStore, NARROW[0], PARK, "give-up of A1 at 0: a slot from the tail's position 0 on is not by the run's owner"),
        (
            SingleTableStore,
            NARROW[0],
            FINISH,
            "give-up of A1 at 0: a slot from the tail's position 0 on is not by the run's owner",
        ),
    ],
    ids=[
        "recovery without the fence",
        "the same in the middle of an append",
        "park after a lost append",
        "finish after a lost append",
    ],
)
def test_a_planted_fault_is_found(store: StoreFactory, bounds: Bounds, give_up: SegmentEnd | HandBack, found: str) -> None:
    with pytest.raises(Violation, match=found):
        Protocol(StoredStates(store), bounds, give_up).explore()
