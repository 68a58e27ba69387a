"""The options of a start, each by its path: what `with_` sets, and what a version is defined with."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, NotRequired, TypeAlias, cast, get_args

from typing_extensions import TypedDict

from aiki_push.domain.durations import duration_ms
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.retry import Exponential, Fixed, Jittered, Never, RetryStrategy
from aiki_push.domain.run import MAX_REFERENCE_LENGTH, REFERENCE_PATTERN, RunOptions
from aiki_push.domain.starts import ConflictPolicy
from aiki_push.domain.values import DurationMs, Json
from aiki_push.sdk.names import NAMES_ARE, is_name

PriorityLevel: TypeAlias = Literal[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
"""0 goes first, 9 last, among runs that are due in the same millisecond."""


class Reference(TypedDict):
    """Which particular run this is. Starts of one version with the same `id` are one run."""

    id: str
    conflict_policy: NotRequired[ConflictPolicy]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the runs that a version starts. None stands for what the server does without it.

    The last three make sense for one run only: set one, and what was a version is a single start.
    """

    retry: RetryStrategy | None = None
    pool: str | None = None
    priority: int | None = None
    delay_ms: DurationMs | None = None
    reference_id: str | None = None
    conflict_policy: ConflictPolicy | None = None

    def with_(self, path: str, value: object, *, of: str) -> "Options":
        """A copy with the option at `path` set. `of` is whose they are, in messages. Raises SettingsError, naming path and place."""
        if path not in _CHECKS:
            raise SettingsError(f"{of} has no option {path!r}; its options are {_PATHS}")
        return replace(self, **_CHECKS[path](value, f"{of}: {path}"))

    def inheriting(self, parent: RunOptions) -> "Options":
        """The options of a child: pool and priority are its own, or else its parent's."""
        return replace(self, pool=self.pool or parent.pool, priority=parent.priority if self.priority is None else self.priority)

    def request_fields(self, *, of: str) -> dict[str, Json]:
        """The options as fields of StartRun, without those that were not set. Raises SettingsError for a policy without a reference."""
        given: dict[str, Json] = {"pool": self.pool, "priority": self.priority, "delay_ms": self.delay_ms}
        if self.retry is not None:
            given["retry"] = self.retry.model_dump(mode="json")
        fields: dict[str, Json] = {"options": _set_ones(given)}
        if self.reference_id is not None:
            fields["reference"] = _set_ones({"id": self.reference_id, "conflict_policy": self.conflict_policy})
        elif self.conflict_policy is not None:
            raise SettingsError(
                f"{of}: reference.conflict_policy says what a second start with one reference.id gets: set reference.id too"
            )
        return fields


SINGLE_START_PATHS = frozenset({"delay", "reference", "reference.id", "reference.conflict_policy"})


def check_retry(value: object, at: str) -> RetryStrategy:
    """The strategy. Raises SettingsError for anything else; `at` names the place."""
    if not isinstance(value, Never | Fixed | Exponential | Jittered):
        raise SettingsError(f"{at} must be made by exponential(), fixed(), jittered() or never(); it is {_kind(value)}")
    return value


def check_reference(value: object, at: str) -> str:
    """The reference id. Raises SettingsError for what no run can have as one; `at` names the place."""
    if not isinstance(value, str) or not _is_reference(value):
        given = "" if isinstance(value, str) else f"; it is {_kind(value)}"
        raise SettingsError(f"{at} must be a str of 1 to {MAX_REFERENCE_LENGTH} characters without control characters{given}")
    return value


def retry_of_task(path: str, value: object, *, of: str) -> RetryStrategy:
    """The strategy that a task's `with_` was given. Raises SettingsError for any other option: tasks have only this one."""
    if path != "retry":
        raise SettingsError(f'{of} has no option {path!r}; the only option of a task is "retry"')
    return check_retry(value, f"{of}: retry")


def _pool(value: object, at: str) -> Mapping[str, Any]:
    if not is_name(value):
        raise SettingsError(f"{at} must be the name of a pool: {NAMES_ARE}")
    return {"pool": value}


def _priority(value: object, at: str) -> Mapping[str, Any]:
    if type(value) is not int or value not in get_args(PriorityLevel):
        given = value if type(value) is int else _kind(value)
        raise SettingsError(f"{at} must be an int from 0 (goes first) to 9 (goes last); it is {given}")
    return {"priority": value}


def _delay(value: object, at: str) -> Mapping[str, Any]:
    return {"delay_ms": duration_ms(cast(timedelta, value), name=at)}


def _reference(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or "id" not in value or not value.keys() <= {"id", "conflict_policy"}:
        raise SettingsError(f'{at} must be a dict with "id", and "conflict_policy" if wanted')
    policy = value.get("conflict_policy")
    chosen = {"conflict_policy": None} if policy is None else _conflict_policy(policy, f"{at}.conflict_policy")
    return {**_reference_id(value["id"], f"{at}.id"), **chosen}


def _reference_id(value: object, at: str) -> Mapping[str, Any]:
    return {"reference_id": check_reference(value, at)}


def _is_reference(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return len(text) <= MAX_REFERENCE_LENGTH and re.fullmatch(REFERENCE_PATTERN, text) is not None


def _conflict_policy(value: object, at: str) -> Mapping[str, Any]:
    if value not in get_args(ConflictPolicy):
        raise SettingsError(f'{at} must be "error" or "return_existing"; it is {_kind(value)}')
    return {"conflict_policy": value}


_CHECKS: Mapping[str, Callable[[object, str], Mapping[str, Any]]] = {
    "retry": lambda value, at: {"retry": check_retry(value, at)},
    "pool": _pool,
    "priority": _priority,
    "delay": _delay,
    "reference": _reference,
    "reference.id": _reference_id,
    "reference.conflict_policy": _conflict_policy,
}


def _set_ones(fields: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


_PATHS = ", ".join(f'"{path}"' for path in _CHECKS)


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
