"""Processes that are told to end do so, and leave nothing behind."""

import signal

import pytest

from tests.e2e.line import line_to
from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import AIKI_PUSH, attempts, end_of, start_server, system_in, transitions
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CTRL_C = pytest.param(
    signal.SIGINT,
    130,
    marks=pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="whoever runs the tests ignores SIGINT"),
)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), CTRL_C])
def test_a_server_ends_when_told_to_though_somebody_waits_for_a_run(
    processes: Processes, number: signal.Signals, code: int
) -> None:
    server = start_server(processes, AIKI_URL="http://127.0.0.1:1")  # which is for commands, and no setting of the server's
    with line_to(server.url) as line:
        command = [str(AIKI_PUSH), "runs", "start", "unheard-of", "1", "--wait", "--url", line.url]
        waiting = processes.start("waiting", command, {})
        run_id = waiting.find(r"\w{26}")
        until(lambda: [path for path in line.asked if f"{run_id}/wait" in path], "somebody waiting for the run")
        printed = server.process.log()

        server.process.send(number)

        assert server.process.ended() == code
    assert server.process.log() == printed


async def test_an_endpoint_that_is_told_to_end_in_the_middle_of_a_task_ends_and_leaves_the_run_to_another(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes) as system:
        stage.close_gate("A", "second")
        a, b = system.start_endpoint("A"), system.start_endpoint("B")
        await system.register(a)
        handle = await three_steps.start(system.client)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

        a.process.send(signal.SIGTERM)
        await system.register(b)

        assert a.process.ended() == -signal.SIGTERM
        assert (await end_of(handle)).value() == ["first by A", "second by B", "third by B"]
        assert await attempts(handle) == [("first", 1), ("second", 1), ("second", 1), ("third", 1)]
        assert (await transitions(handle))[1:] == [
            (1, "running", "A"),
            (2, "queued", "A"),
            (3, "running", "B"),
            (4, "completed", "B"),
        ]


@pytest.mark.parametrize("number", [signal.SIGTERM, CTRL_C.values[0]], ids=["SIGTERM", "SIGINT"])
def test_a_demo_that_is_cut_short_leaves_no_process_behind(processes: Processes, number: signal.Signals) -> None:
    demo = processes.start("demo", [str(AIKI_PUSH), "demo"], {}, group="own")
    demo.find("orders are started")

    demo.send(number)

    assert demo.ended() != 0
    until(lambda: not demo.has_left_something(), "the end of every process that the demo has started")


def test_the_demo_succeeds_and_leaves_no_process_behind(processes: Processes) -> None:
    demo = processes.start("demo", [str(AIKI_PUSH), "demo"], {}, group="own")

    assert demo.ended() == 0
    assert "Nothing lost, nothing done twice, no zombie that acts." in demo.log()
    assert not demo.has_left_something()
