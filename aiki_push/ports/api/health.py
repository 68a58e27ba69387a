"""Whether the server answers, and the one setting that executors must fit."""

from pydantic import TypeAdapter

from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.operation import Answer, Operation


class Health(Answer):
    """The server is up. A claim not refreshed for `claim_idle_timeout_ms` is taken away."""

    status: str = "ok"
    version: str
    claim_idle_timeout_ms: DurationMs


class GetHealth(Operation[Health]):
    """Ask whether the server is up; reads nothing from the table."""

    operation, method, path, role = "get_health", "GET", "/health", "none"
    answer = TypeAdapter[Health](Health)
