"""Requests made from the OpenAPI document, good ones and bad ones, to a whole server behind its ASGI door."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
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
AnyOperation: TypeAlias = type[Operation[Any]]
Case: TypeAlias = schemathesis.Case[Any]

OWN_VERSION = {VERSION_HEADER: version_text(API_VERSION)}

BEYOND_THE_SCHEMA: Mapping[str, frozenset[str]] = {
    "start_run": frozenset({"input"}),
    "list_runs": frozenset({"reference", "cursor"}),
    "get_history": frozenset({"cursor"}),
    "claim_runs": frozenset({"workflows", "pools"}),
    "send_event": frozenset({"data"}),
    "multicast_event": frozenset({"data"}),
    "append_checkpoint": frozenset({"records", "calls", "end"}),
    "put_endpoint": frozenset({"url", "secret"}),
}
"""Fields that can be wrong in ways that no schema says, by operation."""


def without_shared_tags(part: Any) -> Any:
    """Without the discriminators in which several tags stand for one schema: schemathesis takes the last of these for the only one."""
    match part:
        case dict():
            mapping = part["discriminator"].get("mapping", {}) if isinstance(part.get("discriminator"), dict) else {}
            dropped = {"discriminator"} if len(set(mapping.values())) < len(mapping) else set()
            return {name: without_shared_tags(value) for name, value in part.items() if name not in dropped}
        case list():
            return [without_shared_tags(value) for value in part]
    return part


SCHEMA = schemathesis.openapi.from_dict(without_shared_tags(openapi_document()))


class PopulatedServer:
    """A Service that has something of everything. It can be made anew, so that no request depends on those before it."""

    def __init__(self) -> None:
        self.renew()
        self.app = asgi_api(Wire(self, namespace=NAMESPACE, entropy=SystemEntropy()))

    def renew(self) -> None:
        self.system, self.scenes = populated_system()

    def scenes_for(self, operation: AnyOperation) -> Sequence[Scene]:
        """Those that the operation has fields for, with values for all that it requires and any of them knows; and none."""
        fields = operation.model_fields
        known = {name for scene in self.scenes for name in scene}
        needed = {name for name, field in fields.items() if field.is_required()} & known
        return [*(scene for scene in self.scenes if needed <= scene.keys() <= fields.keys()), {}]

    def call(self, namespace: str, operation: Operation[R]) -> R:
        return self.system.server.call(namespace, operation)


every_operation = pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.operation)


def bounded(requests: int) -> settings:
    """The same `requests` each time, and no search for a simpler one where one fails: a guard, not a hunt."""
    return settings(
        max_examples=requests, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )


def requests_to(
    operation: AnyOperation, mode: schemathesis.GenerationMode, headers: dict[str, str] | None
) -> st.SearchStrategy[Case]:
    return SCHEMA[operation.path][operation.method].as_strategy(mode, headers=headers)


def put_into(case: Case, operation: AnyOperation, scene: Scene) -> None:
    """Let the request be about something that there is."""
    for name, value in scene.items():
        part = case.path_parameters if name in operation.path_fields() else case.body if takes_body(operation) else case.query
        assert isinstance(part, dict)
        part[name] = value


def with_whole_numbers(value: Json) -> Json:
    """Without 1.0 and 10**30, which a schema takes for integers and the server does not."""
    match value:
        case dict():
            return {name: with_whole_numbers(member) for name, member in value.items()}
        case list():
            return [with_whole_numbers(member) for member in value]
        case float() if value.is_integer():
            return with_whole_numbers(int(value))
        case int() if abs(value) > MAX_INTEGER:
            return MAX_INTEGER if value > 0 else -MAX_INTEGER
    return value


@every_operation
def test_a_good_request_is_answered_as_documented(operation: AnyOperation) -> None:
    server, statuses = PopulatedServer(), set[int]()

    @bounded(15)
    @given(case=requests_to(operation, schemathesis.GenerationMode.POSITIVE, OWN_VERSION))
    def ask(number: int, case: Case) -> None:
        server.renew()
        if isinstance(case.body, dict):
            case.body = with_whole_numbers(case.body)
        put_into(case, operation, server.scenes_for(operation)[number])
        response = case.call_and_validate(app=server.app, excluded_checks=[positive_data_acceptance])
        statuses.add(response.status_code)
        if response.status_code == 400:
            refused = {fault["field"].partition(".")[0].partition("[")[0] for fault in response.json()["errors"]}
            assert refused <= BEYOND_THE_SCHEMA.get(operation.operation, set()), response.json()

    for number in range(len(server.scenes_for(operation))):
        ask(number)
    assert 200 in statuses


@every_operation
def test_a_bad_request_is_refused_as_documented(operation: AnyOperation) -> None:
    server, statuses = PopulatedServer(), set[int]()
    # Where nothing else is sent, only the version can be wrong; elsewhere it must not hide other faults.
    headers = OWN_VERSION if operation.model_fields else None

    @bounded(50)
    @given(requests_to(operation, schemathesis.GenerationMode.NEGATIVE, headers))
    def ask(case: Case) -> None:
        statuses.add(case.call_and_validate(app=server.app).status_code)

    ask()
    assert 400 in statuses
