"""A figure: what was measured, on what, and how it spread over the repetitions."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is the median of `n` repetitions. `on` is the system measured: `memory`, or `http` for the local system over HTTP."""

    workload: str
    on: str
    metric: str
    value: float
    min: float
    max: float
    n: int

    def line(self) -> str:
        """One JSON line."""
        return json.dumps(asdict(self), separators=(", ", ": "))


def figure(workload: str, on: str, metric: str, values: Sequence[float]) -> Figure:
    """The figure of repeated measurements; at least one."""
    return Figure(workload, on, metric, round(median(values), 4), round(min(values), 4), round(max(values), 4), len(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of `values` do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
