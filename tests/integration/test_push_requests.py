"""What is in a push, what is never in one, and where none is sent."""

import json
import logging
import socket
import ssl
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.ports.publisher import Failed, Published
from aiki_push.ports.signing import Signer
from aiki_push.testing import FAKE_NOW, FakeClock
from tests.integration.pushing import KEYS, PUBLIC, SECRET, SHARED, only, publisher, push_once
from tests.integration.raw_server import Behaviour, answer, raw_server
from tests.unit.adapters.delivery.delivery_examples import RUN_ID, endpoint_at, ready_run

AUDIENCE = "https://x.example/a?b=1&c=<d>\u00e9\U0001f642"

NOT_SIGNED = "the push to endpoint orders could not be signed; the server's log says what is wrong with the keys"


def test_a_push_is_one_signed_post_of_the_documented_body() -> None:
    with raw_server(answer(200)) as server:
        endpoint = endpoint_at(server.url + "?stage=a%20b", audience=AUDIENCE, pools=("large",))
        with publisher(endpoint, clock=FakeClock()) as made:
            assert made.publish([ready_run(pool="large")]) == [Published()]
        [received] = server.received

    assert received.line == "POST /push?stage=a%20b HTTP/1.1"
    assert json.loads(received.body) == {
        "v": 1,
        "type": "run.ready",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "data": {
            "run_id": RUN_ID,
            "workflow": "order",
            "version": "1.0.0",
            "pool": "large",
            "revision": 4,
            "namespace": "shop",
            "audience": AUDIENCE,
        },
    }
    assert {name: value for name, value in received.headers if name not in ("webhook-signature", "host")} == {
        "webhook-id": f"msg_{RUN_ID}_4_2",
        "webhook-timestamp": str(FAKE_NOW // 1_000),
        "content-type": "application/json",
        "content-length": str(len(received.body)),
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "connection": "keep-alive",
        "user-agent": "aiki-push",
    }
    assert len(received.headers) == 10


def test_another_implementation_of_ed25519_verifies_the_raw_bytes_of_a_push() -> None:
    with raw_server(answer(200)) as server:
        assert push_once(endpoint_at(server.url, audience=AUDIENCE)) == Published()
        [received] = server.received

    scheme, _, signature = received.header("webhook-signature").partition(",")
    content = f"{received.header('webhook-id')}.{received.header('webhook-timestamp')}.".encode() + received.body
    Ed25519PublicKey.from_public_bytes(b64decode(PUBLIC.removeprefix("whpk_"))).verify(b64decode(signature), content)
    assert scheme == "v1a"


def test_the_reference_library_verifies_a_push_to_an_endpoint_with_a_secret() -> None:
    with raw_server(answer(200)) as server:
        assert push_once(endpoint_at(server.url, audience=AUDIENCE, secret=SHARED)) == Published()
        [received] = server.received

    assert Webhook(SHARED).verify(received.body.decode(), dict(received.headers)) == json.loads(received.body)
    assert received.header("webhook-signature").startswith("v1,")
    assert " " not in received.header("webhook-signature")


def test_one_offer_has_one_id_at_every_endpoint_and_each_endpoint_its_own_audience() -> None:
    with raw_server(answer(404)) as first, raw_server(answer(200)) as second:
        endpoints = (endpoint_at(first.url, "first", audience="one"), endpoint_at(second.url, "second", audience="two"))
        assert push_once(*endpoints) == Published()
        received = [*first.received, *second.received]

    assert [one.header("webhook-id") for one in received] == [f"msg_{RUN_ID}_4_2"] * 2
    assert [json.loads(one.body)["data"]["audience"] for one in received] == ["one", "two"]


def test_pushes_share_a_connection_and_an_endpoint_cannot_leave_a_cookie_in_it() -> None:
    with raw_server(answer(200, "set-cookie: track=me; Path=/", body=b'{"outcome":"parked"}')) as server:
        with publisher(endpoint_at(server.url)) as made:
            assert [only(made.publish([ready_run()])) for _ in range(3)] == [Published()] * 3
        assert [one.connection for one in server.received] == [1, 1, 1]
        assert {name for one in server.received for name, _ in one.headers} & {"cookie", "authorization"} == set()


def test_proxies_and_credentials_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("default login someone password s3cret-word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with raw_server(answer(200)) as proxy, raw_server(answer(200)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert push_once(endpoint_at(server.url)) == Published()
        assert proxy.received == []
        [received] = server.received
    assert "authorization" not in dict(received.headers)


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "127.0.0.1", "::ffff:10.0.0.1"])
def test_a_host_with_a_private_address_gets_no_push_unless_that_is_allowed(address: str) -> None:
    asked: list[str] = []

    def resolve(host: str) -> Sequence[str]:
        asked.append(host)
        return ["93.184.216.34", address]

    with publisher(endpoint_at("https://Inside.example.com/"), allow_private_addresses=False, resolve=resolve) as made:
        outcome = only(made.publish([ready_run()]))

    refusal = f"has the address {address}, which is not public; the server's settings do not allow that"
    assert outcome == Failed(f"endpoint orders {refusal}")
    assert asked == ["inside.example.com"]


