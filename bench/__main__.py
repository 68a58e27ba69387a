"""`python -m bench` measures and compares with `bench/baseline.jsonl`; `--keep` makes the figures the new baseline."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from bench import on_memory
from bench.figures import Figure

BASELINE = Path(__file__).with_name("baseline.jsonl")


def main() -> None:
    """Measure, print one JSON line a figure, and each figure's ratio to the baseline on stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep these figures as the baseline")
    parser.add_argument("--on", choices=["memory", "http", "all"], default="all", help="the system to measure")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    figures = list(asyncio.run(on_memory.measure())) if options.on != "http" else []
    if options.on != "memory":
        from bench.on_http import measure

        figures += measure()
    for one in figures:
        print(one.line(), flush=True)
    _compare(figures)
    loads = f"{load_before:.1f} before, {os.getloadavg()[0]:.1f} after"
    print(f"load of this machine, which has {os.cpu_count()} cores: {loads}", file=sys.stderr)
    if options.keep:
        BASELINE.write_text("".join(one.line() + "\n" for one in figures))


def _compare(figures: list[Figure]) -> None:
    lines = BASELINE.read_text().splitlines() if BASELINE.exists() else []
    kept = {(old["workload"], old["on"], old["metric"]): old["value"] for old in map(json.loads, lines)}
    for one in figures:
        old = kept.get((one.workload, one.on, one.metric))
        ratio = f"{one.value / old:.2f} of the baseline" if old else "no baseline" if old is None else f"{old:g} in the baseline"
        print(f"{one.workload} {one.on}: {one.value:g} {one.metric} ({ratio})", file=sys.stderr)


if __name__ == "__main__":
    main()
