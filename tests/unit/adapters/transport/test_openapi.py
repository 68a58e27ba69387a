"""What the OpenAPI document says of an operation, and that it says it of every one."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import Field, TypeAdapter

from aiki_push.adapters.transport.openapi import openapi_document
from aiki_push.adapters.transport.routes import takes_body
from aiki_push.domain.errors import API_ERRORS
from aiki_push.domain.values import Frozen
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.operation import Answer, Operation

DOCUMENT = openapi_document()

EVERYWHERE = {
    "400": {"$ref": "#/components/responses/InvalidRequestOrUnsupportedVersion"},
    "413": {"$ref": "#/components/responses/PayloadTooLarge"},
    "429": {"$ref": "#/components/responses/RateLimited"},
    "500": {"$ref": "#/components/responses/InternalError"},
    "503": {"$ref": "#/components/responses/StorageUnavailable"},
}
VERSION = {"$ref": "#/components/parameters/Aiki-Version"}
TEXT = {"type": "string"}


class Paint(Frozen):
    """A colour, and how much of it."""

    type: Literal["paint"] = "paint"
    colour: str
    litres: int = 1


class Varnish(Frozen):
    """Nothing but shine."""

    type: Literal["varnish"] = "varnish"


class House(Answer):
    """A house. It may have no coat."""

    coat: Paint | None = None


class PaintHouse(Operation[House]):
    """Give a house its coat. Where `coat` is None the old one stays.

    Raises NotFound, LogFull (the paint is out).
    """

    operation, method, path, role = "paint_house", "POST", "/v1/houses/{house}/coat", "executor"
    answer = TypeAdapter[House](House)

    house: Annotated[str, Field(max_length=8)]
    coat: Annotated[Paint | Varnish, Field(discriminator="type")] | None = None
    note: str


class FindHouses(Operation[House]):
    """Find a house."""

    operation, method, path, role = "find_houses", "GET", "/v1/houses", "none"
    answer = TypeAdapter[House](House)

    colour: Annotated[str, Field(min_length=1)] | None = None
    limit: int = 5


HOUSES = openapi_document((PaintHouse, FindHouses))


def all_texts(part: object) -> Iterator[str]:
    """Every description and summary."""
    for name, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if name in ("description", "summary") and isinstance(value, str):
            yield value
        else:
            yield from all_texts(value)


def said_of(operation: type[Operation[Any]]) -> Mapping[str, Any]:
    said: Mapping[str, Any] = DOCUMENT["paths"][operation.path][operation.method.lower()]
    return said


def test_an_operation_with_a_body_is_described() -> None:
    coats = {
        "oneOf": [{"$ref": "#/components/schemas/Paint-Input"}, {"$ref": "#/components/schemas/Varnish"}],
        "discriminator": {
            "propertyName": "type",
            "mapping": {"paint": "#/components/schemas/Paint-Input", "varnish": "#/components/schemas/Varnish"},
        },
    }
    assert HOUSES["paths"]["/v1/houses/{house}/coat"] == {
        "post": {
            "operationId": "paint_house",
            "tags": ["test_openapi"],
            "summary": "Give a house its coat",
            "description": "Where `coat` is null the old one stays.\n\nErrors: `not_found`, `log_full` (the paint is out).",
            "x-aiki-role": "executor",
            "parameters": [
                {"name": "house", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 8}},
                VERSION,
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {"coat": {"anyOf": [coats, {"type": "null"}]}, "note": TEXT},
                            "required": ["note"],
                            "additionalProperties": False,
                        }
                    }
                },
            },
            "responses": {
                "200": {
                    "description": "A house.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/House"}}},
                },
                "404": {"$ref": "#/components/responses/NotFound"},
                "409": {"$ref": "#/components/responses/LogFull"},
                **EVERYWHERE,
            },
        }
    }


def test_an_operation_without_a_body_is_described() -> None:
    assert HOUSES["paths"]["/v1/houses"] == {
        "get": {
            "operationId": "find_houses",
            "tags": ["test_openapi"],
            "summary": "Find a house",
            "x-aiki-role": "none",
            "parameters": [
                {"name": "colour", "in": "query", "required": False, "schema": {"type": "string", "minLength": 1}},
                {"name": "limit", "in": "query", "required": False, "schema": {"type": "integer", "default": 5}},
                VERSION,
            ],
            "responses": {
                "200": {
                    "description": "A house.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/House"}}},
                },
                **EVERYWHERE,
            },
        }
    }


def test_requests_are_closed_and_answers_are_whole_and_open() -> None:
    schemas = HOUSES["components"]["schemas"]
    shapes = {name: schemas[name] for name in ("Paint-Input", "Paint-Output", "Varnish", "House")}
    assert shapes == {
        "Paint-Input": {
            "description": "A colour, and how much of it.",
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": "paint", "default": "paint"},
                "colour": TEXT,
                "litres": {"type": "integer", "default": 1},
            },
            "required": ["type", "colour"],
            "additionalProperties": False,
        },
        "Paint-Output": {
            "description": "A colour, and how much of it.",
            "type": "object",
            "properties": {"type": {"type": "string", "const": "paint"}, "colour": TEXT, "litres": {"type": "integer"}},
            "required": ["type", "colour", "litres"],
        },
        "Varnish": {
            "description": "Nothing but shine.",
            "type": "object",
            "properties": {"type": {"type": "string", "const": "varnish", "default": "varnish"}},
            "required": ["type"],
            "additionalProperties": False,
        },
        "House": {
            "description": "A house. It may have no coat.",
            "type": "object",
            "properties": {"coat": {"anyOf": [{"$ref": "#/components/schemas/Paint-Output"}, {"type": "null"}]}},
            "required": ["coat"],
        },
    }


def test_an_error_is_described_with_its_code_and_fields() -> None:
    components = HOUSES["components"]
    assert components["schemas"]["RateLimited"] == {
        "description": "Too many requests are in progress in one process. Retry after a moment.",
        "allOf": [{"$ref": "#/components/schemas/Problem"}],
        "properties": {
            "type": {"const": "urn:aiki-push:rate_limited"},
            "title": {"const": "Too many requests"},
            "status": {"const": 429},
            "code": {"const": "rate_limited"},
        },
    }
    assert components["responses"]["RateLimited"] == {
        "description": "Too many requests",
        "headers": {
            "Retry-After": {"description": "Seconds after which to ask again.", "required": True, "schema": {"type": "integer"}}
        },
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/RateLimited"}}},
    }
    assert components["schemas"]["InvalidRequest"]["required"] == ["errors"]


def test_only_errors_that_can_occur_are_described() -> None:
    everywhere = {"InvalidRequest", "UnsupportedVersion", "PayloadTooLarge", "RateLimited", "InternalError", "StorageUnavailable"}
    errors = {error.__name__ for error in API_ERRORS.values()}
    assert errors & HOUSES["components"]["schemas"].keys() == everywhere | {"NotFound", "LogFull"}


def test_the_document_is_valid() -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.operation)
class TestEveryOperation:
    def test_has_its_name_and_role(self, operation: type[Operation[Any]]) -> None:
        said = said_of(operation)
        assert (said["operationId"], said["x-aiki-role"]) == (operation.operation, operation.role)

    def test_has_each_field_in_its_place(self, operation: type[Operation[Any]]) -> None:
        said = said_of(operation)
        places = {name: "path" if name in operation.path_fields() else "rest" for name in operation.model_fields}
        found = {one["name"]: one["in"].replace("query", "rest") for one in said["parameters"] if "name" in one}
        if takes_body(operation):
            body = said["requestBody"]["content"]["application/json"]["schema"]["properties"]
            assert "rest" not in found.values()
            found |= dict.fromkeys(body, "rest")
        assert found == places

    def test_has_a_response_for_each_error_that_its_docstring_names(self, operation: type[Operation[Any]]) -> None:
        named = [error for error in API_ERRORS.values() if re.search(rf"\b{error.__name__}\b", operation.__doc__ or "")]
        responses = {status: one.get("$ref", "") for status, one in said_of(operation)["responses"].items()}
        assert [error for error in named if error.__name__ not in responses.get(str(error.http_status), "")] == []


def test_it_speaks_of_the_api_and_not_of_python() -> None:
    names = [*(error.__name__ for error in API_ERRORS.values()), *(operation.__name__ for operation in CATALOGUE), "Raises"]
    python = re.compile(rf"\b({'|'.join(names)})\b|is (None|True|False)\b")
    assert [text for text in all_texts(DOCUMENT) if python.search(text)] == []
