"""What a stranger can put into the three headers."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey, public_key_of
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.standard_webhooks import StandardSigner, StandardVerifier
from aiki_push.domain.errors import SignatureRejected
from aiki_push.ports.signing import signed_headers

SECRET = "whsk_" + b64encode(bytes([1] * 32)).decode()
SHARED = "whsec_" + b64encode(bytes([4] * 32)).decode()
AT_S = 1_800_000_000
NOW_MS = AT_S * 1_000
BODY = b"{}"
VERIFIER = StandardVerifier([public_key_of(SECRET), SHARED], tolerance_ms=30_000)


def genuine(message_id: str = "msg_1") -> dict[str, str]:
    return signed_headers(StandardSigner([Ed25519SecretKey(SECRET), HmacSecret(SHARED)]), message_id, AT_S, BODY)


def refusal(headers: dict[str, str], now_ms: int = NOW_MS) -> SignatureRejected:
    with pytest.raises(SignatureRejected) as refused:
        VERIFIER.verify(headers, BODY, now_ms)
    return refused.value


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_named(name: str) -> None:
    headers = genuine()
    del headers[name]

    refused = refusal(headers)

    assert (refused.check, str(refused)) == ("headers", f"{name} is missing.")


MALFORMED = {
    "an empty id": ("webhook-id", ""),
    "an id with a full stop": ("webhook-id", "msg.1"),
    "an id with a space": ("webhook-id", "msg 1"),
    "an id with a line break": ("webhook-id", "msg_1\n"),
    "an id that is not ASCII": ("webhook-id", "msg_é"),
    "an id with a letter of another script": ("webhook-id", "msg_а"),
    "an id of 257 characters": ("webhook-id", "a" * 257),
    "an id sent twice": ("webhook-id", "msg_1,msg_1"),
    "an id sent twice, joined with a space": ("webhook-id", "msg_1, msg_1"),
    "an empty timestamp": ("webhook-timestamp", ""),
    "a timestamp in words": ("webhook-timestamp", "now"),
    "a timestamp with a fraction": ("webhook-timestamp", "1800000000.0"),
    "a timestamp with an exponent": ("webhook-timestamp", "18e8"),
    "a timestamp with a plus": ("webhook-timestamp", "+1800000000"),
    "a timestamp before 1970": ("webhook-timestamp", "-1800000000"),
    "a timestamp with a leading zero": ("webhook-timestamp", "01800000000"),
    "a timestamp with a leading space": ("webhook-timestamp", " 1800000000"),
    "a timestamp with a line break": ("webhook-timestamp", "1800000000\n"),
    "a timestamp with underscores": ("webhook-timestamp", "1_800_000_000"),
    "a timestamp in other digits": ("webhook-timestamp", "18００００００００"),
    "a timestamp in milliseconds": ("webhook-timestamp", "1800000000000"),
    "a timestamp sent twice": ("webhook-timestamp", "1800000000,1800000000"),
    "an empty signature": ("webhook-signature", ""),
    "a blank signature": ("webhook-signature", " "),
    "a signature without a scheme": ("webhook-signature", "AAAA"),
    "a signature with an empty scheme": ("webhook-signature", ",AAAA"),
    "a scheme without a signature": ("webhook-signature", "v1a,"),
}


@pytest.mark.parametrize(("name", "value"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_header_is_refused_and_named_before_any_signature_is_looked_at(name: str, value: str) -> None:
    refused = refusal(genuine() | {name: value})

    assert (refused.check, str(refused)) == ("headers", f"{name} is malformed, too long or sent twice.")


@pytest.mark.parametrize(
    "shape",
    ["{0} ", " {0}", "{0}  {0}", "{0}\t{0}", "{0}\n", "{0},{0}", "{0}, {0}", "{0} é,AAAA", "{0} v9", "{0}" + " v9,AAAA" * 260],
)
def test_a_genuine_signature_in_a_malformed_or_repeated_header_is_refused(shape: str) -> None:
    headers = genuine()
    headers["webhook-signature"] = shape.format(headers["webhook-signature"])

    assert refusal(headers).check == "headers"


def test_a_signature_with_something_strewn_into_its_base64_does_not_match() -> None:
    headers = genuine()
    headers["webhook-signature"] = headers["webhook-signature"].replace("v1a,", "v1a,!").replace("v1,", "v1,!")

    assert refusal(headers).check == "signature"


def test_a_header_with_another_spelling_of_its_name_is_missing() -> None:
    headers = {name.title(): value for name, value in genuine().items()}

    assert str(refusal(headers)) == "webhook-id is missing."


def test_a_refusal_repeats_nothing_that_a_stranger_sent() -> None:
    forged = {"webhook-id": "FORGED", "webhook-timestamp": str(AT_S), "webhook-signature": "FORGED,FORGED"}
    cases = [
        refusal(forged),
        refusal(forged, NOW_MS + 60_000),
        refusal(genuine("FORGED"), now_ms=NOW_MS + 60_000),
        refusal(forged | {"webhook-timestamp": "FORGED\n"}),
    ]

    assert [case.check for case in cases] == ["signature", "timestamp", "expired", "headers"]
    assert [case for case in cases if "FORGED" in f"{case!s}{case!r}"] == []


GENUINE = genuine()
NAMES = st.sampled_from(sorted(GENUINE)) | st.text(max_size=20)
VALUES = (
    st.text(max_size=60)
    | st.from_regex(r"(v1a?,[A-Za-z0-9+/=]{0,90} ?){0,3}", fullmatch=True)
    | st.sampled_from(sorted(GENUINE.values()))
)


@given(
    headers=st.dictionaries(NAMES, VALUES, max_size=5),
    body=st.binary(max_size=50).filter(lambda body: body != BODY),
    now_ms=st.integers(),
)
def test_no_headers_body_or_time_raise_anything_but_a_refusal(headers: dict[str, str], body: bytes, now_ms: int) -> None:
    with pytest.raises(SignatureRejected) as refused:
        VERIFIER.verify(headers, body, now_ms)

    assert refused.value.check in {"headers", "timestamp", "expired", "signature"}


@given(name=st.sampled_from(["webhook-id", "webhook-timestamp"]), at=st.integers(0, 20), character=st.characters())
def test_no_single_changed_character_of_id_or_timestamp_is_accepted(name: str, at: int, character: str) -> None:
    at %= len(GENUINE[name])
    changed = GENUINE[name][:at] + character + GENUINE[name][at + 1 :]
    assume(changed != GENUINE[name])

    assert refusal(GENUINE | {name: changed}).check in {"headers", "timestamp", "signature"}


@pytest.mark.parametrize("place", [0, 1], ids=["v1a", "v1"])
@given(bit=st.integers(0, 8 * 64))
def test_no_single_changed_bit_of_a_signature_is_accepted(place: int, bit: int) -> None:
    scheme, text = GENUINE["webhook-signature"].split(" ")[place].split(",")
    signature = bytearray(b64decode(text))
    signature[bit // 8 % len(signature)] ^= 1 << bit % 8

    assert refusal(GENUINE | {"webhook-signature": f"{scheme},{b64encode(signature).decode()}"}).check == "signature"
