"""Which message and which deadline ends which wait."""

from collections.abc import Iterable

import pytest

from aiki_push.domain.inbox import Message, MessageKind
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.sdk.calls import WaitCall
from aiki_push.sdk.replay.live_wait import LiveWait
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.open_waits import OpenWaits


class Inbox:
    """Makes messages, numbered from 1, `at` so many milliseconds; a millisecond apart where that is not said."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, kind: MessageKind, key: str, at: int | None = None) -> Message:
        seq = len(self.sent) + 1
        message = Message(seq=seq, at=TimestampMs(seq if at is None else at), kind=kind, key=key)
        self.sent.append(message)
        return message


class Waiting:
    """Waits of one workflow, numbered in the order of their calls."""

    def __init__(self, received: Iterable[int] = ()) -> None:
        self.open = OpenWaits(set(received))
        self._loop = WorkflowLoop()
        self._made = 0

    def begin(self, call: WaitCall, at: int = 0) -> LiveWait:
        self._made += 1
        called_at = TimestampMs(at)
        deadline_at = None if call.duration_ms is None else TimestampMs(called_at + call.duration_ms)
        wait = LiveWait(call, 0, self._made, self._loop.create_future(), called_at, deadline_at, None)
        self.open.add(wait)
        return wait

    def give_all(self) -> list[tuple[LiveWait, Message]]:
        """Who is given what, one after the other, until no wait wants any message there is."""
        given = []
        while found := self.open.first_message():
            self.open.take(*found)
            given.append(found)
        return given


def for_event(name: str = "paid", timeout_ms: int | None = None) -> WaitCall:
    return WaitCall("event", name, None if timeout_ms is None else DurationMs(timeout_ms))


def for_child(run_id: str = "child") -> WaitCall:
    return WaitCall("child", run_id)


def for_sleep(name: str = "nap", duration_ms: int = 1_000) -> WaitCall:
    return WaitCall("sleep", name, DurationMs(duration_ms))


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def test_nothing_ends_a_wait_that_no_message_is_for(waiting: Waiting, inbox: Inbox) -> None:
    waits = [waiting.begin(for_event("paid")), waiting.begin(for_child("a")), waiting.begin(for_sleep("nap"))]
    waiting.open.hear([inbox.send("event", "nap"), inbox.send("child", "paid"), inbox.send("wakeup", "a")])
    assert (waiting.give_all(), list(waiting.open), len(waiting.open)) == ([], waits, 3)


@pytest.mark.parametrize("is_early", [False, True])
def test_events_go_to_the_waits_in_the_order_of_their_calls(waiting: Waiting, inbox: Inbox, *, is_early: bool) -> None:
    messages = [inbox.send("event", "paid") for _ in range(3)]
    if is_early:
        waiting.open.hear(messages)
    waits = [waiting.begin(for_event()) for _ in range(3)]
    if not is_early:
        waiting.open.hear(messages)
    assert waiting.give_all() == list(zip(waits, messages, strict=True))
    assert len(waiting.open) == 0


def test_an_event_is_taken_by_one_wait_and_the_next_one_waits_for_the_next(waiting: Waiting, inbox: Inbox) -> None:
    first, second = waiting.begin(for_event()), waiting.begin(for_event())
    one = inbox.send("event", "paid")
    waiting.open.hear([one])
    assert waiting.give_all() == [(first, one)]
    two = inbox.send("event", "paid")
    waiting.open.hear([two])
    assert waiting.give_all() == [(second, two)]


def test_an_event_waits_for_whoever_asks_for_it(waiting: Waiting, inbox: Inbox) -> None:
    one = inbox.send("event", "paid")
    waiting.open.hear([one])
    assert waiting.open.first_message() is None
    late = waiting.begin(for_event())
    assert waiting.give_all() == [(late, one)]


def test_a_childs_end_goes_to_every_wait_on_it_and_to_later_ones(waiting: Waiting, inbox: Inbox) -> None:
    first, second, other = [waiting.begin(for_child(child)) for child in ("a", "a", "b")]
    end = inbox.send("child", "a")
    waiting.open.hear([end])
    assert waiting.give_all() == [(first, end), (second, end)]
    later = waiting.begin(for_child("a"))
    assert waiting.give_all() == [(later, end)]
    assert list(waiting.open) == [other]


def test_messages_go_in_the_order_of_their_times_whatever_they_are(waiting: Waiting, inbox: Inbox) -> None:
    child, event, sleep = waiting.begin(for_child()), waiting.begin(for_event()), waiting.begin(for_sleep())
    wake, told, end = inbox.send("wakeup", "nap"), inbox.send("event", "paid"), inbox.send("child", "child")
    waiting.open.hear([wake, told, end])
    assert waiting.give_all() == [(sleep, wake), (event, told), (child, end)]


def test_messages_that_came_before_their_waits_go_in_the_order_of_their_times_too(waiting: Waiting, inbox: Inbox) -> None:
    one, two, three = inbox.send("event", "a"), inbox.send("event", "b"), inbox.send("event", "a")
    waiting.open.hear([one, two, three])
    first, second, other = waiting.begin(for_event("a")), waiting.begin(for_event("a")), waiting.begin(for_event("b"))
    assert waiting.give_all() == [(first, one), (other, two), (second, three)]


def test_messages_of_one_instant_go_in_the_order_of_their_numbers(waiting: Waiting, inbox: Inbox) -> None:
    second, first = waiting.begin(for_event("b")), waiting.begin(for_event("a"))
    one, two = inbox.send("event", "a", at=5), inbox.send("event", "b", at=5)
    waiting.open.hear([one, two])
    assert waiting.give_all() == [(first, one), (second, two)]


@pytest.mark.parametrize(("key", "woken"), [("nap", [0, 2]), ("lunch", [1]), ("*", [0, 1, 2]), ("supper", [])])
def test_a_wake_ends_every_sleep_of_its_name_that_had_begun(waiting: Waiting, inbox: Inbox, key: str, woken: list[int]) -> None:
    sleeps = [waiting.begin(for_sleep(name), at=10) for name in ("nap", "lunch", "nap")]
    wake = inbox.send("wakeup", key, at=20)
    waiting.open.hear([wake])
    after = waiting.begin(for_sleep("nap"), at=21)
    given = sorted(waiting.give_all(), key=lambda one: one[0].number)
    assert given == [(sleeps[number], wake) for number in woken]
    assert after in list(waiting.open)


@pytest.mark.parametrize(("began_at", "is_woken"), [(19, True), (20, True), (21, False)])
def test_a_sleep_that_is_known_later_is_ended_only_by_wakes_that_were_sent_since_it_began(
    waiting: Waiting, inbox: Inbox, began_at: int, *, is_woken: bool
) -> None:
    wake = inbox.send("wakeup", "nap", at=20)
    waiting.open.hear([wake])
    sleep = waiting.begin(for_sleep(), at=began_at)
    assert waiting.give_all() == ([(sleep, wake)] if is_woken else [])


def test_of_two_wakes_a_sleep_is_ended_by_the_first(waiting: Waiting, inbox: Inbox) -> None:
    sleep = waiting.begin(for_sleep())
    first, second = inbox.send("wakeup", "*"), inbox.send("wakeup", "nap")
    waiting.open.hear([first, second])
    assert waiting.give_all() == [(sleep, first)]


@pytest.mark.parametrize("key", ["nap", "*"])
def test_a_sleep_that_begins_after_somebody_was_given_a_wake_does_not_have_it_whatever_the_clocks_say(
    waiting: Waiting, inbox: Inbox, key: str
) -> None:
    """The clock of an executor is behind the server's, so that the next sleep begins before the message was sent."""
    sleeps = [waiting.begin(for_sleep(), at=10), waiting.begin(for_sleep(), at=10)]
    wake = inbox.send("wakeup", key, at=500)
    waiting.open.hear([wake])
    found = waiting.open.first_message()
    assert found == (sleeps[0], wake)
    waiting.open.take(*found)
    waiting.open.was_given(wake)
    after = waiting.begin(for_sleep(), at=20)
    assert waiting.give_all() == [(sleeps[1], wake)]
    assert list(waiting.open) == [after]


