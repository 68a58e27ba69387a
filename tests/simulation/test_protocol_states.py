"""Every order of few requests; `make simulate` looks further."""

from typing import Any

import pytest

from aiki_push.ports.api.checkpoints import HandBack, SegmentEnd
from tests.simulation import planted, planted_news
from tests.simulation.owners import FINISH, PARK
from tests.simulation.protocol import Bounds, Protocol
from tests.simulation.schedule import Violation
from tests.simulation.servers import SOUND, Parts
from tests.simulation.stored_states import StoredStates

APPENDS = Bounds(revisions=3, appends=2)
EVENT = Bounds(revisions=2, appends=1, outside=("event",))
PAUSE = Bounds(revisions=2, appends=1, outside=("event", "pause", "resume"))
CHILD = Bounds(revisions=2, appends=1, outside=("child's end",), child=True)
DIRECTED = Bounds(revisions=2, appends=1, outside=("directive to pause", "directive to cancel"))

NARROW = [
    APPENDS,
    Bounds(revisions=4, appends=1),
    Bounds(revisions=2, appends=1, overtaking=True),
    PAUSE,
    DIRECTED,
    Bounds(revisions=2, appends=1, outside=("cancel", "child's end"), child=True),
    Bounds(revisions=2, appends=1, outside=("event",), overtaking=True),
    Bounds(revisions=2, appends=1, outside=("cancel",), overtaking=True),
    Bounds(revisions=2, appends=1, outside=("child's end",), child=True, overtaking=True),
]


@pytest.mark.parametrize("bounds", NARROW, ids=str)
def test_no_order_of_requests_breaks_a_promise(bounds: Bounds) -> None:
    assert Protocol(StoredStates(), bounds).explore() > 50


@pytest.mark.parametrize(
    ("store", "bounds", "found"),
    [
        (planted.UnfencedStore, APPENDS, "append of A1 at 1: .*claim A1 wrote slot 1 while the run's owner was None"),
        (
            planted.UnfencedStore,
            Bounds(revisions=2, appends=1, overtaking=True),
            "append of A1 at 0, overtaken by recovery before its 2. access: .*wrote slot 0",
        ),
        (
            planted.UnfencedStopStore,
            Bounds(revisions=2, appends=2, outside=("cancel",)),
            "append of A1 at 1: .*claim A1 wrote slot 1",
        ),
        (planted.UnfencedWakeStore, EVENT, "event: .*a slot from the tail's position 0 on is not by the run's owner"),
        (planted.RestlessStore, PAUSE, "event: .*queued.*by 0 operations"),
        (planted_news.ForgetfulStore, EVENT, "event: .*references of {} are remembered"),
        (planted_news.LosingStore, EVENT, "event: .*the events {} came"),
        (planted.ObliviousStore, PAUSE, "pause: .*by 0 operations"),
        (planted.SleepyStore, PAUSE, "resume: .*sleeping and never due"),
        (planted.UndirectedStore, DIRECTED, "recovery: .*nobody will do it any more"),
        (planted_news.EarlyBirthStore, CHILD, "append with a child of A1 at 0: the child: .*whose log does not say so"),
        (planted_news.TwiceTellingStore, CHILD, "child's follow-up: the run: .*will be told again"),
        (planted_news.UntoldStore, CHILD, "child's follow-up: the child: run .* is not told of the end"),
        (planted_news.UnwatchedStore, CHILD, "child's end: the child: .*nobody will tell"),
        (
            planted_news.ChildlessStore,
            Bounds(revisions=2, appends=1, outside=("cancel",), child=True),
            "cancel: the run: .*nobody will end its children",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(store: Any, bounds: Bounds, found: str) -> None:
    with pytest.raises(Violation, match=found):
        Protocol(StoredStates(Parts(store=store)), bounds).explore()


def test_a_park_that_does_not_look_at_the_inbox_is_found() -> None:
    with pytest.raises(Violation, match="park of A1 at 0: .*parked on event e, and has seen message 1"):
        Protocol(StoredStates(Parts(server=planted.HastyServer)), EVENT).explore()


@pytest.mark.parametrize("give_up", [PARK, FINISH], ids=lambda end: end.to)
def test_a_plain_end_after_a_lost_append_is_found(give_up: SegmentEnd | HandBack) -> None:
    with pytest.raises(Violation, match="give-up of A1 at 0: .*a slot from the tail's position 0 on is not by the run's owner"):
        Protocol(StoredStates(SOUND), APPENDS, give_up).explore()
