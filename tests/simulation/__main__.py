"""`python -m tests.simulation --seeds 300` simulates many; `--seed N` replays one and prints what happened."""

import argparse
import logging
import sys

from tests.simulation.simulation import STEPS, Failure, simulate

LAST_LINES = 200


def main() -> int:
    """Simulate; the exit code is 1 for the first seed that goes wrong, whose number and last lines are printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds, from 0")
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--steps", type=int, default=STEPS, help="turns in the time of faults")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # faults are the point; what they log is not
    seeds = [options.seed] if options.seed is not None else range(options.seeds)
    for seed in seeds:
        try:
            simulate(seed, options.steps)
        except Failure as failure:
            print(*failure.trace[-LAST_LINES:], sep="\n")
            print(f"seed {failure.seed} went wrong after {failure.steps} turns: {failure.violation}")
            print(f"again: make simulate SEED={failure.seed}")
            return 1
    print(f"{len(seeds)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
