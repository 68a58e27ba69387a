"""What `aiki-push runs show` says of a run that waits."""

from aiki_push.domain.values import TimestampMs
from tests.integration.controls import pause
from tests.integration.terminal import aiki_push, serving
from tests.integration.waiting_runs import numbered, parked_on, wait
from tests.local_system import LocalSystem

IN_2100 = TimestampMs(4_102_444_800_000)


def shown(system: LocalSystem, run_id: str) -> list[str]:
    with serving(system) as url:
        code, output, errors = aiki_push("runs", "show", run_id, "--url", url)
    assert (code, errors) == (0, "")
    return [line for line in output.splitlines() if line.startswith(("waits", "  "))]


def test_a_parked_run_is_shown_with_what_it_waits_for_and_until_when() -> None:
    system = LocalSystem()
    child = numbered(7)
    run_id = parked_on(
        system,
        wait("event", "paid", IN_2100),
        wait("child", child),
        wait("sleep", "nap", IN_2100),
        wait("timer", "timer|0", IN_2100),
    )
    first, *lines = shown(system, run_id)
    assert first.startswith("waits since ")
    assert [line.rstrip() for line in lines if not line.lstrip()[:1].isdigit()][:4] == [
        "  event paid, until 2100-01-01 00:00:00",
        f"  child {child}",
        "  sleep nap, until 2100-01-01 00:00:00",
        "  a timer, until 2100-01-01 00:00:00",
    ]


def test_a_paused_run_is_shown_with_what_it_will_wait_for_again() -> None:
    system = LocalSystem()
    run_id = parked_on(system, wait("event", "paid"))
    pause(system, run_id)
    assert "  event paid" in [line.rstrip() for line in shown(system, run_id)]


def test_waits_that_are_too_many_for_the_header_are_shown_as_one_a_kind() -> None:
    system = LocalSystem()
    run_id = parked_on(system, *(wait("event", f"event-{number}") for number in range(100)))
    assert "  several: any event" in [line.rstrip() for line in shown(system, run_id)]


def test_a_run_that_waits_for_nothing_says_nothing_of_waiting() -> None:
    system = LocalSystem()
    run_id = parked_on(system, wait("event", "paid"))
    with serving(system) as url:
        assert aiki_push("events", "send", run_id, "paid", "--url", url)[0] == 0
    assert not any(line.startswith("waits") for line in shown(system, run_id))
