"""Every rule has a fault that some seed finds by it."""

import pytest

from tests.simulation import planted, planted_news
from tests.simulation.servers import Parts, StoreFactory
from tests.simulation.simulation import Failure, simulate

SEEDS = 200
"""More than any of these faults needs."""


def simulate_until_failure(parts: Parts) -> None:
    for seed in range(SEEDS):
        simulate(seed, parts=parts)


@pytest.mark.parametrize(
    ("store", "found"),
    [
        (planted.UnfencedStore, "a slot from the tail's position .* is not by the run's owner|claim .* wrote slot .* while"),
        (planted.UnfencedStopStore, "a slot from the tail's position .* is not by the run's owner|claim .* wrote slot .* while"),
        (planted.UnfencedWakeStore, "a slot from the tail's position .* is not by the run's owner|claim .* wrote slot .* while"),
        (planted.RestlessStore, "queued.*resumption.* by . operations"),
        (planted_news.TwiceTellingStore, "the run is told of the end of .*, and will be told again"),
        (planted_news.UntoldStore, "run .* is not told of the end, and never will be"),
        (planted_news.UnlinkedStore, "nobody will tell the run of the end of"),
        (planted_news.UnwatchedStore, "and nobody will tell"),
        (planted_news.ChildlessStore, "the run is cancelled, and nobody will end its children|looked at for ever, or never"),
        (planted_news.RestlessEndStore, "not everything has ended"),
        (planted_news.ForgetfulStore, "references of {} are remembered"),
        (planted_news.LosingStore, "the events {} came"),
        (planted_news.WakelessStore, "are remembered, and did nothing"),
        (planted_news.EndlessWindowStore, "long after it was told of the end of"),
        (planted_news.EarlyBirthStore, "the run is a child of .*, whose log does not say so"),
        (planted.ObliviousStore, "by 0 operations"),
        (planted.UndirectedStore, "the directive to .* is gone|is forgotten"),
        (planted.SleepyStore, "nothing will ever wake it|long after it was told"),
        (planted_news.UnreceivedStore, "the workflow sees .* where it saw"),
        (planted_news.MixedUpStore, "the workflow sees .* where it saw|its output has what it was never given"),
        (planted_news.BlindStore, "timed out at .*; message .* was there since"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(store: StoreFactory, found: str) -> None:
    with pytest.raises(Failure, match=rf"seed \d+ went wrong in turn \d+: .*({found})"):
        simulate_until_failure(Parts(store=store))


def test_a_park_that_does_not_look_at_the_inbox_is_found() -> None:
    with pytest.raises(Failure, match=r"seed \d+ went wrong in turn \d+: .*parked on .*, and has seen message"):
        simulate_until_failure(Parts(server=planted.HastyServer))
