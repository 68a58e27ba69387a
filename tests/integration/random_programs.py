"""Programs for workflows, made from seeds: trees of tasks, waits, children and branches whose outcome depends on no race.

Whatever takes time ends at an hour of its own, so what a crash delays by minutes keeps its place in the order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from tests.integration.random_parts import Node, Part, Program, Sending


def random_program(seed: int) -> Program:
    """The program of this seed."""
    maker = _Maker(Random(seed))
    depth, is_retried = maker.random.choice([1, 2, 2, 2, 3]), maker.random.random() < 0.25
    body = maker.retried(depth) if is_retried else maker.caught(maker.part(0, depth)).node
    return Program({"do": "main", "name": "p0", "body": body}, tuple(maker.sendings), is_retried)


@dataclass
class _Maker:
    random: Random
    sendings: list[Sending] = field(default_factory=list)
    used: set[int] = field(default_factory=lambda: {0})
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    program: str = "p0"
    began: int = 0
    """The hour at which the run of `program` begins."""

    def hour(self, after: int) -> int:
        """One at which nothing else happens."""
        hour = after + self.random.randint(1, 20)
        while hour in self.used:
            hour += 1
        self.used.add(hour)
        return hour

    def name(self, kind: str) -> str:
        return f"{kind}{next(self.numbers)}"

    def retried(self, depth: int) -> Node:
        """Something, a failure of the first attempt or the first two, and something more."""
        first = self.part(0, depth - 1)
        fault = {"do": "raise_before", "attempt": self.random.choice([2, 2, 3])}
        failing = {"do": "task", "number": next(self.numbers), "fails": 0, "sick_before": 2}
        second = self.caught(self.part(first.end, depth - 1))
        return {"do": "sequence", "parts": [{"do": "catch", "body": failing}, self.caught(first).node, fault, second.node]}

    # ---- what has no parts

    def part(self, at: int, depth: int) -> Part:
        inner = (
            self.sequence,
            self.gather,
            self.race,
            self.wait_for_all,
            self.first_exception,
            self.as_completed,
            self.group,
            self.within,
            self.shielded,
            self.cancelled,
            self.one_by_one,
            self.queued,
            self.child,
            self.talk,
            self.stop,
            self.twins,
        )
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf(at)
        return self.random.choice(inner)(at, depth - 1)

    def leaf(self, at: int) -> Part:
        leaves = (self.task, self.task, self.tasks, self.note, self.fault, self.shared, self.busy, self.busy)
        return self.random.choice((*leaves, self.timed, self.timed, self.timed))(at)

    def timed(self, at: int) -> Part:
        """Something that ends later than `at`, and does not fail."""
        kinds: Sequence[Callable[[int], Part]] = (self.sleep, self.woken, self.timer, self.event, self.late_event)
        families = (self.hear, self.nudge, self.hold, self.persistent)
        return self.random.choice((*kinds, *kinds, *families))(at)

    def task(self, at: int) -> Part:
        fails = self.random.choice([0, 0, 0, 1, 2, 3])
        return Part({"do": "task", "number": next(self.numbers), "fails": fails}, at, fails=fails == 3)

    def tasks(self, at: int) -> Part:
        """The same call several times."""
        call = {"do": "task", "number": next(self.numbers), "fails": 0}
        return Part({"do": self.random.choice(["gather", "sequence"]), "parts": [call] * self.random.randint(2, 4)}, at)

    def busy(self, at: int) -> Part:
        """Branches that have tasks and children carried out all the time."""
        return self.side_by_side("gather", [self.errands(at) for _ in range(self.random.randint(2, 4))])

    def errands(self, at: int) -> Part:
        return self.joined([self.caught(self.errand(at)) for _ in range(self.random.randint(2, 4))])

    def errand(self, at: int) -> Part:
        if self.random.random() < 0.6:
            return self.task(at)
        child = self.nested(at, lambda: self.task(at))
        return Part({"do": "child", "body": child.node, "hours": None, "reference": None}, at)

    def note(self, at: int) -> Part:
        return Part({"do": "note"}, at)

    def fault(self, at: int) -> Part:
        return Part({"do": "raise_before", "attempt": 100}, at, fails=True)

    def sleep(self, at: int) -> Part:
        end = self.hour(at)
        return Part({"do": "sleep", "name": self.random.choice(["nap", "rest"]), "hours": end - at}, end)

    def woken(self, at: int) -> Part:
        end, name = self.hour(at), self.name("dream")
        self.sendings.append(Sending(end, self.program, name))
        return Part({"do": "sleep", "name": name, "hours": end - at + self.random.randint(30, 60)}, end)

    def timer(self, at: int) -> Part:
        end = self.hour(at)
        return Part({"do": "timer", "hours": end - at}, end)

    def event(self, at: int) -> Part:
        end, name = self.hour(at), self.name("event")
        self.sendings.append(Sending(end, self.program, name, next(self.numbers)))
        hours = self.random.choice([None, self.hour(end) - at])
        return Part({"do": "event", "name": name, "hours": hours}, end)

    def late_event(self, at: int) -> Part:
        end, name = self.hour(at), self.name("event")
        self.sendings.append(Sending(self.hour(end), self.program, name, next(self.numbers)))
        return Part({"do": "event", "name": name, "hours": end - at}, end)

    def shared(self, at: int) -> Part:
        """Several waits for one event, sent as often, maybe before."""
        name, number = self.name("event"), self.random.randint(1, 4)
        hours = [self.hour(max(self.began, at + self.random.choice([-40, 0]))) for _ in range(number)]
        self.sendings += [Sending(hour, self.program, name, next(self.numbers)) for hour in hours]
        waits = [{"do": "event", "name": name, "hours": None}] * number
        return Part({"do": "gather", "parts": waits}, max(at, *hours))

    def hear(self, at: int) -> Part:
        """A child that sends its parent an event."""
        event = self.name("event")
        said = {"do": "say", "event": event, "number": next(self.numbers)}
        child = self.nested(at, lambda: self.joined([first := self.timed(at), Part(said, first.end)]))
        return Part({"do": "hear", "body": child.node, "event": event}, child.end)

    def nudge(self, at: int) -> Part:
        """A child that is woken from its sleep."""
        end, name = self.hour(at), self.name("dream")
        child = self.nested(at, lambda: Part({"do": "sleep", "name": name, "hours": end - at + 50}, end))
        return Part({"do": "nudge", "body": child.node, "hours": end - at, "name": name}, end)

    def hold(self, at: int) -> Part:
        """A child that is paused for some hours, if it still goes on then."""
        child, begin = self.nested(at, lambda: self.timed(at)), self.hour(at)
        end = self.hour(begin)
        node = {"do": "hold", "body": child.node, "before": begin - at, "hours": end - begin}
        return Part(node, max(child.end, end))

    def persistent(self, at: int) -> Part:
        """A child that fails once, and is tried again twenty minutes later."""
        fault = Part({"do": "raise_before", "attempt": 2}, at)
        child = self.nested(at, lambda: self.joined([self.caught(self.task(at)), fault, self.timed(at)]))
        return Part({"do": "child", "body": child.node, "hours": None, "reference": None, "is_retried": True}, child.end)

    # ---- what has parts

    def parts(self, at: int, depth: int) -> list[Part]:
        return [self.part(at, depth) for _ in range(self.random.randint(2, 3))]

    def rivals(self, at: int, depth: int) -> list[Part]:
        """Parts of which no two end at the same time, and none fails."""
        parts = [self.timed_first(at, depth) for _ in range(self.random.randint(2, 3))]
        if self.random.random() < 0.3:
            parts[0] = self.caught(self.part(at, depth))
        self.random.shuffle(parts)
        return parts

    def timed_first(self, at: int, depth: int) -> Part:
        first = self.timed(at)
        return self.caught(self.joined([first, self.part(first.end, depth)]))

    def joined(self, parts: list[Part]) -> Part:
        return Part({"do": "sequence", "parts": [part.node for part in parts]}, parts[-1].end, parts[-1].fails)

    def caught(self, part: Part) -> Part:
        return Part({"do": "catch", "body": part.node}, part.end) if part.fails else part

    def side_by_side(self, do: str, parts: list[Part]) -> Part:
        faults = [part.end for part in parts if part.fails]
        end = min(faults) if faults else max(part.end for part in parts)
        return Part({"do": do, "parts": [part.node for part in parts]}, end, fails=bool(faults))

    def sequence(self, at: int, depth: int) -> Part:
        parts: list[Part] = []
        for _ in range(self.random.randint(2, 4)):
            parts.append(self.part(at, depth))
            if parts[-1].fails:
                break
            at = parts[-1].end
        return self.joined(parts)

    def gather(self, at: int, depth: int) -> Part:
        return self.side_by_side("gather", self.parts(at, depth))

    def group(self, at: int, depth: int) -> Part:
        return self.side_by_side("group", self.parts(at, depth))

    def wait_for_all(self, at: int, depth: int) -> Part:
        return self.side_by_side("wait_for_all", [self.caught(part) for part in self.parts(at, depth)])

    def race(self, at: int, depth: int) -> Part:
        rivals = self.rivals(at, depth)
        return Part({"do": "race", "parts": [part.node for part in rivals]}, min(part.end for part in rivals))

    def first_exception(self, at: int, depth: int) -> Part:
        first = self.timed(at)
        rivals = [*self.rivals(at, depth), self.joined([first, self.fault(first.end)])]
        self.random.shuffle(rivals)
        return Part({"do": "first_exception", "parts": [part.node for part in rivals]}, first.end)

    def as_completed(self, at: int, depth: int) -> Part:
        return self.side_by_side("as_completed", self.rivals(at, depth))

    def within(self, at: int, depth: int) -> Part:
        body, deadline = self.part(at, depth), self.hour(at)
        node = {"do": "within", "hours": deadline - at, "body": body.node}
        return Part(node, body.end, body.fails) if body.end < deadline else Part(node, deadline)

    def shielded(self, at: int, depth: int) -> Part:
        body = self.part(at, depth)
        return Part({"do": "shielded", "hours": self.hour(at) - at, "body": body.node}, body.end, body.fails)

    def cancelled(self, at: int, depth: int) -> Part:
        body, end = self.caught(self.part(at, depth)), self.hour(at)
        return Part({"do": "cancelled", "hours": end - at, "body": body.node}, end)

    def one_by_one(self, at: int, depth: int) -> Part:
        parts: list[Part] = []
        for _ in range(self.random.randint(2, 3)):
            parts.append(self.caught(self.part(at, depth)))
            at = parts[-1].end
        return Part({"do": "one_by_one", "parts": [part.node for part in parts]}, at)

    def queued(self, at: int, depth: int) -> Part:
        part = self.one_by_one(at, depth)
        return Part(part.node | {"do": "queued"}, part.end)

    def nested(self, at: int, made: Callable[[], Part]) -> Part:
        """What a child does that begins at that hour."""
        outer, self.program, self.began = (self.program, self.began), self.name("p"), at
        name, body = self.program, made()
        self.program, self.began = outer
        return Part({"do": "main", "name": name, "body": body.node}, body.end, body.fails)

    def child(self, at: int, depth: int) -> Part:
        body = self.nested(at, lambda: self.part(at, depth))
        deadline = self.hour(at) if self.random.random() < 0.3 else None
        reference = self.name("reference") if self.random.random() < 0.3 else None
        hours = None if deadline is None else deadline - at
        end = body.end if deadline is None else min(body.end, deadline)
        return Part({"do": "child", "body": body.node, "hours": hours, "reference": reference}, end)

    def twins(self, at: int, depth: int) -> Part:
        """One child that several branches start by the same reference."""
        child = self.nested(at, lambda: self.part(at, depth))
        node = {"do": "child", "body": child.node, "hours": None, "reference": self.name("reference")}
        return Part({"do": "gather", "parts": [node] * self.random.randint(2, 3)}, child.end)

    def talk(self, at: int, depth: int) -> Part:
        """A child that waits for an event of its parent, which does something first."""
        event, first = self.name("event"), self.caught(self.part(at, depth))
        hears = Part({"do": "event", "name": event, "hours": None}, first.end)
        child = self.nested(at, lambda: self.joined([hears, self.part(first.end, depth)]))
        return Part({"do": "talk", "body": child.node, "event": event, "first": first.node}, child.end)

    def stop(self, at: int, depth: int) -> Part:
        """A child that is cancelled some time."""
        body, end = self.nested(at, lambda: self.part(at, depth)), self.hour(at)
        return Part({"do": "stop", "body": body.node, "hours": end - at}, end)
