"""Workflows that start others: wait for them, talk to them, end them, share them."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta

from aiki_push import ChildHandle, Completed, Run, TimedOut, event, fixed, workflow
from aiki_push.errors import IllegalTransition, ReferenceConflict
from tests.simulation.endings import FAILED, Pattern, Scenario, joined
from tests.simulation.segments import check, saw
from tests.simulation.waiting_workflows import BELL, DOZED, NOTHING, bell, doze, dozer, first_of, gong, hear, listener
from tests.simulation.work import do, hopeless

report = event("report", str)


async def end_of(run: Run, child: ChildHandle[list[str]], seconds: float | None = None) -> list[str]:
    """The output of the child, or how it ended, or NOTHING where it has not in time."""
    began, timeout = run.now(), None if seconds is None else timedelta(seconds=seconds)
    end = await child.wait(timeout=timeout)
    if isinstance(end, TimedOut):
        check(
            run.now() - began >= (timeout or timedelta.max), f"{child} had not ended, and {timeout} had not passed since {began}"
        )
        return saw(run, [NOTHING])
    return saw(run, end.state.output if isinstance(end.state, Completed) else [end.state.status])


async def tried(run: Run, what: str, operation: Awaitable[None]) -> str:
    """Whether an operation on another run was carried out."""
    try:
        await operation
    except IllegalTransition:
        return saw(run, f"no {what}")
    return saw(run, what)


def sent(run: Run, is_delivered: bool) -> str:
    """Whether an event reached its target."""
    return saw(run, "sent" if is_delivered else "not sent")


@workflow("kid").v("1")
async def kid(run: Run, name: str) -> list[str]:
    await asyncio.sleep(1)
    return [await do(run, name)]


@workflow("naughty").v("1")
async def naughty(run: Run) -> list[str]:
    await hopeless.start(run, "x")
    return []


@workflow("rebel").v("1")
async def rebel(run: Run, parent_id: str) -> list[str]:
    return [await tried(run, "cancel", run.peer(parent_id).cancel()), await do(run, "after")]


@workflow("reporter").v("1", retry=fixed(max_attempts=2, delay_ms=1_000))
async def reporter(run: Run, parent_id: str) -> list[str]:
    parent = run.peer(parent_id)
    first = sent(run, await report.send(parent, f"report#{run.id} 1"))
    second = await do(run, "a")
    if run.attempt == 1:
        raise ConnectionError("reset")
    again = report.with_("reference.id", f"{run.id} 2")
    reports = await asyncio.gather(*(again.send(parent, f"report#{run.id} 2") for _ in range(2)))
    return [first, second, *(sent(run, one) for one in reports)]


@workflow("ringer").v("1")
async def ringer(run: Run, target_id: str) -> list[str]:
    target = run.peer(target_id)
    return [sent(run, await bell.send(target, f"bell#{run.id} {await do(run, str(number))}")) for number in range(2)]


@workflow("family").v("1")
async def family(run: Run) -> list[str]:
    first, second = await asyncio.gather(*(kid.start_as_child(run, name) for name in "ab"))
    third = await kid.with_("delay", timedelta(seconds=5)).start_as_child(run, "c")
    ends = await asyncio.gather(*(end_of(run, one) for one in (first, second, third)))
    return [text for end in ends for text in end]


@workflow("twins").v("1")
async def twins(run: Run) -> list[str]:
    """The same started again is another run."""
    kids = [await kid.start_as_child(run, "same"), *await asyncio.gather(*(kid.start_as_child(run, "same") for _ in range(2)))]
    check(len({one.id for one in kids}) == len(kids), f"these are not {len(kids)} runs: {kids}")
    return [text for one in kids for text in await end_of(run, one)]


@workflow("anxious").v("1")
async def anxious(run: Run) -> list[str]:
    """Waits for all of them, and not for ever."""
    kids = [await kid.start_as_child(run, name) for name in "abc"]
    ends = await asyncio.gather(*(end_of(run, one, 20) for one in kids))
    return [text for end in ends for text in end]


@workflow("chatty").v("1")
async def chatty(run: Run) -> list[str]:
    """Talks and listens at the same time."""
    child = await ringer.start_as_child(run, run.id)

    async def talk() -> list[str]:
        return [sent(run, await gong.send(child, f"gong#{run.id} {number}")) for number in range(8)]

    async def listen() -> list[str]:
        return [await hear(run, bell, 8) for _ in range(3)]

    said, heard, _ = await asyncio.gather(talk(), listen(), do(run, "a"))
    return [*said, *heard, *await end_of(run, child)]


@workflow("grandparent").v("1")
async def grandparent(run: Run) -> list[str]:
    child = await family.start_as_child(run)
    first = await first_of(hear(run, bell), doze(run, "nap", 30))
    return [first, *await end_of(run, child)]


@workflow("timid").v("1")
async def timid(run: Run) -> list[str]:
    child = await listener.start_as_child(run)
    first = await end_of(run, child, 5)
    if first == [NOTHING]:
        first = [await tried(run, "cancel", child.cancel("it takes too long"))]
    return [*first, *await end_of(run, child)]


@workflow("sharing").v("1")
async def sharing(run: Run) -> list[str]:
    """Of two such parents, one has the child that the other has."""
    shared = kid.with_("reference.id", "shared")
    one, two = await asyncio.gather(*(shared.start_as_child(run, "shared") for _ in range(2)))
    try:
        await shared.start_as_child(run, "something else")
    except ReferenceConflict:
        saw(run, "a conflict")
    first = await end_of(run, one, 2)
    both = await asyncio.gather(end_of(run, two), end_of(run, one))
    third = await shared.start_as_child(run, "shared")
    return [*first, *both[0], *both[1], *await end_of(run, third)]


@workflow("editor").v("1")
async def editor(run: Run) -> list[str]:
    child = await reporter.start_as_child(run, run.id)
    heard = [await hear(run, report, 3)]
    end = await end_of(run, child)
    while heard[-1] != NOTHING or len(heard) == 1:
        heard.append(await hear(run, report, 1))
    return [*end, *(text for text in heard if text != NOTHING)]


@workflow("echo").v("1")
async def echo(run: Run) -> list[str]:
    here = sent(run, await report.send(run.peer(run.id), f"report#{run.id}"))
    return [here, await hear(run, report), await hear(run, report, 2)]


@workflow("victim").v("1")
async def victim(run: Run) -> list[str]:
    return await end_of(run, await rebel.start_as_child(run, run.id))


@workflow("siblings").v("1")
async def siblings(run: Run) -> list[str]:
    one = await listener.start_as_child(run)
    two = await ringer.start_as_child(run, one.id)
    ends = await asyncio.gather(end_of(run, one), end_of(run, two))
    return [*ends[0], *ends[1]]


@workflow("unlucky").v("1")
async def unlucky(run: Run) -> list[str]:
    child = await naughty.start_as_child(run)
    return (await child.wait()).value()


@workflow("stubborn").v("1", retry=fixed(max_attempts=3, delay_ms=1_500))
async def stubborn(run: Run) -> list[str]:
    child = await kid.start_as_child(run, "same")
    end = await end_of(run, child)
    other = await kid.start_as_child(run, f"attempt {run.attempt}")
    if run.attempt < 3:
        raise ConnectionError("reset")
    return [*end, *await end_of(run, other)]


@workflow("careless").v("1")
async def careless(run: Run) -> list[str]:
    await asyncio.gather(kid.start_as_child(run, "alone"), family.start_as_child(run))
    return [await do(run, "gone")]


@workflow("governor").v("1")
async def governor(run: Run) -> list[str]:
    child = await dozer.start_as_child(run)
    done = [await tried(run, "pause", child.pause()), await doze(run, "nap", 5)]
    done += [await tried(run, "resume", child.resume()), await tried(run, "wakeup", child.wakeup("night"))]
    return [*done, *await end_of(run, child)]


CANCELLED: list[Pattern] = ["cancelled"]
SENT = ("sent", "not sent")
LISTENED: tuple[list[Pattern], ...] = (["bell", "between", "bell"], CANCELLED)
FAMILY: tuple[list[Pattern], ...] = ([("a", "cancelled"), ("b", "cancelled"), ("c", "cancelled")], CANCELLED)
RUNG: tuple[list[Pattern], ...] = ([SENT, SENT], CANCELLED)
SHARED: tuple[list[Pattern], ...] = (["shared"], CANCELLED)
REPORTED: tuple[list[Pattern], ...] = (["sent", "a", "sent", "sent", "report", "report"], CANCELLED)
REPORTS: tuple[list[Pattern], ...] = (["report"], ["report", "report"])

SCENARIOS = (
    Scenario(kid, [("a", "b", "c", "alone", "shared", "same", "attempt 1", "attempt 2", "attempt 3")], takes_input=True),
    Scenario(naughty, FAILED),
    Scenario(rebel, [("cancel", "no cancel"), "after"], takes_input=True),
    Scenario(reporter, [SENT, "a", SENT, SENT], takes_input=True),
    Scenario(ringer, [SENT, SENT], takes_input=True),
    Scenario(family, FAMILY[0]),
    Scenario(anxious, [(name, "cancelled", NOTHING) for name in "abc"]),
    Scenario(chatty, joined(([*[SENT] * 8, *[BELL] * 3],), RUNG)),
    Scenario(twins, [("same", "cancelled")] * 3),
    Scenario(grandparent, joined(([("bell", *DOZED)],), FAMILY)),
    Scenario(timid, joined((*LISTENED, ["cancel"], ["no cancel"]), LISTENED)),
    Scenario(sharing, joined((*SHARED, [NOTHING]), SHARED, SHARED, SHARED)),
    Scenario(editor, (*REPORTED, *([*CANCELLED, *some] for some in REPORTS))),
    Scenario(echo, ["sent", "report", NOTHING]),
    Scenario(victim, CANCELLED),
    Scenario(siblings, joined(LISTENED, RUNG)),
    Scenario(unlucky, FAILED),
    Scenario(stubborn, [("same", "cancelled"), ("attempt 3", "cancelled")]),
    Scenario(careless, ["gone"]),
    Scenario(
        governor,
        joined(
            ([("pause", "no pause"), DOZED, ("resume", "no resume"), ("wakeup", "no wakeup")],),
            ([DOZED, DOZED, "beside", DOZED, DOZED], CANCELLED),
        ),
    ),
)
