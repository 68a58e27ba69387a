"""What is wrong with a request, field by field, without a word of what it says."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import Json

MAX_FAULTS = 100
"""So many are listed; a checkpoint can have thousands."""

_MAX_FIELD_LENGTH = 200
_FIELDS_IN_DETAIL = 5

_OWN_WORDS = {"missing": "is required", "extra_forbidden": "is unknown"}

QUOTE_NO_INPUT = frozenset(
    {
        "bool_parsing",
        "bool_type",
        "dict_type",
        "finite_number",
        "float_parsing",
        "float_type",
        "greater_than",
        "greater_than_equal",
        "int_from_float",
        "int_parsing",
        "int_parsing_size",
        "int_type",
        "less_than",
        "less_than_equal",
        "list_type",
        "literal_error",
        "model_type",
        "none_required",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "string_type",
        "too_long",
        "too_short",
        "tuple_type",
        "union_tag_not_found",
    }
)
"""Pydantic's errors whose message is the same whatever was sent, lengths apart. Any other message could show the input."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`field` is a path like `records[3].at`, or `body`, `query`, `path`; `message` never quotes a value."""

    field: str
    message: str


def invalid_request(faults: Sequence[Fault]) -> InvalidRequest:
    """The error that names each field at fault."""
    fields = list(dict.fromkeys(_shortened(fault.field) for fault in faults))
    named = ", ".join(fields[:_FIELDS_IN_DETAIL]) + (", …" if len(fields) > _FIELDS_IN_DETAIL else "")
    errors: list[Json] = [{"field": _shortened(fault.field), "message": fault.message} for fault in faults[:MAX_FAULTS]]
    return InvalidRequest(f"{len(fields)} field{'s are' if len(fields) > 1 else ' is'} wrong: {named}", errors=errors)


def faults_of(error: ValidationError, sent: object) -> list[Fault]:
    """One fault for each of pydantic's errors about `sent`."""
    details = error.errors(include_url=False, include_input=False)
    return [Fault(_field(detail["loc"], sent), _message(detail)) for detail in details]


def _message(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "union_tag_invalid":
        context = detail.get("ctx", {})
        return f"{context['discriminator']} should be one of {context['expected_tags']}"
    return _OWN_WORDS.get(kind) or (detail["msg"] if kind in QUOTE_NO_INPUT else "is not valid")


def _field(location: tuple[int | str, ...], sent: object) -> str:
    """The place as the sender knows it: pydantic puts the tags of unions between the names of fields."""
    name = ""
    for index, step in enumerate(location):
        match sent, step:
            case list(), int(place):
                sent = sent[place]
                name += f"[{place}]"
            case dict(), str(key) if key in sent and not (index < len(location) - 1 and _is_tag(key, sent)):
                sent = sent[key]
                name += f".{key}"
            case _ if index == len(location) - 1:
                name += f".{step}"  # a field that is missing
    return name.removeprefix(".")


def _is_tag(step: str, sent: dict[str, object]) -> bool:
    """Whether another member says `step`: then it is this that pydantic means, and not the member of that name."""
    return any(value == step for name, value in sent.items() if name != step)


def _shortened(field: str) -> str:
    return field if len(field) <= _MAX_FIELD_LENGTH else f"{field[:_MAX_FIELD_LENGTH]}…"
