import pytest

from aiki_push.adapters.delivery.push_answers import read_answer
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published
from tests.unit.adapters.delivery.delivery_examples import READY_AT, ready_run

NOW = TimestampMs(READY_AT + 60_000)

REFUSED_401 = Failed("refused the signature (401): compare the keys it trusts, its audience and its clock with the server's")
REFUSED_403 = Failed("refused the signature (403): compare the keys it trusts, its audience and its clock with the server's")


def outcome(status: int, retry_after: str | None = None, now: TimestampMs = NOW, elapsed_ms: float = 5.0) -> Outcome:
    return read_answer(status, retry_after, ready_run(), now, elapsed_ms)


def after(wait_ms: int) -> Deferred:
    return Deferred(TimestampMs(NOW + wait_ms))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Published()),
        (201, Published()),
        (202, Published()),
        (204, Published()),
        (299, Published()),
        (404, Declined()),
        (429, after(60_000)),
        (503, after(60_000)),
        (401, REFUSED_401),
        (403, REFUSED_403),
        (301, Failed("answered 301; redirects are not followed, register the address itself")),
        (307, Failed("answered 307; redirects are not followed, register the address itself")),
        (304, Failed("answered 304; redirects are not followed, register the address itself")),
        (199, Failed("answered 199")),
        (400, Failed("answered 400")),
        (405, Failed("answered 405")),
        (408, Failed("answered 408")),
        (410, Failed("answered 410")),
        (413, Failed("answered 413")),
        (422, Failed("answered 422")),
        (500, Failed("answered 500")),
        (502, Failed("answered 502")),
        (504, Failed("answered 504")),
        (599, Failed("answered 599")),
        (999, Failed("answered 999")),
    ],
)
def test_a_status_is_read_as_the_design_says(status: int, expected: Outcome) -> None:
    assert outcome(status) == expected


@pytest.mark.parametrize("status", [200, 404, 401, 400, 500])
def test_only_a_busy_endpoint_may_ask_for_time(status: int) -> None:
    assert outcome(status, "120") == outcome(status)


@pytest.mark.parametrize(
    ("retry_after", "wait_ms"),
    [
        ("1", 1_000),
        ("7", 7_000),
        (" 7 ", 7_000),
        ("007", 7_000),
        ("300", 300_000),
        ("301", 300_000),
        ("86400", 300_000),
        ("9" * 5_000, 300_000),
        ("0", 1_000),
        # 2027-01-15T08:00:00Z is READY_AT, one minute before NOW.
        ("Fri, 15 Jan 2027 08:01:10 GMT", 10_000),
        ("Friday, 15-Jan-27 08:01:10 GMT", 10_000),
        ("Fri, 15 Jan 2027 08:01:10 -0000", 10_000),
        ("Fri, 15 Jan 2027 09:01:10 +0100", 10_000),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 1_000),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 1_000),
        ("Fri, 15 Jan 2027 09:00:00 GMT", 300_000),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300_000),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_run_is_held_back_as_long_as_asked_within_bounds(status: int, retry_after: str, wait_ms: int) -> None:
    assert outcome(status, retry_after) == after(wait_ms)


@pytest.mark.parametrize(
    "retry_after",
    [
        None,
        "",
        " ",
        "soon",
        "-5",
        "1.5",
        "+7",
        "1e3",
        "\u0663",
        "\u00b2",
        "0x10",
        "7 s",
        "Fri, 99 Jan 2027 08:00:00 GMT",
        "Fri, 15 Jan",
    ],
)
def test_without_a_usable_header_a_run_is_held_back_as_long_as_it_has_been_ready(retry_after: str | None) -> None:
    assert outcome(429, retry_after) == after(60_000)


@pytest.mark.parametrize(
    ("ready_for_ms", "wait_ms"),
    [(0, 5_000), (4_999, 5_000), (5_001, 5_001), (299_999, 299_999), (300_001, 300_000), (86_000_000, 300_000), (-10_000, 5_000)],
)
def test_being_held_back_unasked_has_bounds_too(ready_for_ms: int, wait_ms: int) -> None:
    now = TimestampMs(READY_AT + ready_for_ms)
    assert outcome(503, now=now) == Deferred(TimestampMs(now + wait_ms))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_of_the_gateway_after_its_time_limit_counts_as_a_timeout(status: int) -> None:
    assert outcome(status, elapsed_ms=28_000) == Published()
    assert outcome(status, elapsed_ms=27_999) != Published()


@pytest.mark.parametrize(
    ("status", "expected"), [(404, Declined()), (401, REFUSED_401), (429, after(60_000)), (400, Failed("answered 400"))]
)
def test_a_late_answer_of_the_endpoint_itself_stands(status: int, expected: Outcome) -> None:
    assert outcome(status, elapsed_ms=60_000) == expected
