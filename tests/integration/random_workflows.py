"""One workflow that does what its input says."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

from aiki_push import ChildHandle, Completed, Received, Run, TimedOut, WorkflowVersion, event, fixed, task, task_info, workflow
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.values import Json
from aiki_push.errors import TaskFailed
from aiki_push.sdk.replay.loop import WorkflowLoop
from tests.integration.random_parts import Node
from tests.integration.random_world import Trace, World

HOUR_S = 3_600
RETRY_MS = 20 * 60_000


def version_in(world: World) -> WorkflowVersion[[str], str]:
    """The workflow: it takes a program as JSON, and gives what came of that, as JSON."""

    @task("effect", retry=fixed(max_attempts=3, delay_ms=1_000))
    async def effect(spec: dict[str, int]) -> dict[str, int]:
        execution, info = next(world.executions), task_info()
        await asyncio.sleep(spec["number"] % 7 + world.extra_s())
        if info.attempt <= spec["fails"] or world.attempts[info.run_id] < spec.get("sick_before", 0):
            raise ValueError("not this time")
        world.done.add(execution)
        return {"number": spec["number"], "execution": execution}

    @task("thread", retry=fixed(max_attempts=3, delay_ms=1_000))
    def thread(spec: dict[str, int]) -> dict[str, int]:
        execution = next(world.executions)
        if task_info().attempt <= spec["fails"]:
            raise ValueError("not this time")
        world.done.add(execution)
        return {"number": spec["number"], "execution": execution}

    async def call(run: Run, spec: dict[str, int]) -> dict[str, int]:
        is_plain = spec["number"] % 10 == 0 and not spec["sick_before"]
        return await (thread if is_plain else effect).start(run, spec)

    @workflow("random").v("1")
    async def random(run: Run, given: str) -> str:
        program = json.loads(given)
        body = program["body"]
        interpreter = Interpreter(run, world.begin(run, body["name"]), call, random, program["parent"])
        return json.dumps(await interpreter.do(body))

    return random


class Fault(Exception):
    """What a program raises."""


class Interpreter:
    """Does what the nodes of a program say; a method for each kind of node."""

    def __init__(
        self,
        run: Run,
        trace: Trace,
        call: Callable[[Run, dict[str, int]], Awaitable[dict[str, int]]],
        version: WorkflowVersion[[str], str],
        parent: str,
    ) -> None:
        self.run = run
        self.trace = trace
        self.call = call
        self.version = version
        self.parent = parent

    async def do(self, node: Node) -> Json:
        arguments = {name: value for name, value in node.items() if name != "do"}
        result: Json = await getattr(self, node["do"])(**arguments)
        self.see(node["do"], result)
        return result

    def see(self, what: str, value: Json) -> None:
        current = asyncio.current_task()
        assert current is not None
        if not self.run.suspending:
            self.trace.seen.append((current.get_name(), what, value, int(self.run.now().timestamp() * 1_000)))

    def branch(self, node: Node) -> asyncio.Task[Json]:
        return asyncio.create_task(self.do(node))

    def branches(self, parts: list[Node]) -> list[asyncio.Task[Json]]:
        return [self.branch(part) for part in parts]

    async def main(self, name: str, body: Node) -> Json:
        return [name, await self.do(body)]

    async def task(self, number: int, fails: int, sick_before: int = 0) -> Json:
        result = await self.call(self.run, {"number": number, "fails": fails, "sick_before": sick_before})
        self.see("execution", result["execution"])
        return result["number"]

    async def note(self) -> Json:
        self.see("uuid", str(self.run.uuid()))
        self.see("random", self.run.random())
        self.see("time", asyncio.get_running_loop().time())
        return None

    async def raise_before(self, attempt: int) -> Json:
        if self.run.attempt < attempt:
            raise Fault
        return None

    async def sleep(self, name: str, hours: int) -> Json:
        return (await self.run.sleep(name, timedelta(hours=hours))).woken_early

    async def timer(self, hours: int) -> Json:
        await asyncio.sleep(hours * HOUR_S)
        return None

    async def event(self, name: str, hours: int | None) -> Json:
        got = await event(name, int).wait(self.run, timeout=None if hours is None else timedelta(hours=hours))
        return got.data if isinstance(got, Received) else "late"

    async def say(self, event: str, number: int) -> Json:
        is_sent: bool = await events(event).send(self.run.peer(self.parent), number)
        return is_sent

    # ---- branches

    async def sequence(self, parts: list[Node]) -> Json:
        return [await self.do(part) for part in parts]

    async def gather(self, parts: list[Node]) -> Json:
        return list(await asyncio.gather(*self.branches(parts)))

    async def group(self, parts: list[Node]) -> Json:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.do(part)) for part in parts]
        return [task.result() for task in tasks]

    async def wait_for_all(self, parts: list[Node]) -> Json:
        tasks = self.branches(parts)
        await asyncio.wait(tasks)
        return [task.result() for task in tasks]

    async def race(self, parts: list[Node]) -> Json:
        return await self.first(self.branches(parts), asyncio.FIRST_COMPLETED)

    async def first_exception(self, parts: list[Node]) -> Json:
        return await self.first(self.branches(parts), asyncio.FIRST_EXCEPTION)

    async def first(self, tasks: list[asyncio.Task[Json]], return_when: str) -> Json:
        done, pending = await asyncio.wait(tasks, return_when=return_when)
        for loser in pending:
            loser.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return ["raised" if task.exception() else task.result() for task in tasks if task in done]

    async def as_completed(self, parts: list[Node]) -> Json:
        return [await task for task in asyncio.as_completed(self.branches(parts))]

    async def one_by_one(self, parts: list[Node]) -> Json:
        turn = asyncio.Semaphore(1)

        async def take_turn(part: Node) -> Json:
            async with turn:
                return await self.do(part)

        return list(await asyncio.gather(*(take_turn(part) for part in parts)))

    async def queued(self, parts: list[Node]) -> Json:
        queue: asyncio.Queue[Json] = asyncio.Queue(1)

        async def produce() -> None:
            for part in parts:
                await queue.put(await self.do(part))

        producer = asyncio.create_task(produce())
        got = [await queue.get() for _ in parts]
        await producer
        return got

    # ---- around a part

    async def catch(self, body: Node) -> Json:
        try:
            return await self.do(body)
        except* (Fault, TaskFailed):
            pass
        return "caught"

    async def within(self, hours: int, body: Node) -> Json:
        try:
            async with asyncio.timeout(hours * HOUR_S):
                return await self.do(body)
        except TimeoutError:
            return "too slow"

    async def shielded(self, hours: int, body: Node) -> Json:
        inner = self.branch(body)
        try:
            return await asyncio.wait_for(asyncio.shield(inner), hours * HOUR_S)
        except TimeoutError:
            return await inner

    async def cancelled(self, hours: int, body: Node) -> Json:
        branch = self.branch(body)
        await asyncio.sleep(hours * HOUR_S)
        branch.cancel()
        await asyncio.wait([branch])
        return "cancelled" if branch.cancelled() else branch.result()

    # ---- children

    def program(self, body: Node) -> str:
        return json.dumps({"body": body, "parent": self.run.id})

    async def start(self, body: Node) -> ChildHandle[str]:
        return await self.version.start_as_child(self.run, self.program(body))

    async def child(self, body: Node, hours: int | None, reference: str | None, is_retried: bool = False) -> Json:
        version = self.version.with_("retry", fixed(max_attempts=2, delay_ms=RETRY_MS)) if is_retried else self.version
        single = version if reference is None else version.with_("reference.id", f"{self.run.id} {reference}")
        child = await single.start_as_child(self.run, self.program(body))
        return await self.end_of(child.wait(timeout=None if hours is None else timedelta(hours=hours)))

    async def end_of(self, waiting: Coroutine[Any, Any, Any]) -> Json:
        ended = await waiting
        if isinstance(ended, TimedOut):
            return "late"
        outcome: Json = json.loads(ended.state.output) if isinstance(ended.state, Completed) else ended.state.status
        return outcome

    async def hear(self, body: Node, event: str) -> Json:
        await self.start(body)
        got: Received[int] = await events(event).wait(self.run)
        return got.data

    async def talk(self, body: Node, event: str, first: Node) -> Json:
        child = await self.start(body)
        before = await self.do(first)
        is_sent = await events(event).send(child, 1)
        ended = await self.end_of(child.wait())
        return [before, is_sent, ended, await events(event).send(child, 2)]

    async def stop(self, body: Node, hours: int) -> Json:
        child = await self.start(body)
        await self.run.sleep("watch", timedelta(hours=hours))
        await self.unless_ended(child.cancel("enough"))
        return await self.end_of(child.wait())

    async def nudge(self, body: Node, hours: int, name: str) -> Json:
        child = await self.start(body)
        await self.run.sleep("watch", timedelta(hours=hours))
        await child.wakeup(name)
        return await self.end_of(child.wait())

    async def hold(self, body: Node, before: int, hours: int) -> Json:
        child = await self.start(body)
        await asyncio.sleep(before * HOUR_S)
        await self.unless_ended(child.pause())
        await asyncio.sleep(hours * HOUR_S)
        await self.unless_ended(child.resume())
        return await self.end_of(child.wait())

    async def unless_ended(self, control: Coroutine[Any, Any, None]) -> None:
        try:
            await control
        except IllegalTransition:
            self.see("control", "it had ended")


def events(name: str) -> Any:
    return event(name, int)


def unhandled_in(world: World) -> list[BaseException]:
    """What branches raised and nobody looked at, but for what programs raise in branches that they have given up."""
    unhandled = [error for loop in world.loops if isinstance(loop, WorkflowLoop) for error in loop.unhandled]
    return [error for error in unhandled if not isinstance(error, Fault | TaskFailed)]
