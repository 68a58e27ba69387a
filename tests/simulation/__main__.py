"""Look for an order of events, or a fault at the wrong moment, that breaks a promise; a seed that found one can be replayed."""

import argparse
import logging
import sys
from collections.abc import Iterator
from multiprocessing import Pool

from tests.simulation.protocol import Bounds, Protocol
from tests.simulation.schedule import Violation
from tests.simulation.simulation import STEPS, Failure, simulate
from tests.simulation.stored_states import StoredStates

SEEDS = 600
BOUNDS = (
    Bounds(revisions=4, appends=2),
    Bounds(revisions=3, appends=1, overtaking=True),
    Bounds(revisions=3, appends=1, outside=("event", "pause", "resume")),
    Bounds(revisions=3, appends=1, outside=("event", "cancel"), child=True),
    Bounds(revisions=3, appends=1, outside=("cancel", "child's end"), child=True),
    Bounds(revisions=3, appends=1, outside=("event", "directive to pause", "directive to cancel")),
    Bounds(revisions=2, appends=1, outside=("event", "another event"), overtaking=True),
    Bounds(revisions=2, appends=1, outside=("pause", "resume", "cancel"), overtaking=True),
    Bounds(revisions=2, appends=1, outside=("event", "directive to cancel"), overtaking=True),
    Bounds(revisions=2, appends=1, outside=("cancel", "child's end"), child=True, overtaking=True),
)
LAST_LINES = 200


def main() -> int:
    """The exit code: 1 where something went wrong, which is printed."""
    options = _options()
    if options.seed is not None:
        faults = iter([_simulated(options.seed, options.steps, show=sys.maxsize)])
    else:
        faults = _everything(range(options.first, options.first + options.seeds), options.steps)
    failed = passed = 0
    for fault in faults:
        failed, passed = failed + bool(fault), passed + (not fault)
        if fault:
            print(fault, flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many simulations, {SEEDS} unless said otherwise")
    parser.add_argument("--first", type=int, default=0, help="the first seed, 0 unless said otherwise")
    parser.add_argument("--seed", type=int, help="one simulation, this one, with all that happens in it")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help=f"how long there are faults, {STEPS} turns unless said otherwise"
    )
    return parser.parse_args()


def _everything(seeds: range, steps: int) -> Iterator[str]:
    """What went wrong in each exploration and each simulation; "" where nothing did."""
    with Pool(initializer=logging.disable, initargs=(logging.CRITICAL,)) as processes:
        explored = processes.imap_unordered(_explored, BOUNDS)
        yield from processes.imap_unordered(_simulated_briefly, [(seed, steps) for seed in seeds])
        yield from explored


def _explored(bounds: Bounds) -> str:
    try:
        Protocol(StoredStates(), bounds).explore()
    except Violation as violation:
        return f"{bounds}: {violation}"
    return ""


def _simulated_briefly(seed_and_steps: tuple[int, int]) -> str:
    return _simulated(*seed_and_steps, show=LAST_LINES)


def _simulated(seed: int, steps: int, *, show: int) -> str:
    try:
        simulation = simulate(seed, steps)
    except Failure as failure:
        again = f"make simulate SEED={seed}" + (f" STEPS={steps}" if steps != STEPS else "")
        return "\n".join((*failure.trace[-show:], str(failure), f"All of it, again: {again}"))
    if show > LAST_LINES:
        print(*simulation.schedule.trace, sep="\n")
    return ""


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # faults are the point here; what is logged about them is not
    sys.exit(main())
