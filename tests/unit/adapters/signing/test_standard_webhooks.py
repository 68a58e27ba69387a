import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey, public_key_of
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.standard_webhooks import StandardSigner, StandardVerifier
from aiki_push.domain.errors import InvalidRequest, SettingsError, SignatureRejected
from aiki_push.ports.signing import Signer, VerifiedPush, Verifier, signed_headers


def secret_key(seed_byte: int) -> str:
    return "whsk_" + b64encode(bytes([seed_byte] * 32)).decode()


def shared_secret(byte: int) -> str:
    return "whsec_" + b64encode(bytes([byte] * 32)).decode()


OLD, NEW, STRANGER = secret_key(1), secret_key(2), secret_key(3)
SHARED, OTHER_SHARED = shared_secret(4), shared_secret(5)

AT_S = 1_800_000_000
NOW_MS = AT_S * 1_000
BODY = b'{"text":"a & b < c","n":1.0}'
TOLERANCE_MS = 30_000


def signer_of(*secrets: str) -> Signer:
    return StandardSigner([HmacSecret(text) if text.startswith("whsec_") else Ed25519SecretKey(text) for text in secrets])


def verifier_of(*secrets: str, tolerance_ms: int = TOLERANCE_MS) -> Verifier:
    return StandardVerifier([text if text.startswith("whsec_") else public_key_of(text) for text in secrets], tolerance_ms)


def headers_by(*secrets: str, message_id: str = "msg_1", at_s: int = AT_S, body: bytes = BODY) -> dict[str, str]:
    return signed_headers(signer_of(*secrets), message_id, at_s, body)


def refusal(verifier: Verifier, headers: dict[str, str], body: bytes = BODY, now_ms: int = NOW_MS) -> SignatureRejected:
    with pytest.raises(SignatureRejected) as refused:
        verifier.verify(headers, body, now_ms)
    return refused.value


# What is accepted


