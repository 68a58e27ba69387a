"""The shapes of requests and answers as JSON Schema, as strict and as open as the server is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from aiki_push.adapters.transport.routes import AnyOperation

JsonObject: TypeAlias = dict[str, Any]  # a schema nests without end

COMPONENT = "#/components/schemas/"
"""What comes before a component's name where it is referred to."""

_REQUEST: JsonSchemaMode = "validation"
_ANSWER: JsonSchemaMode = "serialization"


@dataclass(frozen=True, slots=True)
class Schemas:
    """`requests` (every field, those of the path too) and `answers`, by the operation's name; `components` that they refer to.

    A model with one shape in requests and another in answers is two components, `…-Input` and `…-Output`.
    """

    requests: Mapping[str, JsonObject]
    answers: Mapping[str, JsonObject]
    components: Mapping[str, JsonObject]


def schemas_of(operations: Sequence[type[AnyOperation]]) -> Schemas:
    """The schemas of all that travels for `operations`."""
    shapes: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = []
    for each in operations:
        shapes.append((each.operation, _REQUEST, TypeAdapter(each)))
        shapes.append((each.operation, _ANSWER, each.answer))
    schemas, document = TypeAdapter.json_schemas(shapes, ref_template=COMPONENT + "{model}", schema_generator=_ApiSchemas)
    components: dict[str, JsonObject] = document["$defs"]
    names = [operation.operation for operation in operations]
    requests = {name: components.pop(schemas[name, _REQUEST]["$ref"].removeprefix(COMPONENT)) for name in names}
    return Schemas(requests, {name: schemas[name, _ANSWER] for name in names}, components)


class _ApiSchemas(GenerateJsonSchema):
    """In requests no unknown field is let pass. In answers every field is there, and more may come.

    A default of None is left out: it stands for a field that is not sent, and null may mean something else.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model = super().model_schema(schema)
        model.pop("title", None)
        if self.mode == _REQUEST:
            model["additionalProperties"] = False
        else:
            model.pop("additionalProperties", None)
        return model

    def field_is_required(
        self, field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField, total: bool
    ) -> bool:
        return self.mode == _ANSWER or _is_tag(field["schema"]) or super().field_is_required(field, total)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if self.mode == _ANSWER or described.get("default") is None:
            described.pop("default", None)
        return described

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _is_tag(schema: Mapping[str, Any]) -> bool:
    """Whether the field tells the members of a union apart: it must be sent, although it can have one value only."""
    if schema["type"] == "default":
        return _is_tag(schema["schema"])
    return bool(schema["type"] == "literal" and len(schema["expected"]) == 1)
