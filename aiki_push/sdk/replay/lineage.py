"""Names of branches."""

from dataclasses import dataclass


@dataclass(slots=True)
class Lineage:
    """A branch's name, and what it has created so far. Names and numbers are the same on every replay."""

    name: str
    children: int = 0
    timers: int = 0
    draws: int = 0

    def next_child(self) -> "Lineage":
        """The lineage of one more branch created by this one."""
        self.children += 1
        return Lineage(f"{self.name}.{self.children}")

    def next_timer(self) -> int:
        """The ordinal, from 1, of one more timer created by this branch."""
        self.timers += 1
        return self.timers

    def next_draw(self) -> int:
        """The number, from 1, of one more random value that this branch asks for."""
        self.draws += 1
        return self.draws