def test_what_follows_a_gap_is_kept_until_the_gap_closes(waiting: Waiting, inbox: Inbox) -> None:
    one, two, three = [inbox.send("event", "paid") for _ in range(3)]
    waits = [waiting.begin(for_event()) for _ in range(3)]
    waiting.open.hear([three, one])
    assert (waiting.give_all(), waiting.open.seen_seq) == ([(waits[0], one)], 1)
    waiting.open.hear([two])
    assert (waiting.give_all(), waiting.open.seen_seq) == ([(waits[1], two), (waits[2], three)], 3)


def test_what_is_heard_again_is_not_given_again(waiting: Waiting, inbox: Inbox) -> None:
    one, two = inbox.send("event", "paid"), inbox.send("event", "paid")
    first, second, third = [waiting.begin(for_event()) for _ in range(3)]
    waiting.open.hear([one, one])
    waiting.open.hear([one, two])
    waiting.open.hear([two])
    assert waiting.give_all() == [(first, one), (second, two)]
    assert (list(waiting.open), waiting.open.seen_seq) == ([third], 2)


def test_an_event_that_the_log_says_was_received_is_seen_and_given_to_nobody_else(inbox: Inbox) -> None:
    waiting = Waiting(received=[1])
    one, two = inbox.send("event", "paid"), inbox.send("event", "paid")
    wait = waiting.begin(for_event())
    waiting.open.hear([one])
    assert (waiting.open.first_message(), waiting.open.seen_seq) == (None, 1)
    waiting.open.hear([two])
    assert waiting.give_all() == [(wait, two)]


