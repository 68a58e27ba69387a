"""Hints within this process. Clocks are fake, but where a thread must really wait for a time."""

import logging
import threading
from queue import Queue

import pytest

from aiki_push.adapters.system import SystemClock
from aiki_push.adapters.wakeups.memory import THREAD_NAME, MemoryWakeups
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW, FakeClock

PATIENCE_S = 20
"""How long a test waits for a thread before it fails."""

HOUR_MS = 3_600_000


def hint(number: int, due_in_ms: int = 0, namespace: str = "default") -> Hint:
    return Hint(namespace=namespace, run_id=RunId(f"run-{number}"), due_at=TimestampMs(FAKE_NOW + due_in_ms))


def taken(wakeups: MemoryWakeups, now_in_ms: int) -> list[Hint]:
    found = []
    while (one := wakeups.take(TimestampMs(FAKE_NOW + now_in_ms))) is not None:
        found.append(one)
    return found


def threads_of_wakeups() -> int:
    return sum(thread.name == THREAD_NAME for thread in threading.enumerate())


def test_hints_are_taken_once_they_are_due_the_earliest_first() -> None:
    wakeups = MemoryWakeups(FakeClock())
    for one in (hint(1, 30), hint(2, 10), hint(3, 31), hint(4, 20)):
        wakeups.send(one)

    assert taken(wakeups, 9) == []
    assert taken(wakeups, 30) == [hint(2, 10), hint(4, 20), hint(1, 30)]
    assert taken(wakeups, 31) == [hint(3, 31)]


def test_a_hint_that_waits_already_is_dropped() -> None:
    wakeups = MemoryWakeups(FakeClock())
    other_hints = [hint(1, 10, "other"), hint(2, 10), hint(1, 11)]
    for one in (hint(1, 10), hint(1, 10), *other_hints, hint(1, 10)):
        wakeups.send(one)

    assert taken(wakeups, 11) == [hint(1, 10), hint(2, 10), hint(1, 10, "other"), hint(1, 11)]


def test_a_hint_that_was_taken_can_be_sent_again() -> None:
    wakeups = MemoryWakeups(FakeClock())
    wakeups.send(hint(1))
    assert taken(wakeups, 0) == [hint(1)]
    wakeups.send(hint(1))
    assert taken(wakeups, 0) == [hint(1)]


def test_a_thread_hands_on_hints_sent_before_and_after_the_start() -> None:
    handled: Queue[Hint] = Queue()
    wakeups = MemoryWakeups(FakeClock())
    wakeups.send(hint(1))
    wakeups.start(handled.put, threads=1)
    try:
        assert handled.get(timeout=PATIENCE_S) == hint(1)
        wakeups.send(hint(2, -HOUR_MS))
        assert handled.get(timeout=PATIENCE_S) == hint(2, -HOUR_MS)
    finally:
        wakeups.stop()


def test_a_hint_is_handled_at_its_time_and_not_before() -> None:
    clock = SystemClock()
    handled_at: Queue[TimestampMs] = Queue()
    wakeups = MemoryWakeups(clock)
    wakeups.start(lambda _: handled_at.put(clock.now()), threads=2)
    try:
        due_at = TimestampMs(clock.now() + 20)
        wakeups.send(Hint(namespace="default", run_id=RunId("run"), due_at=due_at))
        assert handled_at.get(timeout=PATIENCE_S) >= due_at
    finally:
        wakeups.stop()


def test_an_earlier_hint_overtakes_one_that_a_thread_waits_for() -> None:
    handled: Queue[Hint] = Queue()
    wakeups = MemoryWakeups(FakeClock())
    wakeups.send(hint(1, HOUR_MS))
    wakeups.start(handled.put, threads=1)
    try:
        wakeups.send(hint(2))
        assert handled.get(timeout=PATIENCE_S) == hint(2)
    finally:
        wakeups.stop()
    assert taken(wakeups, HOUR_MS) == [hint(1, HOUR_MS)]


def test_a_slow_handler_keeps_no_other_hint_waiting() -> None:
    handled: Queue[Hint] = Queue()
    may_end = threading.Event()

    def handle(one: Hint) -> None:
        if one == hint(1):
            may_end.wait(PATIENCE_S)
        handled.put(one)

    wakeups = MemoryWakeups(FakeClock())
    wakeups.start(handle, threads=2)
    try:
        wakeups.send(hint(1))
        for number in (2, 3):
            wakeups.send(hint(number))
            assert handled.get(timeout=PATIENCE_S) == hint(number)
        may_end.set()
        assert handled.get(timeout=PATIENCE_S) == hint(1)
    finally:
        may_end.set()
        wakeups.stop()


def test_a_handler_that_raises_is_logged_without_its_message_and_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handled: Queue[Hint] = Queue()

    def handle(one: Hint) -> None:
        if one == hint(1):
            raise ZeroDivisionError("a customer's secret")
        handled.put(one)

    wakeups = MemoryWakeups(FakeClock())
    with caplog.at_level(logging.ERROR, "aiki_push.adapters.wakeups.memory"):
        wakeups.start(handle, threads=1)
        wakeups.send(hint(1))
        wakeups.send(hint(2))
        try:
            assert handled.get(timeout=PATIENCE_S) == hint(2)
        finally:
            wakeups.stop()

    (message,) = caplog.messages
    assert message.startswith("the hint for run run-1 could not be handled\n")
    assert message.endswith("ZeroDivisionError")
    assert "secret" not in message.splitlines()[-1]


def test_stopping_waits_for_hints_in_progress_and_leaves_no_thread() -> None:
    order: list[str] = []
    begun, may_end = threading.Event(), threading.Event()

    def handle(_: Hint) -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        order.append("handled")

    def stop() -> None:
        wakeups.stop()
        order.append("stopped")

    wakeups = MemoryWakeups(FakeClock())
    wakeups.start(handle, threads=3)
    assert threads_of_wakeups() == 3
    wakeups.send(hint(1))
    assert begun.wait(PATIENCE_S)
    wakeups.send(hint(2, HOUR_MS))
    stopper = threading.Thread(target=stop)
    stopper.start()
    may_end.set()
    stopper.join(PATIENCE_S)

    assert order == ["handled", "stopped"]
    assert threads_of_wakeups() == 0


def test_hints_can_be_started_again_after_a_stop_but_not_before() -> None:
    handled: Queue[Hint] = Queue()
    wakeups = MemoryWakeups(FakeClock())
    wakeups.start(handled.put)
    with pytest.raises(RuntimeError, match="started already"):
        wakeups.start(handled.put)
    wakeups.stop()
    wakeups.stop()

    wakeups.start(handled.put)
    wakeups.send(hint(1))
    try:
        assert handled.get(timeout=PATIENCE_S) == hint(1)
    finally:
        wakeups.stop()
