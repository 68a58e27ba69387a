import pytest

from aiki_push.domain.changes import SaveRun
from aiki_push.domain.limits import Limits
from aiki_push.domain.offers import backoff_ms, decide_lease, decide_next_offer
from aiki_push.domain.run import Offer
from aiki_push.domain.values import TimestampMs
from tests.unit.domain.run_examples import later, queued_run, saved

LIMITS = Limits(max_age_ms=1_000_000, offer_base_ms=5_000, offer_max_ms=300_000, offer_lease_ms=10_000)


def test_a_lease_counts_the_offer_and_keeps_others_away_while_it_is_made() -> None:
    run = queued_run(offer=Offer(attempts=2, last_error="refused"))

    assert decide_lease(run, later(4_000), LIMITS) == (
        SaveRun(run.model_copy(update={"offer": Offer(attempts=3, last_error="refused"), "due_at": later(14_000)})),
    )


def test_an_offer_that_went_well_forgets_the_error_of_the_one_before() -> None:
    run = queued_run(offer=Offer(attempts=3, last_error="refused"))

    assert decide_next_offer(run, later(20_000), None, LIMITS) == (
        SaveRun(run.model_copy(update={"offer": Offer(attempts=3), "due_at": later(20_000)})),
    )


def test_an_offer_that_failed_keeps_its_error() -> None:
    run = queued_run(offer=Offer(attempts=3))

    assert decide_next_offer(run, later(20_000), "503 from orders", LIMITS) == (
        SaveRun(run.model_copy(update={"offer": Offer(attempts=3, last_error="503 from orders"), "due_at": later(20_000)})),
    )


def test_an_advance_that_went_well_ends_the_delays_of_those_that_failed_before() -> None:
    assert saved(*decide_next_offer(queued_run(advance_errors=6), later(20_000), None, LIMITS)).advance_errors == 0


def test_an_empty_error_is_none() -> None:
    assert saved(*decide_next_offer(queued_run(), later(20_000), "", LIMITS)).offer == Offer()


@pytest.mark.parametrize(
    ("next_ms", "due_ms"),
    [(1_000_999, 1_000_999), (1_001_000, 1_001_000), (1_001_001, 1_001_000), (9_000_000, 1_001_000)],
)
def test_a_run_is_looked_at_no_later_than_when_it_must_stall(next_ms: int, due_ms: int) -> None:
    assert saved(*decide_next_offer(queued_run(ready_at=later(1_000)), later(next_ms), None, LIMITS)).due_at == later(due_ms)


def test_a_run_without_a_ready_time_is_offered_at_the_next_time_asked_for() -> None:
    assert saved(*decide_next_offer(queued_run(ready_at=None), later(20_000), None, LIMITS)).due_at == later(20_000)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("e" * 200, "e" * 200),
        ("e" * 201, "e" * 200),
        ("é" * 100, "é" * 100),
        ("é" * 101, "é" * 100),
        ("e" + "é" * 100, "e" + "é" * 99),
        ("語" * 67, "語" * 66),
        ("🦉" * 50, "🦉" * 50),
        ("eee" + "🦉" * 50, "eee" + "🦉" * 49),
    ],
)
def test_an_error_is_cut_to_200_bytes_between_two_characters(error: str, kept: str) -> None:
    assert saved(*decide_next_offer(queued_run(), later(20_000), error, LIMITS)).offer.last_error == kept


@pytest.mark.parametrize(
    ("age_ms", "expected_ms"),
    [
        (-50, 5_000),
        (0, 5_000),
        (4_999, 5_000),
        (5_000, 5_000),
        (5_001, 5_001),
        (80_000, 80_000),
        (299_999, 299_999),
        (300_000, 300_000),
        (300_001, 300_000),
        (86_400_000, 300_000),
    ],
)
def test_the_wait_before_the_next_offer_is_the_age_of_the_run_within_bounds(age_ms: int, expected_ms: int) -> None:
    assert backoff_ms(queued_run(ready_at=later(1_000)), later(1_000 + age_ms), LIMITS) == expected_ms


def test_the_wait_of_a_run_without_a_ready_time_is_the_shortest() -> None:
    assert backoff_ms(queued_run(ready_at=None), later(99_000), LIMITS) == 5_000


def test_the_wait_doubles_with_every_offer_until_it_is_five_minutes() -> None:
    run, now, waits = queued_run(ready_at=later(0)), later(0), []
    for _ in range(9):
        waits.append(backoff_ms(run, now, LIMITS))
        now = TimestampMs(now + waits[-1])
    assert waits == [5_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]


def test_the_limits_are_the_documented_ones() -> None:
    assert Limits() == Limits(
        claim_idle_timeout_ms=90_000,
        max_age_ms=24 * 3_600_000,
        max_recoveries=10,
        offer_base_ms=5_000,
        offer_max_ms=300_000,
        declined_ms=30_000,
        offer_lease_ms=10_000,
        max_log_slots=50_000,
    )
