import json
from base64 import b64encode
from collections.abc import Callable

import pytest

from aiki_push.adapters.signing.ed25519 import public_key_of
from aiki_push.adapters.signing.key_set import KEY_CACHE_MS, MAX_RETIRING, ActiveKey, KeySet, RetiringKey, parse_key_set
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import TimestampMs


def secret_key(seed_byte: int) -> str:
    return "whsk_" + b64encode(bytes([seed_byte] * 32)).decode()


OLD, NEW, NEWEST = secret_key(1), secret_key(2), secret_key(3)
CREATED_AT, ROTATED_AT = TimestampMs(1_000), TimestampMs(2_000)
FIRST = KeySet(active=ActiveKey(secret=OLD, created_at=CREATED_AT))
ROTATED = FIRST.rotated(NEW, ROTATED_AT)


def test_a_rotated_set_has_the_new_key_active_and_the_old_one_retiring() -> None:
    retiring = RetiringKey(secret=OLD, created_at=CREATED_AT, retiring_since=ROTATED_AT)

    assert KeySet(active=ActiveKey(secret=NEW, created_at=ROTATED_AT), retiring=(retiring,)) == ROTATED
    assert ROTATED.public_keys() == (public_key_of(NEW), public_key_of(OLD))


def test_a_set_rotated_twice_signs_with_all_three_keys_the_newest_first() -> None:
    assert ROTATED.rotated(NEWEST, TimestampMs(3_000)).secrets() == (NEWEST, NEW, OLD)


def test_only_so_many_keys_retire_at_once() -> None:
    keys = FIRST
    for number in range(MAX_RETIRING):
        keys = keys.rotated(secret_key(10 + number), ROTATED_AT)

    with pytest.raises(SettingsError, match="Run `aiki-push keys retire` first"):
        keys.rotated(NEW, ROTATED_AT)


def test_a_retired_set_has_the_active_key_alone() -> None:
    assert ROTATED.retired(TimestampMs(ROTATED_AT + KEY_CACHE_MS + 1)) == KeySet(active=ROTATED.active)


def test_keys_are_not_retired_while_a_process_may_not_know_of_the_rotation() -> None:
    with pytest.raises(SettingsError, match=r"too recent: .* Retry in 1 ms"):
        ROTATED.retired(TimestampMs(ROTATED_AT + KEY_CACHE_MS))


def test_the_latest_of_several_rotations_decides_when_keys_retire() -> None:
    again_at = TimestampMs(ROTATED_AT + KEY_CACHE_MS)

    with pytest.raises(SettingsError, match=f"Retry in {KEY_CACHE_MS} ms"):
        ROTATED.rotated(NEWEST, again_at).retired(TimestampMs(again_at + 1))


def test_nothing_is_retired_where_no_key_is_retiring() -> None:
    with pytest.raises(SettingsError, match="No key is retiring"):
        FIRST.retired(TimestampMs(10**15))


def test_a_set_is_read_as_it_was_written() -> None:
    assert parse_key_set(ROTATED.encoded(), "store") == ROTATED


def test_a_document_has_the_documented_form() -> None:
    assert json.loads(ROTATED.encoded()) == {
        "version": 1,
        "active": {"secret": NEW, "created_at": 2_000},
        "retiring": [{"secret": OLD, "created_at": 1_000, "retiring_since": 2_000}],
    }


@pytest.mark.parametrize("show", [str, repr, "{}".format])
def test_a_set_does_not_show_its_secrets(show: Callable[[KeySet], str]) -> None:
    assert (OLD[5:] in show(ROTATED), NEW[5:] in show(ROTATED)) == (False, False)
    assert "retiring_since=2000" in show(ROTATED)


def active(**fields: object) -> bytes:
    return json.dumps({"version": 1, "active": {"secret": OLD, "created_at": 1} | fields}).encode()


DAMAGED = {
    "empty": (b"", "document: Invalid JSON"),
    "cut short": (ROTATED.encoded()[:-20], "document: Invalid JSON"),
    "not UTF-8": (b"\xff" + ROTATED.encoded(), "document: Invalid JSON"),
    "not an object": (b"[]", "document: Input should be"),
    "deeply nested": (b"[" * 50_000, "document: Invalid JSON"),
    "without an active key": (b'{"version":1}', "active: Field required"),
    "of a newer version": (b'{"version":2,"active":{"secret":"x","created_at":1}}', "version: Input should be 1"),
    "with an unknown field": (active(comment=OLD), "active.comment: Extra inputs"),
    "with a damaged key": (active(secret=OLD[:-3]), "active.secret: .*not base64"),
    "with a short key": (active(secret="whsk_AAAA"), "active.secret: .*this one has 3 bytes"),
    "with a public key": (active(secret=public_key_of(OLD)), "active.secret: .*does not start with whsk_"),
    "with a key that is no text": (active(secret=[OLD]), "active.secret: Input should be a valid string"),
    "with a time in quotes": (active(created_at="1"), "active.created_at: Input should be a valid integer"),
    "with a time in words": (active(created_at=OLD), "active.created_at: Input should be a valid integer"),
}


@pytest.mark.parametrize(("document", "reason"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_document_is_refused_by_source_and_field_without_any_of_its_contents(document: bytes, reason: str) -> None:
    with pytest.raises(
        SettingsError, match=f"The signing keys in the store are damaged, or of a newer release. {reason}"
    ) as refused:
        parse_key_set(document, "the store")

    assert OLD[5:30] not in str(refused.value)
    assert refused.value.__context__ is None
