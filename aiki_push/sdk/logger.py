"""Logging from workflows and tasks: lines that say which run they belong to, and that a replay does not repeat."""

import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

WORKFLOW_LOGGER = logging.getLogger("aiki_push.workflow")
TASK_LOGGER = logging.getLogger("aiki_push.task")


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """The standard library's logger, with `facts` as attributes of every record (`extra`), beside those of the call.

    While `is_silent()`, nothing is logged.
    """

    def __init__(
        self, logger: logging.Logger, facts: Mapping[str, object], is_silent: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(logger, facts)
        self._facts = facts
        self._is_silent = is_silent

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the standard library's name
        """Whether a line of this level would be logged now."""
        return not self._is_silent() and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """The line with the facts, which win over what the call gives under their names."""
        return msg, {**kwargs, "extra": {**(kwargs.get("extra") or {}), **self._facts}}
