from typing import Any

import pytest

from aiki_push.adapters.transport.routes import Routes
from aiki_push.domain.errors import ApiError, InvalidRequest, MethodNotAllowed, NotFound
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.operation import Operation
from tests.unit.adapters.transport.samples import SAMPLES


@pytest.mark.parametrize("operation", CATALOGUE)
def test_every_operation_of_the_catalogue_is_found_by_its_path(operation: type[Operation[Any]]) -> None:
    values = {name: f"value of {name}" for name in operation.path_fields()}
    path = operation.path.format(**values).replace(" ", "%20")
    route = Routes().find(operation.method, path)
    assert (route.operation, route.path_values) == (operation, values)


def test_every_operation_of_the_catalogue_has_a_sample() -> None:
    assert {type(operation) for operation, _ in SAMPLES.values()} == set(CATALOGUE)


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("GET", "/", NotFound("no operation has this path")),
        ("GET", "", NotFound("no operation has this path")),
        ("GET", "/v1/runs/a/b/c", NotFound("no operation has this path")),
        ("GET", "/v1/runs/", NotFound("no operation has this path")),
        ("GET", "/v1/runs//wait", NotFound("no operation has this path")),
        ("GET", "/v1/runs/a%2Fwait/", NotFound("no operation has this path")),
        ("GET", "/health\n", NotFound("no operation has this path")),
        ("get", "/health", MethodNotAllowed("this path takes GET", allowed=["GET"])),
        ("POST", "/v1/endpoints/a", MethodNotAllowed("this path takes DELETE, GET, PUT", allowed=["DELETE", "GET", "PUT"])),
        (
            "GET",
            "/v1/runs/%FF",
            InvalidRequest("1 field is wrong: path", errors=[{"field": "path", "message": "is not percent-encoded UTF-8"}]),
        ),
        (
            "GET",
            "/v1/runs/\ud800",
            InvalidRequest("1 field is wrong: path", errors=[{"field": "path", "message": "is not percent-encoded UTF-8"}]),
        ),
    ],
)
def test_a_path_or_method_without_an_operation_is_refused(method: str, path: str, error: ApiError) -> None:
    with pytest.raises(type(error)) as caught:
        Routes().find(method, path)
    assert (caught.value.detail, caught.value.fields) == (error.detail, error.fields)


def test_a_slash_that_is_percent_encoded_stays_within_its_part() -> None:
    assert Routes().find("GET", "/v1/runs/a%2Fwait").path_values == {"run_id": "a/wait"}
