import pytest

from aiki_push.domain.endpoints import check_url, is_loopback
from aiki_push.domain.errors import InvalidRequest

HTTPS = "must begin with https://"
HTTP = "may be http only to a loopback address such as 127.0.0.1; use https"
HOST = "needs a host and plain ASCII without spaces"
EXTRA = "must not carry credentials or a fragment"
PARSE = "cannot be parsed"


def fault(url: str, *, allow_loopback_http: bool) -> str | None:
    """What is wrong with `url`, None where nothing is."""
    try:
        check_url(url, allow_loopback_http=allow_loopback_http)
    except InvalidRequest as error:
        return error.detail.removeprefix("the endpoint's url ")
    return None


@pytest.mark.parametrize(
    "url",
    [
        "https://orders.example.com",
        "https://orders.example.com/aiki?tenant=a%20b&x=1",
        "https://orders.example.com:8443/",
        "https://abc.execute-api.eu-central-1.amazonaws.com/prod/push",
        "https://abc.lambda-url.eu-central-1.on.aws/",
        "https://203.0.113.7/",
        "https://[2001:db8::1]:8443/push",
        "HTTPS://orders.example.com/",
    ],
)
@pytest.mark.parametrize("allow_loopback_http", [True, False])
def test_an_https_url_with_a_host_is_accepted(url: str, allow_loopback_http: bool) -> None:
    assert fault(url, allow_loopback_http=allow_loopback_http) is None


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/push", "http://localhost:8000", "http://LOCALHOST/", "http://[::1]:9/", "http://127.9.9.9/"]
)
def test_http_to_this_machine_needs_permission(url: str) -> None:
    assert fault(url, allow_loopback_http=True) is None
    assert fault(url, allow_loopback_http=False) == HTTPS


@pytest.mark.parametrize(
    "url",
    [
        "http://orders.example.com/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0:8000/",
        "http://localhost.example.com/",
        "http://127.0.0.1.example.com/",
        "http://[::ffff:10.0.0.1]/",
    ],
)
def test_http_to_any_other_machine_is_refused_even_with_permission(url: str) -> None:
    assert fault(url, allow_loopback_http=True) == HTTP
    assert fault(url, allow_loopback_http=False) == HTTPS


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://orders.example.com/", HTTPS),
        ("file://orders.example.com/etc/passwd", HTTPS),
        ("gopher://127.0.0.1/", HTTPS),
        ("orders.example.com/push", HOST),
        ("//orders.example.com/push", HTTPS),
        ("", HOST),
        ("https://", HOST),
        ("https:///push", HOST),
        ("https:orders.example.com", HOST),
        ("https://:443/", HOST),
        ("https://orders.example.com/a b", HOST),
        ("https://orders.example.com/\u00e9", HOST),
        ("https://b\u00fccher.example/", HOST),
        ("https://user:pass@orders.example.com/", EXTRA),
        ("https://user@orders.example.com/", EXTRA),
        ("https://@orders.example.com/", EXTRA),
        ("https://public.example\\@10.0.0.1/", EXTRA),
        ("https://orders.example.com/#fragment", EXTRA),
        ("https://orders.example.com:0x50/", PARSE),
        ("https://orders.example.com:99999/", PARSE),
        ("https://[::1/", PARSE),
        ("https://[not-an-address]/", PARSE),
    ],
)
@pytest.mark.parametrize("allow_loopback_http", [True, False])
def test_a_url_of_another_shape_is_refused_by_name(url: str, expected: str, allow_loopback_http: bool) -> None:
    assert fault(url, allow_loopback_http=allow_loopback_http) == expected


@pytest.mark.parametrize("character", [" ", "\t", "\n", "\r", "\x00", "\x7f", "\u00a0", "\u2028"])
@pytest.mark.parametrize(
    "url", ["https://orders{}.example.com/", "https://orders.example.com/a{}b", "https://orders.example.com/{}"]
)
def test_white_space_and_control_characters_are_refused_wherever_they_are(url: str, character: str) -> None:
    assert fault(url.format(character), allow_loopback_http=True) == HOST


def test_a_refusal_names_the_field_and_does_not_repeat_the_url() -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_url("https://user:s3cret-word@orders.example.com/", allow_loopback_http=True)
    assert str(refused.value) == f"the endpoint's url {EXTRA}"
    assert refused.value.fields == {"errors": [{"field": "url", "message": EXTRA}]}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.255.255.254", "::1"])
def test_these_hosts_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "localhost.", "localhost.example.com", "128.0.0.1", "0.0.0.0", "::", "10.0.0.1", "127.1", "2130706433"]
)
def test_these_hosts_are_not(host: str) -> None:
    assert not is_loopback(host)
