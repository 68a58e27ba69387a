"""Synchronous code as an actor: it runs from one pause to the next, only while it has its turn."""

import _thread
from collections.abc import Callable

from tests.simulation.schedule import Schedule


class Crashed(BaseException):
    """The server process that runs this code has died."""


class Fiber:
    """One call of a server process, in a thread of its own that never runs beside another. An Actor.

    `on_end` gets what the call returned, or the exception that it raised: Crashed where the process died.
    """

    def __init__(
        self, name: str, call: Callable[[], object], on_end: Callable[[object], None], fibers: "Fibers", due_us: int
    ) -> None:
        self.name = name
        self.skew_ms, self.slowness = 0, 1
        self.due_us: int | None = due_us
        self.stands_at = "begins"
        self._call = call
        self._on_end = on_end
        self._fibers = fibers
        self._outcome: object = Crashed()
        self._mine, self._theirs = _thread.allocate_lock(), _thread.allocate_lock()
        self._mine.acquire()
        self._theirs.acquire()
        self._has_begun = False
        self.is_crashing = False
        self.has_ended = False

    def act(self) -> str:
        """Run to the next pause or the end."""
        where = self.stands_at
        self._fibers.current = self
        if self._has_begun:
            self._mine.release()
        else:
            self._has_begun = True
            _thread.start_new_thread(self._run, ())
        self._theirs.acquire()
        self._fibers.current = None
        if self.has_ended:
            self._fibers.ended(self)
            self._on_end(self._outcome)
        return f"{self.name} {where}" + (" and ends" if self.has_ended else "")

    def pause(self, due_us: int, where: str) -> None:
        """Called by its own code: let others have their turns until `due_us` at least. Raises Crashed."""
        self.due_us, self.stands_at = due_us, where
        self._theirs.release()
        self._mine.acquire()
        if self.is_crashing:
            raise Crashed

    def _run(self) -> None:
        try:
            self._outcome = self._call()
        except BaseException as error:
            self._outcome = error
        self.has_ended = True
        self._theirs.release()


class Fibers:
    """The fibers of one simulation. Each has a clock that is wrong by `skew_ms`."""

    def __init__(self, schedule: Schedule, skew_ms: Callable[[], int]) -> None:
        self.current: Fiber | None = None
        self._skew_ms = skew_ms
        self._schedule = schedule
        self._alive: dict[Fiber, None] = {}
        self._numbers = 0

    def spawn(self, what: str, call: Callable[[], object], on_end: Callable[[object], None], slowness: int = 1) -> None:
        """Begin a call of the server, of which each access to the table takes `slowness` times as long as usual."""
        self._numbers += 1
        fiber = Fiber(f"server {self._numbers}: {what}", call, on_end, self, self._schedule.now_us)
        fiber.skew_ms, fiber.slowness = self._skew_ms(), slowness
        self._alive[fiber] = None
        self._schedule.add(fiber)

    def ended(self, fiber: Fiber) -> None:
        """Give `fiber` no more turns."""
        del self._alive[fiber]
        self._schedule.remove(fiber)

    def pause(self, delay_us: int, where: str) -> None:
        """Have the running fiber pause; nothing where none runs. Raises Crashed."""
        if self.current is not None:
            self.current.pause(self._schedule.now_us + delay_us, where)

    def crash_all(self) -> None:
        """End every fiber where it stands."""
        for fiber in tuple(self._alive):
            fiber.is_crashing = True
            while not fiber.has_ended:
                fiber.act()
