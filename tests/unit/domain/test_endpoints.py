import pytest

from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName, check_url, is_loopback, serving
from aiki_push.domain.errors import InvalidRequest
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


HOST_OR_ASCII = "needs a host and plain ASCII without spaces"
CREDENTIALS = "must not carry credentials or a fragment"
HTTPS = "must begin with https://"
LOOPBACK = "may be http only to a loopback address such as 127.0.0.1; use https"


def assert_refused(url: str, fault: str, *, allow_loopback_http: bool) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_url(url, allow_loopback_http=allow_loopback_http)
    assert refused.value.detail == f"the endpoint's url {fault}"
    assert refused.value.fields == {"errors": [{"field": "url", "message": fault}]}


@pytest.mark.parametrize("allow_loopback_http", [True, False])
@pytest.mark.parametrize(
    "url", ["https://orders.example.com", "HTTPS://orders.example.com:8443/aiki?stage=1", "https://[2001:db8::1]/aiki"]
)
def test_an_https_url_is_accepted_everywhere(url: str, allow_loopback_http: bool) -> None:
    check_url(url, allow_loopback_http=allow_loopback_http)


LOOPBACK_URLS = [
    "http://127.0.0.1:8080/aiki",
    "http://127.8.9.1",
    "http://localhost:8080",
    "http://LOCALHOST",
    "http://[::1]:8080",
]


@pytest.mark.parametrize("url", LOOPBACK_URLS)
def test_an_http_url_of_this_machine_is_accepted_only_where_that_is_allowed(url: str) -> None:
    check_url(url, allow_loopback_http=True)
    assert_refused(url, HTTPS, allow_loopback_http=False)


@pytest.mark.parametrize("allow_loopback_http", [True, False])
@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", HOST_OR_ASCII),
        ("orders.example.com", HOST_OR_ASCII),
        ("https:///aiki", HOST_OR_ASCII),
        ("https://örders.example.com", HOST_OR_ASCII),
        ("https://orders.example.com/a b", HOST_OR_ASCII),
        ("https://orders.example.com/\n", HOST_OR_ASCII),
        ("\x00https://orders.example.com", HOST_OR_ASCII),
        ("https://orders.example.com/\x7f", HOST_OR_ASCII),
        ("https://[::1", "cannot be parsed"),
        ("https://orders.example.com:65536", "cannot be parsed"),
        ("https://orders.example.com:port", "cannot be parsed"),
        ("https://user@orders.example.com", CREDENTIALS),
        ("https://:word@orders.example.com", CREDENTIALS),
        ("https://orders.example.com/#top", CREDENTIALS),
        ("ftp://127.0.0.1", HTTPS),
        ("file://localhost/etc", HTTPS),
    ],
)
def test_any_other_url_is_refused_with_its_fault(url: str, fault: str, allow_loopback_http: bool) -> None:
    assert_refused(url, fault, allow_loopback_http=allow_loopback_http)


@pytest.mark.parametrize(
    "host", ["orders.example.com", "127.0.0.1.example.com", "localhost.example.com", "10.0.0.1", "[::2]", "0.0.0.0"]
)
def test_an_http_url_of_another_machine_is_refused(host: str) -> None:
    assert_refused(f"http://{host}", LOOPBACK, allow_loopback_http=True)
    assert_refused(f"http://{host}", HTTPS, allow_loopback_http=False)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        ("localhost", True),
        ("128.0.0.1", False),
        ("::2", False),
        ("example.com", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_this_machine_is_localhost_and_its_loopback_addresses(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