def test_a_discarded_wait_leaves_its_message_to_the_next_one(waiting: Waiting, inbox: Inbox) -> None:
    first, second = waiting.begin(for_event()), waiting.begin(for_event())
    one, two = inbox.send("event", "paid"), inbox.send("event", "paid")
    waiting.open.hear([one, two])
    assert waiting.open.first_message() == (first, one)
    waiting.open.discard(first)
    assert waiting.give_all() == [(second, one)]
    third = waiting.begin(for_event())
    assert waiting.give_all() == [(third, two)]


def test_a_discarded_wait_wants_nothing_any_more(waiting: Waiting, inbox: Inbox) -> None:
    calls = [for_event(timeout_ms=10), for_child(), for_sleep()]
    for wait in [waiting.begin(call) for call in calls]:
        waiting.open.discard(wait)
        waiting.open.discard(wait)
    waiting.open.hear([inbox.send("event", "paid"), inbox.send("child", "child"), inbox.send("wakeup", "*")])
    assert (waiting.give_all(), list(waiting.open), waiting.open.first_deadline()) == ([], [], None)


def test_a_wait_that_was_given_its_message_has_no_deadline_any_more(waiting: Waiting, inbox: Inbox) -> None:
    soon, later = waiting.begin(for_event(timeout_ms=10)), waiting.begin(for_event("other", timeout_ms=20))
    assert waiting.open.first_deadline() is soon
    waiting.open.hear([inbox.send("event", "paid")])
    waiting.give_all()
    assert waiting.open.first_deadline() is later


def test_the_earliest_deadline_comes_first_and_of_equal_ones_that_of_the_earlier_call(waiting: Waiting) -> None:
    waiting.begin(for_event())
    waiting.begin(for_child())
    assert waiting.open.first_deadline() is None
    late = waiting.begin(for_sleep("late", 30))
    first, second = waiting.begin(for_event(timeout_ms=20)), waiting.begin(for_sleep("nap", 10), at=10)
    order = []
    while (wait := waiting.open.first_deadline()) is not None:
        order.append(wait)
        waiting.open.discard(wait)
    assert order == [first, second, late]


def test_the_open_waits_stand_in_the_order_of_their_calls(waiting: Waiting) -> None:
    waits = [waiting.begin(call) for call in (for_sleep(), for_event(), for_child(), for_sleep())]
    waiting.open.discard(waits[1])
    assert (list(waiting.open), len(waiting.open)) == ([waits[0], waits[2], waits[3]], 3)
