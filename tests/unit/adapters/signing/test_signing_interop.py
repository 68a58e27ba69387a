"""Our signatures against implementations by others: `cryptography` for Ed25519, `standardwebhooks` for HMAC."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from standardwebhooks import Webhook, WebhookVerificationError

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey, generate_signing_key, public_key_of
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.standard_webhooks import StandardSigner, StandardVerifier
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.ports.signing import VerifiedPush, signed_headers

AT_S = 1_800_000_000
TEXT = '{"text":"a & b < c 🙂","n":1.0}'

# Computed with the two libraries from bytes(range(32)) and bytes(range(24)).
SECRET = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PUBLIC = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
ED25519_SIGNATURE = "v1a,G/GvvnGJ5KDTPXE463JEULEUuRII0tmzsA7SEk1w3tRC/HsqSrTpBLcX9zt+I0HW6s1dtQ13NYpJOJcPhTOzBw=="
SHARED = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
HMAC_SIGNATURE = "v1,Yvm5s7bK+VCdIYTWkHmp7wrtC0EY2oE9bGjPbisAYPc="

BODIES = pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":"x & y"}', id="ampersand"),
        pytest.param(b'{"a":"<b>"}', id="angle brackets"),
        pytest.param('{"a":"🙂é"}'.encode(), id="emoji"),
        pytest.param(b'{"a":1.0}', id="1.0"),
        pytest.param(b'{"a":1,"a":2}', id="duplicate keys"),
        pytest.param(b' {"a" : 1}\r\n', id="white space"),
        pytest.param(b"\xff\xfe\x00.", id="not UTF-8"),
        pytest.param(b"", id="nothing"),
    ],
)


def test_the_ed25519_signature_is_the_known_one() -> None:
    assert StandardSigner([Ed25519SecretKey(SECRET)]).sign("msg_vector", AT_S, TEXT.encode()) == ED25519_SIGNATURE


def test_the_hmac_signature_is_the_known_one() -> None:
    assert StandardSigner([HmacSecret(SHARED)]).sign("msg_vector", AT_S, TEXT.encode()) == HMAC_SIGNATURE


def test_the_hmac_signature_is_the_one_that_the_specification_publishes_in_its_libraries() -> None:
    signer = StandardSigner([HmacSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")])

    signature = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_known_signatures_verify_together_in_one_header() -> None:
    headers = {
        "webhook-id": "msg_vector",
        "webhook-timestamp": str(AT_S),
        "webhook-signature": f"{HMAC_SIGNATURE} {ED25519_SIGNATURE}",
    }
    for trusted in (PUBLIC, SHARED):
        verified = StandardVerifier([trusted], 0).verify(headers, TEXT.encode(), AT_S * 1_000)
        assert verified == VerifiedPush("msg_vector", AT_S)


@BODIES
def test_another_ed25519_implementation_accepts_what_we_sign(body: bytes) -> None:
    seed = bytes(range(32))

    signature = StandardSigner([Ed25519SecretKey(SECRET)]).sign("msg_1", AT_S, body)

    scheme, _, text = signature.partition(",")
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    public.verify(b64decode(text), b"msg_1.1800000000." + body)
    with pytest.raises(InvalidSignature):
        public.verify(b64decode(text), b"msg_1.1800000000." + body + b" ")
    assert scheme == "v1a"


@BODIES
def test_we_accept_what_another_ed25519_implementation_signs(body: bytes) -> None:
    private = Ed25519PrivateKey.generate()
    signature = b64encode(private.sign(b"msg_1.1800000000." + body)).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1800000000", "webhook-signature": f"v1a,{signature}"}
    trusted = "whpk_" + b64encode(private.public_key().public_bytes_raw()).decode()

    assert StandardVerifier([trusted], 0).verify(headers, body, AT_S * 1_000) == VerifiedPush("msg_1", AT_S)


@pytest.mark.parametrize("text", ["{}", TEXT, '{"a":1,"a":2}'])
def test_the_reference_library_accepts_what_we_sign_by_hmac(text: str) -> None:
    at_s = SystemClock().now() // 1_000
    headers = signed_headers(StandardSigner([HmacSecret(SHARED)]), "msg_1", at_s, text.encode())

    Webhook(SHARED).verify(text, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SHARED).verify(text + " ", headers)


@pytest.mark.parametrize("text", ["{}", TEXT, '{"a":1,"a":2}'])
def test_we_accept_what_the_reference_library_signs_by_hmac(text: str) -> None:
    signature = Webhook(SHARED).sign("msg_1", datetime.fromtimestamp(AT_S, UTC), text)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(AT_S), "webhook-signature": signature}

    assert StandardVerifier([SHARED], 0).verify(headers, text.encode(), AT_S * 1_000) == VerifiedPush("msg_1", AT_S)


def test_another_implementation_derives_the_same_public_key_from_a_generated_secret() -> None:
    secret = generate_signing_key(SystemEntropy())

    private = Ed25519PrivateKey.from_private_bytes(b64decode(secret.removeprefix("whsk_")))

    assert public_key_of(secret) == "whpk_" + b64encode(private.public_key().public_bytes_raw()).decode()
