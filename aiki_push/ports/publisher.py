"""Ways to offer ready runs to executors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from aiki_push.domain.values import RunId, TimestampMs


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """A queued run on offer. `offer` counts the offers since it was queued, the first being 1."""

    namespace: str
    run_id: RunId
    workflow: str
    version: str
    pool: str | None
    priority: int
    revision: int
    ready_at: TimestampMs
    offer: int


@dataclass(frozen=True, slots=True)
class Published:
    """An executor took the offer, or may have: the claim will tell."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Held back by the executor; offer it again at `until`."""

    until: TimestampMs


@dataclass(frozen=True, slots=True)
class Failed:
    """The delivery failed; `error` is one readable line, shown with the run."""

    error: str


@dataclass(frozen=True, slots=True)
class Declined:
    """Nothing behind this publisher takes such runs; `has_route` is False where no endpoint is registered for them at all."""

    has_route: bool = True


Outcome: TypeAlias = Published | Deferred | Failed | Declined


class Publisher(Protocol):
    """Offers runs. Safe to call from any thread."""

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """Offer each of `runs`, concurrently where it can; one outcome for each, in the same order. Never raises for one of them."""
        ...
