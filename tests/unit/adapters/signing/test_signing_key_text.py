from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.adapters.signing.ed25519 import Ed25519PublicKey, Ed25519SecretKey, generate_signing_key, public_key_of
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.key_text import decode_key, encode_key
from aiki_push.domain.errors import SettingsError


class CountingEntropy:
    """Gives 0, 1, 2, … instead of random bytes."""

    def token(self, size: int) -> bytes:
        return bytes(range(size))

    def fraction(self) -> float:
        return 0.5


SEED = bytes(range(32))
SECRET = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PUBLIC = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
PUBLIC_BYTES = decode_key(PUBLIC, "whpk_", (32,), "A key")


def test_a_generated_key_is_the_base64_of_32_bytes_of_entropy() -> None:
    assert generate_signing_key(CountingEntropy()) == SECRET


def test_the_public_key_of_a_seed_is_the_known_one() -> None:
    assert public_key_of(SECRET) == PUBLIC


def test_a_key_of_seed_and_public_key_signs_as_the_seed_does() -> None:
    long = Ed25519SecretKey(encode_key("whsk_", SEED + PUBLIC_BYTES))

    assert long.public_text == PUBLIC
    assert long.sign(b"content") == Ed25519SecretKey(SECRET).sign(b"content")


def test_a_key_whose_public_half_belongs_to_another_seed_is_refused() -> None:
    with pytest.raises(SettingsError, match="two halves of this one do not belong together"):
        Ed25519SecretKey(encode_key("whsk_", SEED + bytes(32)))


@pytest.mark.parametrize("size", [0, 31, 33, 63, 65])
def test_a_secret_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(SettingsError, match=rf"base64 of 32 bytes \(seed\) or 64 .*; this one has {size} bytes"):
        Ed25519SecretKey(encode_key("whsk_", bytes(size)))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_public_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(SettingsError, match=f"base64 of 32 bytes; this one has {size} bytes"):
        Ed25519PublicKey(encode_key("whpk_", bytes(size)))


@pytest.mark.parametrize("size", [24, 64])
def test_a_shared_secret_of_24_to_64_bytes_is_used(size: int) -> None:
    assert HmacSecret(encode_key("whsec_", bytes(size))).sign(b"content").startswith("v1,")


@pytest.mark.parametrize("size", [0, 23, 65])
def test_a_shared_secret_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(SettingsError, match=f"base64 of 24 to 64 bytes; this one has {size} bytes"):
        HmacSecret(encode_key("whsec_", bytes(size)))


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_a_signature_of_zeros_or_of_another_size_does_not_match(signature: bytes) -> None:
    assert not Ed25519PublicKey(PUBLIC).vouches_for(b"content", signature)
    assert not HmacSecret(encode_key("whsec_", SEED)).vouches_for(b"content", signature)


@pytest.mark.parametrize(
    "text",
    [
        SECRET.removeprefix("whsk_"),
        PUBLIC,
        SECRET.upper(),
        " " + SECRET,
        SECRET + "\n",
        SECRET.rstrip("="),
        SECRET.replace("A", "-", 1),
        SECRET.replace("A", "é", 1),
    ],
    ids=["no prefix", "public", "upper case", "space before", "line break", "no padding", "base64url", "not ASCII"],
)
def test_a_damaged_secret_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        public_key_of(text)

    assert text.strip()[6:40] not in f"{refused.value!s}{refused.value!r}"
    assert refused.value.__context__ is None


@given(st.text(max_size=100) | st.binary(max_size=70).map(lambda raw: "whsk_" + b64encode(raw).decode()))
def test_a_text_is_a_key_or_a_settings_error(text: str) -> None:
    try:
        public = public_key_of(text)
    except SettingsError:
        return
    assert public.startswith("whpk_")


def test_no_key_shows_its_secret() -> None:
    secret, shared = Ed25519SecretKey(SECRET), HmacSecret(encode_key("whsec_", SEED))

    assert f"{secret} {secret!r}" == f"Ed25519SecretKey(public {PUBLIC}) Ed25519SecretKey(public {PUBLIC})"
    assert f"{shared} {shared!r}" == "HmacSecret(not shown) HmacSecret(not shown)"
