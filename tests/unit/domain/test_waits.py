import pytest

from aiki_push.domain.run_states import AwaitingChildWorkflow, AwaitingEvent, AwaitingTaskRetry, Sleeping
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import ANY_KEY, ParkedState, Wait, WaitKind, collapsed, earliest_deadline, parked_state
from tests.unit.domain.run_examples import later


def wait(kind: WaitKind, deadline_ms: int | None) -> Wait:
    return Wait(kind=kind, key=f"{kind}-key", ordinal=0, deadline_at=None if deadline_ms is None else later(deadline_ms))


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([], None),
        ([wait("event", None), wait("child", None)], None),
        ([wait("event", 30)], later(30)),
        ([wait("event", 30), wait("sleep", 20), wait("child", None), wait("timer", 40)], later(20)),
        ([wait("sleep", -later(0))], 0),
    ],
)
def test_the_earliest_deadline_is_that_of_the_wait_that_ends_first(waits: list[Wait], expected: int | None) -> None:
    assert earliest_deadline(waits) == expected


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([wait("sleep", 50)], Sleeping(wakeup_at=later(50))),
        ([wait("timer", 50)], Sleeping(wakeup_at=later(50))),
        ([wait("event", 50)], AwaitingEvent(timeout_at=later(50))),
        ([wait("child", 50)], AwaitingChildWorkflow(timeout_at=later(50))),
        ([wait("task_retry", 50)], AwaitingTaskRetry(next_attempt_at=later(50))),
        ([wait("event", None)], AwaitingEvent()),
        ([wait("child", None)], AwaitingChildWorkflow()),
    ],
)
def test_a_single_wait_gives_the_state_of_its_kind(waits: list[Wait], expected: ParkedState) -> None:
    assert parked_state(waits) == expected


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([wait("sleep", 60), wait("event", 50)], AwaitingEvent(timeout_at=later(50))),
        ([wait("event", 60), wait("sleep", 50)], Sleeping(wakeup_at=later(50))),
        ([wait("event", 60), wait("task_retry", 50), wait("child", 70)], AwaitingTaskRetry(next_attempt_at=later(50))),
        ([wait("timer", 60), wait("child", 50)], AwaitingChildWorkflow(timeout_at=later(50))),
        ([wait("event", None), wait("child", 90)], AwaitingChildWorkflow(timeout_at=later(90))),
        ([wait("child", None), wait("event", None), wait("timer", 90)], Sleeping(wakeup_at=later(90))),
        ([wait("child", None), wait("event", 90)], AwaitingEvent(timeout_at=later(90))),
    ],
)
def test_of_several_waits_the_one_with_the_earliest_deadline_names_the_state(waits: list[Wait], expected: ParkedState) -> None:
    assert parked_state(waits) == expected


def test_of_waits_without_deadlines_an_event_names_the_state_before_a_child() -> None:
    event, child = wait("event", None), wait("child", None)
    assert parked_state([event, child]) == parked_state([child, event]) == AwaitingEvent()


def test_of_two_waits_with_the_same_deadline_the_first_names_the_state() -> None:
    event, sleep = wait("event", 50), wait("sleep", 50)
    assert parked_state([event, sleep]) == AwaitingEvent(timeout_at=later(50))
    assert parked_state([sleep, event]) == Sleeping(wakeup_at=later(50))


def test_few_waits_are_kept_as_they_are() -> None:
    waits = (timer(1_000), event(None))
    assert collapsed(waits) == waits


def test_waits_that_would_take_too_much_of_the_header_stand_for_one_of_each_kind_with_its_earliest_deadline() -> None:
    waits = [
        *(timer(5_000 + number, ordinal=number) for number in range(50)),
        *(event(None, ordinal=number) for number in range(50)),
    ]
    assert collapsed(waits) == (
        Wait(kind="timer", key=ANY_KEY, ordinal=0, deadline_at=TimestampMs(5_000)),
        Wait(kind="event", key=ANY_KEY, ordinal=0),
    )
    assert parked_state(collapsed(waits)) == parked_state(waits)


def timer(deadline_at: int, ordinal: int = 1) -> Wait:
    return Wait(kind="timer", key="timer|0", ordinal=ordinal, deadline_at=TimestampMs(deadline_at))


def event(deadline_at: int | None, ordinal: int = 1) -> Wait:
    return Wait(kind="event", key="paid", ordinal=ordinal, deadline_at=None if deadline_at is None else TimestampMs(deadline_at))
