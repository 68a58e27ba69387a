"""Requests made from the OpenAPI document, good ones and bad ones, to a whole server behind its ASGI door."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from aiki_push.adapters.system import SystemEntropy
from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.transport.openapi import openapi_document
from aiki_push.adapters.transport.routes import takes_body
from aiki_push.adapters.transport.versions import API_VERSION, VERSION_HEADER, version_text
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.canonical_json import MAX_INTEGER
from aiki_push.domain.values import Json
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.operation import Operation
from tests.integration.populated_system import Scene, populated_system
from tests.local_system import NAMESPACE

R = TypeVar("R")
AnyOperation = type[Operation[Any]]

BOUNDED = settings(max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
"""So many requests of each kind to each operation, always the same ones: a guard, not a hunt."""

OWN_VERSION = {VERSION_HEADER: version_text(API_VERSION)}

BEYOND_THE_SCHEMA: Mapping[str, frozenset[str]] = {
    "start_run": frozenset({"input"}),
    "list_runs": frozenset({"reference", "cursor"}),
    "get_history": frozenset({"cursor"}),
    "claim_runs": frozenset({"workflows", "pools"}),
    "append_checkpoint": frozenset({"records", "end"}),
    "put_endpoint": frozenset({"url", "secret"}),
}
"""Fields that can be wrong in ways that no schema says, by operation."""

SCHEMA = schemathesis.openapi.from_dict(openapi_document())


class FreshServer:
    """A Service that can be made anew, so that no request depends on those before it."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.system, self.scenes = populated_system()

    def call(self, namespace: str, operation: Operation[R]) -> R:
        return self.system.server.call(namespace, operation)


SERVER = FreshServer()
APP = asgi_api(Wire(SERVER, namespace=NAMESPACE, entropy=SystemEntropy()))

every_operation = pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.operation)


def requests_to(
    operation: AnyOperation, mode: schemathesis.GenerationMode, headers: Mapping[str, str] | None
) -> st.SearchStrategy[schemathesis.Case]:
    return SCHEMA[operation.path][operation.method].as_strategy(mode, headers=headers and dict(headers))


def scenes_for(operation: AnyOperation) -> Sequence[Scene]:
    """Those with a value for every required field that any of them knows."""
    known = {name for scene in SERVER.scenes for name in scene}
    needed = {name for name, field in operation.model_fields.items() if field.is_required()} & known
    return [scene for scene in SERVER.scenes if needed <= scene.keys() and scene.keys() & operation.model_fields.keys()]


def put_into(case: schemathesis.Case, operation: AnyOperation, scene: Scene) -> None:
    """Let the request be about something that there is."""
    rest = case.body if takes_body(operation) else case.query
    for name in scene.keys() & operation.model_fields.keys():
        (case.path_parameters if name in operation.path_fields() else rest)[name] = scene[name]


def with_whole_numbers(value: Json) -> Json:
    """Without 1.0 and 10**30, which a schema takes for integers and the server does not."""
    match value:
        case dict():
            return {name: with_whole_numbers(member) for name, member in value.items()}
        case list():
            return [with_whole_numbers(member) for member in value]
        case float() if value.is_integer():
            return int(value) % MAX_INTEGER
        case int() if abs(value) > MAX_INTEGER:
            return value % MAX_INTEGER
    return value


@every_operation
def test_a_good_request_is_answered_as_documented(operation: AnyOperation) -> None:
    statuses: set[int] = set()

    @BOUNDED
    @given(requests_to(operation, schemathesis.GenerationMode.POSITIVE, OWN_VERSION), st.data())
    def ask(case: schemathesis.Case, data: st.DataObject) -> None:
        SERVER.renew()
        if isinstance(case.body, dict):
            case.body = with_whole_numbers(case.body)
        if scenes := scenes_for(operation):
            put_into(case, operation, data.draw(st.just({}) | st.sampled_from(scenes)))
        response = case.call_and_validate(app=APP, excluded_checks=[positive_data_acceptance])
        statuses.add(response.status_code)
        if response.status_code == 400:
            refused = {fault["field"].partition(".")[0].partition("[")[0] for fault in response.json()["errors"]}
            assert refused <= BEYOND_THE_SCHEMA.get(operation.operation, set()), response.json()

    ask()
    assert 200 in statuses


@every_operation
def test_a_bad_request_is_refused_as_documented(operation: AnyOperation) -> None:
    statuses: set[int] = set()
    # Where nothing else is sent, only the version can be wrong; elsewhere it must not hide other faults.
    headers = OWN_VERSION if operation.model_fields else None

    @BOUNDED
    @given(requests_to(operation, schemathesis.GenerationMode.NEGATIVE, headers))
    def ask(case: schemathesis.Case) -> None:
        SERVER.renew()
        statuses.add(case.call_and_validate(app=APP).status_code)

    ask()
    assert statuses == {400}