@pytest.mark.parametrize("secret", [OLD, SHARED], ids=["ed25519", "hmac"])
def test_a_push_signed_by_a_trusted_key_gives_its_id_and_time(secret: str) -> None:
    assert verifier_of(secret).verify(headers_by(secret), BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


@pytest.mark.parametrize("trusted", [OLD, NEW], ids=["the old key", "the new key"])
def test_during_a_rotation_both_keys_sign_and_either_suffices(trusted: str) -> None:
    headers = headers_by(NEW, OLD)

    assert len(headers["webhook-signature"].split(" ")) == 2
    assert verifier_of(trusted).verify(headers, BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


@pytest.mark.parametrize("signing", [OLD, NEW, SHARED])
def test_any_one_of_several_trusted_keys_of_both_schemes_suffices(signing: str) -> None:
    assert verifier_of(STRANGER, OLD, NEW, SHARED).verify(headers_by(signing), BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


def test_signatures_of_unknown_schemes_strangers_and_no_base64_beside_a_genuine_one_do_no_harm() -> None:
    headers = headers_by(OLD)
    junk = f"v9,deadbeef-_ v1a,!!! v1a,AAAA v1,AAAA {headers_by(STRANGER)['webhook-signature']}"
    headers["webhook-signature"] = f"{junk} {headers['webhook-signature']}"

    assert verifier_of(OLD).verify(headers, BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


def test_a_header_full_of_signatures_up_to_the_limit_is_read() -> None:
    headers = headers_by(*[STRANGER] * 21, OLD)

    assert len(headers["webhook-signature"]) <= 2_048
    assert verifier_of(OLD).verify(headers, BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


def test_other_headers_are_of_no_interest() -> None:
    headers = {**headers_by(OLD), "webhook-public-key": public_key_of(STRANGER), "host": "é", "Webhook-Id": "x"}

    assert verifier_of(OLD).verify(headers, BODY, NOW_MS) == VerifiedPush("msg_1", AT_S)


# Time


SKEWS_MS = [-120_000, -30_001, -30_000, -29_999, -1, 0, 1, 29_999, 30_000, 30_001, 120_000]


@pytest.mark.parametrize("skew_ms", SKEWS_MS)
def test_a_signed_push_is_accepted_up_to_the_tolerance_and_expired_beyond_it_in_both_directions(skew_ms: int) -> None:
    verifier, headers = verifier_of(OLD), headers_by(OLD)

    if -TOLERANCE_MS <= skew_ms <= TOLERANCE_MS:
        assert verifier.verify(headers, BODY, NOW_MS + skew_ms) == VerifiedPush("msg_1", AT_S)
    else:
        assert refusal(verifier, headers, now_ms=NOW_MS + skew_ms).check == "expired"


@pytest.mark.parametrize("skew_ms", SKEWS_MS)
def test_an_unsigned_push_is_a_matter_of_its_signature_within_the_tolerance_and_of_its_timestamp_beyond(skew_ms: int) -> None:
    check = "signature" if -TOLERANCE_MS <= skew_ms <= TOLERANCE_MS else "timestamp"

    assert refusal(verifier_of(OLD), headers_by(STRANGER), now_ms=NOW_MS + skew_ms).check == check


@pytest.mark.parametrize("skew_ms", [-120_000, 120_000])
def test_a_tolerance_of_two_minutes_ends_exactly_there(skew_ms: int) -> None:
    verifier, headers = verifier_of(OLD, tolerance_ms=120_000), headers_by(OLD)

    assert verifier.verify(headers, BODY, NOW_MS + skew_ms) == VerifiedPush("msg_1", AT_S)
    assert refusal(verifier, headers, now_ms=NOW_MS + skew_ms + (1 if skew_ms > 0 else -1)).check == "expired"


@pytest.mark.parametrize(("skew_ms", "direction"), [(30_001, "30001 ms ago"), (-30_001, "30001 ms ahead of this clock")])
def test_an_expired_push_says_in_which_direction_the_clocks_differ(skew_ms: int, direction: str) -> None:
    message = str(refusal(verifier_of(OLD), headers_by(OLD), now_ms=NOW_MS + skew_ms))

    assert message == (
        f"Correctly signed, but sent {direction}, with 30000 ms allowed. Compare the clocks, or it was held up on the way."
    )


# What no signature vouches for


def test_a_body_that_was_parsed_and_written_again_is_refused() -> None:
    for written, sent in [(b'{"n":1.0}', b'{"n": 1.0}'), (b'{"a":1,"a":2}', b'{"a":2}'), ("🙂".encode(), rb"\ud83d\ude42")]:
        assert refusal(verifier_of(OLD), headers_by(OLD, body=written), sent).check == "signature"


@pytest.mark.parametrize("change", [{"webhook-id": "msg_2"}, {"webhook-timestamp": str(AT_S + 1)}])
def test_a_changed_id_or_time_is_refused(change: dict[str, str]) -> None:
    assert refusal(verifier_of(OLD), headers_by(OLD) | change).check == "signature"


@pytest.mark.parametrize(
    ("signing", "trusted"),
    [(OLD, STRANGER), (SHARED, OTHER_SHARED), (OLD, SHARED), (SHARED, OLD)],
    ids=["v1a", "v1", "v1a/v1", "v1/v1a"],
)
def test_a_key_vouches_only_for_itself(signing: str, trusted: str) -> None:
    assert refusal(verifier_of(trusted), headers_by(signing)).check == "signature"


@pytest.mark.parametrize(("secret", "scheme", "claimed"), [(OLD, "v1a", "v1"), (SHARED, "v1", "v1a")])
def test_a_genuine_signature_under_the_name_of_the_other_scheme_is_refused(secret: str, scheme: str, claimed: str) -> None:
    headers = headers_by(secret)
    headers["webhook-signature"] = headers["webhook-signature"].replace(f"{scheme},", f"{claimed},")

    assert refusal(verifier_of(secret), headers).check == "signature"


def test_a_public_key_taken_for_a_shared_secret_signs_nothing_that_is_accepted() -> None:
    public = b64decode(public_key_of(OLD).removeprefix("whpk_"))
    forged = b64encode(hmac.digest(public, b"msg_1.1800000000." + BODY, hashlib.sha256)).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(AT_S), "webhook-signature": f"v1,{forged} v1a,{forged}"}

    assert refusal(verifier_of(OLD), headers).check == "signature"


def test_a_trusted_key_of_small_order_vouches_for_nothing() -> None:
    identity = bytes([1] + [0] * 31)
    verifier = StandardVerifier(["whpk_" + b64encode(identity).decode()], TOLERANCE_MS)
    headers = headers_by(OLD) | {"webhook-signature": "v1a," + b64encode(identity + bytes(32)).decode()}

    assert refusal(verifier, headers).check == "signature"


def test_a_part_of_the_body_cannot_be_moved_into_the_id() -> None:
    headers = headers_by(OLD, message_id="a", body=f"{AT_S}.x".encode())

    assert refusal(verifier_of(OLD), headers | {"webhook-id": f"a.{AT_S}"}, b"x").check == "headers"


# Settings and use


def test_a_verifier_without_trusted_keys_is_not_built() -> None:
    with pytest.raises(SettingsError, match="No trusted signing keys"):
        StandardVerifier([], TOLERANCE_MS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OLD, "belongs to the server alone"),
        ("", "does not start with whpk_"),
        ("AAAA", "does not start with whpk_"),
        ("whpk_" + b64encode(bytes(31)).decode(), "this one has 31 bytes"),
        ("whpk_damaged!", "is not base64"),
        ("whsec_" + b64encode(bytes(23)).decode(), "this one has 23 bytes"),
    ],
)
def test_a_wrong_trusted_key_is_named_by_its_place_and_not_shown(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as refused:
        StandardVerifier([public_key_of(NEW), text], TOLERANCE_MS)

    assert str(refused.value).startswith("Trusted key 2: ")
    assert len(text) < 5 or text[5:] not in str(refused.value)


@pytest.mark.parametrize("message_id", ["msg.1", "", "é", "a" * 257])
def test_an_id_that_no_verifier_would_accept_is_not_signed(message_id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        signer_of(OLD).sign(message_id, AT_S, BODY)

    assert refused.value.fields == {"errors": [{"field": "message_id", "message": "must be 1 to 256 letters, digits, _ or -"}]}


@pytest.mark.parametrize("at_s", [-1, NOW_MS])
def test_a_time_that_no_verifier_would_accept_is_not_signed(at_s: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        signer_of(OLD).sign("msg_1", at_s, BODY)

    assert refused.value.fields == {
        "errors": [{"field": "at_s", "message": "must be whole seconds since 1970, at most 11 digits"}]
    }


# Any content


@given(
    secret=st.sampled_from([OLD, SHARED]),
    message_id=st.from_regex(r"[A-Za-z0-9_-]{1,256}", fullmatch=True),
    at_s=st.integers(0, 99_999_999_999),
    body=st.binary(),
)
def test_whatever_is_signed_is_verified(secret: str, message_id: str, at_s: int, body: bytes) -> None:
    headers = headers_by(secret, message_id=message_id, at_s=at_s, body=body)

    assert verifier_of(OLD, SHARED).verify(headers, body, at_s * 1_000) == VerifiedPush(message_id, at_s)
