"""Other runs as a workflow sees them: what it can do to them, once, and what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Cancelled, Failed, Finished, Peer, Run, workflow
from aiki_push.domain.log_records import CallEnded
from aiki_push.errors import ApiError, IllegalTransition, NotFound
from aiki_push.testing import Harness
from tests.unit.sdk.bodies import end_of, output_of, refusal_of, version_of

HOUR = timedelta(hours=1)
RUN_ID = "01M8MER5BZSFP81HXYFC8VWCSD"


@workflow("sleeper").v("1.0.0")
async def sleeper(run: Run) -> list[bool]:
    first = await run.sleep("first", HOUR)
    second = await run.sleep("second", HOUR)
    return [first.woken_early, second.woken_early]


def peer_of(run: Run, run_id: Any = RUN_ID) -> Any:
    """As code without type hints has it."""
    return run.peer(run_id)


def end_of_sleeper(act: Callable[[Run, Peer], Awaitable[None]]) -> tuple[Finished[list[bool]], int]:
    """How a run ends to which another one does this, once it sleeps; and how many hours it took."""

    async def body(run: Run) -> Any:
        await run.sleep("moment", timedelta(minutes=1))
        await act(run, run.peer(target[0]))

    async def scenario() -> Finished[list[bool]]:
        handle = await sleeper.start(harness.client)
        target[:] = [handle.id]
        acting = await version.start(harness.client)
        (await acting.wait()).value()
        return await handle.wait()

    target: list[str] = []
    version = version_of(body)
    with Harness(version, sleeper) as harness:
        began = harness.now
        ended = harness.run(scenario())
        return ended, round((harness.now - began) / 3_600_000)


def test_a_run_is_cancelled_with_an_explanation() -> None:
    async def act(run: Run, peer: Peer) -> None:
        await peer.cancel("no longer wanted")

    ended, hours = end_of_sleeper(act)
    assert (ended.state, hours) == (Cancelled("no longer wanted"), 0)


def test_a_run_is_paused_and_resumed_and_its_sleep_keeps_its_time() -> None:
    async def act(run: Run, peer: Peer) -> None:
        await peer.pause()
        await run.sleep("meanwhile", 10 * HOUR)
        await peer.resume()

    ended, hours = end_of_sleeper(act)
    assert (ended.value(), hours) == ([False, False], 11)


@pytest.mark.parametrize("name", [None, "first"])
def test_a_sleep_is_ended_by_its_name_or_as_one_of_all(name: str | None) -> None:
    async def act(run: Run, peer: Peer) -> None:
        await peer.wakeup(name)

    ended, hours = end_of_sleeper(act)
    assert (ended.value(), hours) == ([True, False], 1)


def test_a_wake_up_by_name_leaves_other_sleeps_alone() -> None:
    async def sleeping(run: Run) -> Any:
        slept = await asyncio.gather(run.sleep("first", HOUR), run.sleep("second", HOUR))
        return [one.woken_early for one in slept]

    async def body(run: Run) -> Any:
        child = await sleepers.start_as_child(run)
        await run.sleep("moment", timedelta(minutes=1))
        await child.wakeup("second")
        return (await child.wait()).value()

    sleepers = version_of(sleeping, "sleepers")
    assert output_of(body, sleepers) == [False, True]


def test_what_was_done_once_is_not_done_again_on_a_replay() -> None:
    async def body(run: Run) -> Any:
        child = await sleeper.start_as_child(run)
        await run.sleep("moment", timedelta(minutes=1))
        await child.pause()
        await run.sleep("long", 5 * HOUR)
        return (await child.wait()).value()

    async def scenario() -> None:
        handle = await version.start(harness.client)
        await asyncio.sleep(120)
        child = await sleeper.get(harness.client, calls(handle.id)[0].run_id)
        assert (await child.refresh()).state.status == "paused"
        await child.resume()
        assert (await handle.wait()).value() == [False, False]
        assert [call.kind for call in calls(handle.id)] == ["child", "pause"]

    def calls(run_id: str) -> list[CallEnded]:
        return [record for record in harness.records(run_id) if isinstance(record, CallEnded)]

    version = version_of(body)
    with Harness(version, sleeper) as harness:
        harness.run(scenario())


UNKNOWN: list[tuple[Callable[[Peer], Awaitable[Any]], type[ApiError]]] = [
    (lambda peer: peer.pause(), NotFound),
    (lambda peer: peer.resume(), NotFound),
    (lambda peer: peer.cancel(), NotFound),
    (lambda peer: peer.wakeup("nap"), NotFound),
]

ENDED: list[tuple[Callable[[Peer], Awaitable[Any]], type[ApiError]]] = [(call, IllegalTransition) for call, _ in UNKNOWN]


@pytest.mark.parametrize(("call", "error", "is_known"), [(*one, False) for one in UNKNOWN] + [(*one, True) for one in ENDED])
def test_a_refusal_is_raised_in_the_workflow_and_again_on_a_replay(
    call: Callable[[Peer], Awaitable[Any]], error: type[ApiError], *, is_known: bool
) -> None:
    said: list[str] = []

    async def ending(run: Run) -> Any: ...

    async def body(run: Run) -> Any:
        peer = run.peer(RUN_ID)
        if is_known:
            child = await ended.start_as_child(run)
            await child.wait()
            peer = child
        with pytest.raises(error) as refused:
            await call(peer)
        said.append(f"{refused.value.code}: {refused.value}")
        await run.sleep("nap", HOUR)
        return peer.id in str(refused.value)

    ended = version_of(ending, "ended")
    assert output_of(body, ended)
    assert len(said) == 2
    assert len(set(said)) == 1
    assert said[0].startswith(f"{error.code}: ")


def test_a_refusal_that_nobody_catches_fails_the_run() -> None:
    ended = end_of(lambda run: run.peer(RUN_ID).pause())
    assert isinstance(ended.state, Failed)
    assert ended.state.error.name == "NotFound"


@pytest.mark.parametrize("act", [lambda peer: peer.pause(), lambda peer: peer.cancel(), lambda peer: peer.wakeup()])
def test_a_run_cannot_control_itself(act: Callable[[Peer], Awaitable[Any]]) -> None:
    async def body(run: Run) -> Any:
        with pytest.raises(IllegalTransition, match="itself; return or raise instead"):
            await act(run.peer(run.id))
        return True

    assert output_of(body)


ULID = "run.peer: run_id must be the id of a run, a ULID of 26 digits and capital letters"


@pytest.mark.parametrize(
    ("run_id", "sentence"),
    [
        ("", ULID),
        ("order-123", ULID),
        (RUN_ID.lower(), ULID),
        (RUN_ID + "A", ULID),
        (RUN_ID + "\n", ULID),
        ("8" + RUN_ID[1:], ULID),
        (5, ULID + "; it is int"),
        (None, ULID + "; it is NoneType"),
    ],
)
def test_what_is_no_id_of_a_run_is_refused(run_id: Any, sentence: str) -> None:
    async def body(run: Run) -> Any:
        return peer_of(run, run_id)

    assert refusal_of(body) == ("SettingsError", sentence)


EXPLANATION = "explanation must be a str of 1 to 1024 characters, or None"


@pytest.mark.parametrize("explanation", ["", "a" * 1_025, 5, True, "half a pair \ud800"])
def test_what_explains_nothing_is_refused(explanation: Any) -> None:
    assert refusal_of(lambda run: peer_of(run).cancel(explanation)) == ("SettingsError", EXPLANATION)


@pytest.mark.parametrize("explanation", ["a", "\n", "ü" * 1_024, None])
def test_the_shortest_and_the_longest_explanation_arrive(explanation: str | None) -> None:
    async def act(run: Run, peer: Peer) -> None:
        await peer.cancel(explanation)

    assert end_of_sleeper(act)[0].state == Cancelled(explanation)


@pytest.mark.parametrize("name", ["", "a nap", "*", 5])
def test_what_is_no_name_of_a_sleep_is_refused(name: Any) -> None:
    assert refusal_of(lambda run: peer_of(run).wakeup(name)) == (
        "SettingsError",
        f"{name!r} cannot name a sleep: use 1 to 128 letters, digits, and . _ : -",
    )


def test_a_peer_is_shown_by_its_id() -> None:
    async def body(run: Run) -> Any:
        return repr(run.peer(RUN_ID))

    assert output_of(body) == f"Peer({RUN_ID})"
