import pytest

from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName, serving
from tests.unit.domain.run_examples import NAMESPACE, later


def endpoint(endpoint_id: str = "orders", pools: tuple[str, ...] = (), secret: str | None = None) -> Endpoint:
    return Endpoint(
        namespace=NAMESPACE,
        id=endpoint_id,
        url="https://orders.example.com/aiki",
        workflows=(WorkflowVersionName(name="order", version="v1"), WorkflowVersionName(name="refund", version="v2")),
        pools=pools,
        secret=secret,
        created_at=later(0),
        updated_at=later(0),
    )


@pytest.mark.parametrize(
    ("workflow", "version", "is_served"),
    [
        ("order", "v1", True),
        ("refund", "v2", True),
        ("order", "v2", False),
        ("refund", "v1", False),
        ("Order", "v1", False),
        ("invoice", "v1", False),
    ],
)
def test_an_endpoint_serves_exactly_the_versions_it_lists(workflow: str, version: str, is_served: bool) -> None:
    assert endpoint().serves(workflow, version, None) is is_served
    assert endpoint(pools=("large",)).serves(workflow, version, "large") is is_served


@pytest.mark.parametrize(
    ("pools", "pool", "is_served"),
    [
        ((), None, True),
        ((), "large", False),
        (("large",), None, False),
        (("large",), "large", True),
        (("large",), "small", False),
        (("small", "large"), "large", True),
    ],
)
def test_an_endpoint_serves_the_pools_it_lists_or_without_any_the_runs_without_one(
    pools: tuple[str, ...], pool: str | None, is_served: bool
) -> None:
    assert endpoint(pools=pools).serves("order", "v1", pool) is is_served


def test_the_serving_endpoints_keep_the_order_they_were_given_in() -> None:
    b, large, a = endpoint("b"), endpoint("large", pools=("large",)), endpoint("a")

    assert serving([b, large, a], "order", "v1", None) == (b, a)
    assert serving([a, large, b], "order", "v1", None) == (a, b)
    assert serving([b, large, a], "order", "v1", "large") == (large,)
    assert serving([b, large, a], "order", "v3", None) == ()
    assert serving([], "order", "v1", None) == ()


def test_the_secret_of_an_endpoint_is_not_shown() -> None:
    shown = endpoint(secret="whsec_c2VjcmV0")
    assert "c2VjcmV0" not in repr(shown)
    assert "c2VjcmV0" not in str(shown)
    assert shown.secret == "whsec_c2VjcmV0"