def test_a_public_host_is_connected_to() -> None:
    # The port is closed on this machine, which only a connection can find out.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint = endpoint_at(f"https://127.0.0.1:{port}/")
    with publisher(endpoint, allow_private_addresses=False, resolve=lambda _: ["93.184.216.34"]) as made:
        outcome = only(made.publish([ready_run()]))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("endpoint orders cannot be connected to: ")


def test_loopback_gets_no_push_unless_that_is_allowed() -> None:
    with raw_server(answer(200)) as server, publisher(endpoint_at(server.url), allow_private_addresses=False) as made:
        refusal = "endpoint orders cannot be pushed to: the endpoint's url must begin with https://"
        assert made.publish([ready_run()]) == [Failed(refusal)]
        assert server.received == []


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://10.0.0.1/", "cannot be pushed to: the endpoint's url may be http only to a loopback address"),
        (f"https://{'a' * 64}.example.com/", "cannot be connected to: encoding with 'idna' codec failed"),
    ],
)
def test_an_address_that_cannot_be_right_is_passed_over(url: str, error: str) -> None:
    bad = endpoint_at(url, "bad")
    outcome = push_once(bad)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(f"endpoint bad {error}")
    with raw_server(answer(200)) as server:
        assert push_once(bad, endpoint_at(server.url)) == Published()


def test_a_host_that_cannot_be_resolved_is_a_failure() -> None:
    def unknown(_: str) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with publisher(endpoint_at("https://orders.example.com/"), allow_private_addresses=False, resolve=unknown) as made:
        outcome = only(made.publish([ready_run()]))
    assert outcome == Failed("endpoint orders has a host that cannot be resolved: [Errno -2] Name or service not known")


def test_a_certificate_that_nobody_we_trust_has_signed_is_a_failure(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed_certificate(tmp_path / "server.pem"))
    with raw_server(answer(200), tls=tls) as server:
        outcome = push_once(endpoint_at(server.url))
        assert server.received == []
    assert isinstance(outcome, Failed)
    assert "certificate verify failed" in outcome.error


def self_signed_certificate(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime(2025, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def test_keys_that_cannot_be_read_are_a_failure_that_is_explained_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = KeyFile(tmp_path / "keys.json", SystemClock(), SystemEntropy())
    with raw_server(answer(200)) as server:
        with publisher(endpoint_at(server.url), keys=CachedKeyRing(file.read, SystemClock())) as made:
            assert made.publish([ready_run()]) == [Failed(NOT_SIGNED)]
            file.init()
            assert made.publish([ready_run()]) == [Published()]
        assert len(server.received) == 1
    [loud] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert loud.startswith(f"the push to endpoint orders could not be signed: There are no signing keys in {tmp_path}")


def test_a_damaged_secret_of_an_endpoint_fails_its_pushes_alone_and_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with raw_server(answer(200)) as server:
        damaged = endpoint_at(server.url, secret="whsec_s3cret-word", pools=("large",))
        with publisher(damaged, endpoint_at(server.url, "plain")) as made:
            outcomes = made.publish([ready_run(pool="large"), ready_run()])
    assert outcomes == [Failed(NOT_SIGNED), Published()]
    assert "s3cret" not in caplog.text


def test_a_fault_of_our_own_fails_one_push_of_a_batch_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class FaultyKeys:
        """A KeyRing with a fault where an endpoint has a secret."""

        def __init__(self) -> None:
            self._sound = CachedKeyRing(lambda: KEYS, SystemClock())

        def signer(self, endpoint_secret: str | None = None) -> Signer:
            if endpoint_secret:
                raise LookupError("a fault of ours")
            return self._sound.signer()

        def public_keys(self) -> tuple[str, ...]:
            return self._sound.public_keys()

    with raw_server(answer(200)) as server:
        faulty = endpoint_at(server.url, secret=SHARED, pools=("large",))
        with publisher(faulty, endpoint_at(server.url, "plain"), keys=FaultyKeys()) as made:
            outcomes = made.publish([ready_run(), ready_run(pool="large"), ready_run()])
    unexpected = Failed("the push failed unexpectedly (LookupError); the server's log says more")
    assert outcomes == [Published(), unexpected, Published()]
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (record.levelname, record.getMessage()) == ("ERROR", f"pushing run {RUN_ID} failed unexpectedly")
    assert record.exc_info is not None


@pytest.mark.parametrize("behaviour", [answer(200), answer(401), answer(500), answer(302, "location: http://127.0.0.1/")])
@pytest.mark.parametrize("secret", [None, SHARED])
def test_no_secret_is_in_a_push_a_log_an_outcome_or_a_repr(
    behaviour: Behaviour, secret: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with raw_server(behaviour) as server, publisher(endpoint_at(server.url, secret=secret)) as made:
        outcome = only(made.publish([ready_run()]))
        shown = f"{made!r} {outcome!r} {server.received!r} {caplog.text}"
    for text in (SECRET, SHARED):
        assert text.partition("_")[2] not in shown
    assert "webhook-signature" in shown
