"""From method and path to an operation of the catalogue."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from aiki_push.adapters.transport.field_faults import Fault, invalid_request
from aiki_push.domain.errors import MethodNotAllowed, NotFound
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.operation import Operation

AnyOperation = Operation[Any]


def takes_body(operation: type[AnyOperation]) -> bool:
    """Whether the fields that are not in the path travel as a JSON body; otherwise they are query parameters."""
    return operation.method in ("POST", "PUT")


@dataclass(frozen=True, slots=True)
class Route:
    """An operation, and the fields of it that stood in the path, decoded."""

    operation: type[AnyOperation]
    path_values: Mapping[str, str]


class Routes:
    """The paths of a catalogue, compiled."""

    def __init__(self, catalogue: Iterable[type[AnyOperation]] = CATALOGUE) -> None:
        self._entries = [(_pattern(operation.path), operation) for operation in catalogue]

    def find(self, method: str, path: str) -> Route:
        """The route of a request; `path` is percent-encoded.

        Raises:
            NotFound, MethodNotAllowed: no operation is there, or only with other methods.
            InvalidRequest: a part of the path is not UTF-8.
        """
        matches = [(operation, match) for pattern, operation in self._entries if (match := pattern.fullmatch(path))]
        for operation, match in matches:
            if operation.method == method:
                return Route(operation, _decoded(match.groupdict()))
        if not matches:
            raise NotFound("no operation has this path")
        allowed = sorted({operation.method for operation, _ in matches})
        raise MethodNotAllowed(f"this path takes {', '.join(allowed)}", allowed=[*allowed])


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


def _decoded(values: Mapping[str, str]) -> dict[str, str]:
    try:
        return {name: unquote_to_bytes(value).decode() for name, value in values.items()}
    except UnicodeError:
        raise invalid_request([Fault("path", "is not percent-encoded UTF-8")]) from None
