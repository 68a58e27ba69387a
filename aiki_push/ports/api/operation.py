"""What an API call is: a frozen model that knows its method, path, role and answer."""

import re
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from aiki_push.domain.values import Frozen

R = TypeVar("R")

Role = Literal["none", "client", "executor", "admin"]
"""Who may call: anyone; whoever starts and watches runs; executors; administrators (who may also do what a client may)."""


class Answer(BaseModel):
    """Base of every answer. Readers ignore fields that a newer server adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Operation(Frozen, Generic[R]):
    """One API call. Fields named in `path` travel there; the others in the query (GET, DELETE) or the JSON body (POST, PUT).

    `answer` parses and encodes what comes back. `operation` is the name in the catalogue and in OpenAPI.
    """

    operation: ClassVar[str]
    method: ClassVar[Literal["GET", "POST", "PUT", "DELETE"]]
    path: ClassVar[str]
    role: ClassVar[Role]
    answer: ClassVar[TypeAdapter[Any]]  # a ClassVar cannot name R

    @classmethod
    def path_fields(cls) -> tuple[str, ...]:
        """The fields that travel in the path, in its order."""
        return tuple(re.findall(r"{(\w+)}", cls.path))


class Api(Protocol):
    """Whatever carries operations to a server: HTTP, or a server in the same process.

    Belongs to the event loop it is used on; `close` releases its connections.
    """

    async def call(self, operation: Operation[R]) -> R:
        """Perform `operation`. Raises the ApiError that the server raised, or ServerUnreachable after the time budget."""
        ...

    async def close(self) -> None:
        """Release connections; later calls fail."""
        ...


class Service(Protocol):
    """The server's side of the API. Synchronous; safe to call from any thread."""

    def call(self, namespace: str, operation: Operation[R]) -> R:
        """Perform `operation` for a caller who may do it, within `namespace`. Raises the ApiErrors that the operation names."""
        ...
