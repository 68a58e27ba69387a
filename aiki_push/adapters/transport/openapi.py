"""The API as an OpenAPI document, made from the catalogue: nothing is written down twice."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence

from aiki_push.adapters.transport.json_schemas import COMPONENT, JsonObject, Schemas, schemas_of
from aiki_push.adapters.transport.problem_schemas import PROBLEM, errors_of, response_name, response_of, schema_of
from aiki_push.adapters.transport.routes import AnyOperation, takes_body
from aiki_push.adapters.transport.versions import API_VERSION, VERSION_HEADER, VERSION_PATTERN, version_text
from aiki_push.adapters.transport.wire import MAX_BODY_BYTES
from aiki_push.domain.errors import API_ERRORS
from aiki_push.ports.api.catalogue import CATALOGUE

_INFO = {
    "title": "aiki-push",
    "version": version_text(API_VERSION),
    "description": f"""\
Durable workflows on AWS serverless. Times are milliseconds since 1970 in UTC, durations milliseconds.
Whole numbers are written without a fraction (`1.0` is refused) and lie within ±2^53.
Every request is safe to repeat. A body may have {MAX_BODY_BYTES} bytes; no `content-type` is needed.

`x-aiki-role` names the role that may call an operation; the server checks none yet.

Every error is a problem document. A path that does not exist is answered `not_found`, a method that a path does not take
`method_not_allowed`.""",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}

_VERSION_PARAMETER = {
    "name": VERSION_HEADER,
    "in": "header",
    "description": "The client's version. The server takes its own, the previous minor, and newer minors, whose unknown fields it "
    "ignores. Without it the client is taken to be of the server's version.",
    "schema": {"type": "string", "pattern": f"^{VERSION_PATTERN}$", "examples": [version_text(API_VERSION)]},
}


def openapi_text() -> str:
    """The document of the whole catalogue as it is kept in a file: indented JSON, ending with a line break."""
    return json.dumps(openapi_document(), indent=2, ensure_ascii=False) + "\n"


def openapi_document(catalogue: Sequence[type[AnyOperation]] = CATALOGUE) -> JsonObject:
    """OpenAPI 3.1 in the order of `catalogue`; equal for equal catalogues."""
    schemas = schemas_of(catalogue)
    groups = dict.fromkeys(group for operation in catalogue for group in errors_of(operation).values())
    paths: dict[str, JsonObject] = {}
    for operation in catalogue:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    problems = {error.__name__: schema_of(error) for error in dict.fromkeys(error for group in groups for error in group)}
    document: JsonObject = {
        "openapi": "3.1.0",
        "info": _INFO,
        "tags": list({tag["name"]: tag for tag in map(_tag, catalogue)}.values()),
        "paths": paths,
        "components": {
            "parameters": {VERSION_HEADER: _VERSION_PARAMETER},
            "responses": {response_name(group): response_of(group) for group in groups},
            "schemas": {**schemas.components, "Problem": PROBLEM, **problems},
        },
    }
    return {name: _worded(part) for name, part in document.items()}


def _described(operation: type[AnyOperation], schemas: Schemas) -> JsonObject:
    answer = schemas.answers[operation.operation]
    problems = {status: f"#/components/responses/{response_name(group)}" for status, group in errors_of(operation).items()}
    return {
        "operationId": operation.operation,
        "tags": [_tag(operation)["name"]],
        **_summary_and_description(operation),
        "x-aiki-role": operation.role,
        **_inputs(operation, schemas.requests[operation.operation]),
        "responses": {
            "200": {"description": _summary_of(answer, schemas.components), "content": _json(answer)},
            **{status: {"$ref": reference} for status, reference in problems.items()},
        },
    }


def _tag(operation: type[AnyOperation]) -> JsonObject:
    module = inspect.getmodule(operation)
    return {"name": operation.__module__.rpartition(".")[2], "description": (module and module.__doc__) or ""}


def _summary_and_description(operation: type[AnyOperation]) -> JsonObject:
    summary, *more = re.split(r"\.(?:\s+|$)", inspect.cleandoc(operation.__doc__ or ""), maxsplit=1)
    return {"summary": summary, "description": more[0]} if any(more) else {"summary": summary}


def _inputs(operation: type[AnyOperation], request: JsonObject) -> JsonObject:
    """The operation's fields, as parameters of the path and the query, and as a body."""
    in_path = operation.path_fields()
    fields: Mapping[str, JsonObject] = request.get("properties", {})
    required = [name for name in request.get("required", ()) if name not in in_path]
    rest = {name: schema for name, schema in fields.items() if name not in in_path}
    parameters: list[JsonObject] = [{"name": name, "in": "path", "required": True, "schema": fields[name]} for name in in_path]
    version = {"$ref": f"#/components/parameters/{VERSION_HEADER}"}
    if not takes_body(operation):
        in_query = [
            {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}
            for name, schema in rest.items()
        ]
        return {"parameters": [*parameters, *in_query, version]}
    body = {"type": "object", "properties": rest, "required": required, "additionalProperties": False}
    return {"parameters": [*parameters, version], "requestBody": {"required": bool(required), "content": _json(body)}}


def _without_null(schema: JsonObject) -> JsonObject:
    """A query has no null: who does not want to say anything leaves the parameter out."""
    members = [member for member in schema.get("anyOf", ()) if member != {"type": "null"}]
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **members[0]} if len(members) == 1 else schema


def _summary_of(answer: JsonObject, components: Mapping[str, JsonObject]) -> str:
    """The first sentence about each model that the answer may be."""
    names = [member["$ref"].removeprefix(COMPONENT) for member in answer.get("oneOf", [answer])]
    return " Or: ".join(components[name]["description"].partition(".")[0] + "." for name in names)


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


_NAMES = {error.__name__: f"`{code}`" for code, error in API_ERRORS.items()} | {
    operation.__name__: f"`{operation.operation}`" for operation in CATALOGUE
}


def _worded(part: object) -> object:
    """`part` with its descriptions in the words of the API instead of Python's, one paragraph a line."""
    match part:
        case dict():
            return {
                name: _api_words(value) if name in ("description", "summary") and isinstance(value, str) else _worded(value)
                for name, value in part.items()
            }
        case list():
            return [_worded(value) for value in part]
    return part


def _api_words(text: str) -> str:
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))
    text = re.sub(r"\b(is|are) (None|True|False)\b", lambda found: f"{found[1]} {_PYTHON_WORDS[found[2]]}", text)
    text = re.sub(r"fields\[\"(\w+)\"\]", r"\1", text).replace("`fields` ", "the document ")
    text = re.sub(r"\s*\bRaises ", "\n\nErrors: ", text).lstrip()
    return re.sub(r"(?<!`)\b[A-Z]\w+\b(?!`)", lambda found: _NAMES.get(found[0], found[0]), text)


_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}
