"""A server's settings: what they become, and the one line about what is wrong."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from aiki_push.apps.environment import settings_of
from aiki_push.apps.settings import (
    Daemons,
    PublishPendingOutboxEntries,
    RecoverOverdueOutboxEntries,
    RepublishBackoff,
    ServerSettings,
    StallUndeliverableRuns,
    load_server_settings,
    parse_claim_secrets,
)
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.limits import Limits

SECRET = "an-old-secret-that-nobody-may-see"
NEW_SECRET = "a-new-secret-that-nobody-may-see-"
ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:aiki-AbCdEf"
RECOVER = "AIKI_DAEMONS__RECOVER_OVERDUE_OUTBOX_ENTRIES__"
STALL = "AIKI_DAEMONS__STALL_UNDELIVERABLE_RUNS__"
PUBLISH = "AIKI_DAEMONS__PUBLISH_PENDING_OUTBOX_ENTRIES__"
BACKOFF = f"{PUBLISH}REPUBLISH_BACKOFF__"

LEAST = {
    "AIKI_TABLE_NAME": "runs",
    "AIKI_HINT_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/hints",
    "AIKI_CLAIM_TOKEN_SECRET": SECRET,
    "AIKI_SIGNING_KEYS_FILE": "keys.json",
}

MOST = {
    "AIKI_TABLE_NAME": "runs",
    "AIKI_HINT_QUEUE_URL": "http://127.0.0.1:4100/hints",
    "AIKI_CLAIM_TOKEN_SECRET_ARN": ARN,
    "AIKI_SIGNING_KEYS_SECRET_ARN": ARN,
    "AIKI_NAMESPACE": "team-1",
    "AIKI_DUE_SHARDS": "8",
    "AIKI_LIST_SHARDS": "4",
    "AIKI_PUSH_TIMEOUT_MS": "5000",
    "AIKI_MAX_WAIT_MS": "20000",
    "AIKI_ALLOW_LOOPBACK_HTTP": "true",
    "AIKI_ALLOW_PRIVATE_ADDRESSES": "1",
    "AIKI_LOG_LEVEL": "DEBUG",
    "AIKI_MAX_LOG_SLOTS": "100",
    f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS": "3000",
    f"{RECOVER}MAX_RECOVERIES": "3",
    f"{STALL}MAX_AGE_MS": "4000",
    f"{PUBLISH}LEASE_DURATION_MS": "6000",
    f"{BACKOFF}BASE_DELAY_MS": "100",
    f"{BACKOFF}MAX_DELAY_MS": "200",
    f"{BACKOFF}DECLINED_BACKOFF_MS": "300",
}


def fault(environ: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load_server_settings(environ)
    return str(caught.value)


def test_what_is_not_set_has_the_documented_default() -> None:
    settings = load_server_settings({**LEAST, "PATH": "/bin", "AWS_REGION": "eu-central-1"})

    assert settings == ServerSettings(
        table_name="runs",
        hint_queue_url="https://sqs.eu-central-1.amazonaws.com/123456789012/hints",
        claim_token_secret=SecretStr(SECRET),
        claim_token_secret_arn=None,
        signing_keys_file=Path("keys.json"),
        signing_keys_secret_arn=None,
        namespace="default",
        due_shards=1,
        list_shards=1,
        push_timeout_ms=3_000,
        max_wait_ms=1_000,
        allow_loopback_http=False,
        allow_private_addresses=False,
        log_level="INFO",
        max_log_slots=50_000,
    )
    assert settings.limits() == Limits()


def test_every_setting_is_taken_from_its_variable() -> None:
    settings = load_server_settings(MOST)

    assert settings == ServerSettings(
        table_name="runs",
        hint_queue_url="http://127.0.0.1:4100/hints",
        claim_token_secret_arn=ARN,
        signing_keys_secret_arn=ARN,
        namespace="team-1",
        due_shards=8,
        list_shards=4,
        push_timeout_ms=5_000,
        max_wait_ms=20_000,
        allow_loopback_http=True,
        allow_private_addresses=True,
        log_level="DEBUG",
        max_log_slots=100,
        daemons=Daemons(
            recover_overdue_outbox_entries=RecoverOverdueOutboxEntries(claim_idle_timeout_ms=3_000, max_recoveries=3),
            stall_undeliverable_runs=StallUndeliverableRuns(max_age_ms=4_000),
            publish_pending_outbox_entries=PublishPendingOutboxEntries(
                lease_duration_ms=6_000,
                republish_backoff=RepublishBackoff(base_delay_ms=100, max_delay_ms=200, declined_backoff_ms=300),
            ),
        ),
    )
    assert MOST.keys() | LEAST.keys() == settings_of(ServerSettings).keys()


def test_every_limit_is_a_setting() -> None:
    assert load_server_settings(MOST).limits() == Limits(
        claim_idle_timeout_ms=3_000,
        max_age_ms=4_000,
        max_recoveries=3,
        offer_base_ms=100,
        offer_max_ms=200,
        declined_ms=300,
        offer_lease_ms=6_000,
        max_log_slots=100,
    )


WRONG_ONES = [
    ("AIKI_TABLE_NAME", "no", "is not valid and should be the name of a DynamoDB table"),
    ("AIKI_TABLE_NAME", "", "is empty and should be the name of a DynamoDB table"),
    ("AIKI_HINT_QUEUE_URL", "hints", "is not valid and should be the URL of an SQS queue, https://…"),
    ("AIKI_NAMESPACE", "a#b", "is not valid and should be 1 to 64 letters, digits, `.`, `_` or `-`"),
    ("AIKI_NAMESPACE", "default\n", "is not valid and should be 1 to 64 letters, digits, `.`, `_` or `-`"),
    ("AIKI_DUE_SHARDS", "0", "is '0' and should be a whole number from 1 to 256"),
    ("AIKI_DUE_SHARDS", "257", "is '257' and should be a whole number from 1 to 256"),
    ("AIKI_DUE_SHARDS", "1.5", "is '1.5' and should be a whole number from 1 to 256"),
    ("AIKI_DUE_SHARDS", "", "is empty and should be a whole number from 1 to 256"),
    ("AIKI_DUE_SHARDS", "ei\nght", r"is 'ei\nght' and should be a whole number from 1 to 256"),
    ("AIKI_DUE_SHARDS", "9" * 61, f"is '{'9' * 60}…' and should be a whole number from 1 to 256"),
    ("AIKI_PUSH_TIMEOUT_MS", "3s", "is '3s' and should be a whole number from 100 to 60000"),
    ("AIKI_MAX_WAIT_MS", "-1", "is '-1' and should be a whole number from 0 to 60000"),
    ("AIKI_ALLOW_LOOPBACK_HTTP", "maybe", "is 'maybe' and should be true or false"),
    ("AIKI_ALLOW_PRIVATE_ADDRESSES", "2", "is '2' and should be true or false"),
    ("AIKI_LOG_LEVEL", "loud", "is 'loud' and should be one of DEBUG, INFO, WARNING, ERROR"),
    ("AIKI_MAX_LOG_SLOTS", "1", "is '1' and should be a whole number from 10 to 1000000"),
    (f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS", "90s", "is '90s' and should be a whole number from 1000 to 86400000"),
    (f"{RECOVER}MAX_RECOVERIES", "0", "is '0' and should be a whole number from 1 to 1000"),
    (f"{STALL}MAX_AGE_MS", "1", "is '1' and should be a whole number from 1000 to 31536000000"),
    (f"{PUBLISH}LEASE_DURATION_MS", "1", "is '1' and should be a whole number from 200 to 600000"),
    (f"{BACKOFF}BASE_DELAY_MS", "0", "is '0' and should be a whole number from 100 to 86400000"),
    (f"{BACKOFF}MAX_DELAY_MS", "0", "is '0' and should be a whole number from 100 to 86400000"),
    (f"{BACKOFF}DECLINED_BACKOFF_MS", "0", "is '0' and should be a whole number from 100 to 86400000"),
]

SECRETS_EXPECTED = "should be a text of 32 bytes or more without commas or spaces, or two with a comma between them"

WRONG_SECRETS = [
    ("AIKI_CLAIM_TOKEN_SECRET", "short-secret", f"is not valid and {SECRETS_EXPECTED}"),
    ("AIKI_CLAIM_TOKEN_SECRET", f"{SECRET},short-secret", f"is not valid and {SECRETS_EXPECTED}"),
    ("AIKI_CLAIM_TOKEN_SECRET", f"{SECRET},", f"is not valid and {SECRETS_EXPECTED}"),
    ("AIKI_CLAIM_TOKEN_SECRET", f"{SECRET},{SECRET},{SECRET}", f"is not valid and {SECRETS_EXPECTED}"),
    ("AIKI_CLAIM_TOKEN_SECRET", f"{SECRET} {SECRET}", f"is not valid and {SECRETS_EXPECTED}"),
    ("AIKI_CLAIM_TOKEN_SECRET", "", f"is empty and {SECRETS_EXPECTED}"),
    (
        "AIKI_CLAIM_TOKEN_SECRET_ARN",
        SECRET,
        "is not valid and should be the ARN of a secret in Secrets Manager, arn:aws:secretsmanager:…",
    ),
    (
        "AIKI_SIGNING_KEYS_SECRET_ARN",
        SECRET,
        "is not valid and should be the ARN of a secret in Secrets Manager, arn:aws:secretsmanager:…",
    ),
]


@pytest.mark.parametrize(("name", "value", "expected"), [*WRONG_ONES, *WRONG_SECRETS])
def test_a_wrong_setting_is_one_line_that_names_it_and_what_would_be_right(name: str, value: str, expected: str) -> None:
    message = fault({**LEAST, name: value})
    assert message == f"{name} {expected}"
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(("name", "value", "expected"), WRONG_SECRETS)
def test_a_wrong_secret_is_not_shown(name: str, value: str, expected: str) -> None:
    assert "secret-" not in fault({**LEAST, name: value}).removeprefix(f"{name} {expected}")


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert fault({"AIKI_DUE_SHARDS": "0", "AIKI_CLAIM_TOKEN_SECRET": SECRET, "AIKI_SIGNING_KEY_FILE": "x"}) == (
        "AIKI_SIGNING_KEY_FILE is not a setting; the nearest is AIKI_SIGNING_KEYS_FILE; "
        "AIKI_DUE_SHARDS is '0' and should be a whole number from 1 to 256; "
        "AIKI_TABLE_NAME is missing and should be the name of a DynamoDB table; "
        "AIKI_HINT_QUEUE_URL is missing and should be the URL of an SQS queue, https://…"
    )


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("AIKI_NAMESPCE", "AIKI_NAMESPACE"),
        ("aiki_table_name", "AIKI_TABLE_NAME"),
        ("AIKI_CLAIM_IDLE_TIMEOUT_MS", f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS"),
        (f"{RECOVER}CLAIM_IDLE_TIMEOUT", f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS"),
        (f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS__X", f"{RECOVER}CLAIM_IDLE_TIMEOUT_MS"),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest_known_one(name: str, nearest: str) -> None:
    assert fault({**LEAST, name: SECRET}) == f"{name} is not a setting; the nearest is {nearest}"


def test_a_group_of_settings_cannot_be_set_as_one_text() -> None:
    assert fault({**LEAST, "AIKI_DAEMONS": '{"stall_undeliverable_runs": {"max_age_ms": 1}}'}).startswith(
        "AIKI_DAEMONS is not a setting; "
    )


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {"AIKI_CLAIM_TOKEN_SECRET_ARN": ARN},
            "exactly one of AIKI_CLAIM_TOKEN_SECRET and AIKI_CLAIM_TOKEN_SECRET_ARN should be set",
        ),
        (
            {"AIKI_SIGNING_KEYS_SECRET_ARN": ARN},
            "exactly one of AIKI_SIGNING_KEYS_FILE and AIKI_SIGNING_KEYS_SECRET_ARN should be set",
        ),
        (
            {"AIKI_PUSH_TIMEOUT_MS": "10000"},
            f"{PUBLISH}LEASE_DURATION_MS should be above AIKI_PUSH_TIMEOUT_MS, which is 10000: "
            "otherwise an offer in progress is made twice",
        ),
        (
            {f"{BACKOFF}MAX_DELAY_MS": "4999"},
            f"{BACKOFF}MAX_DELAY_MS should not be below …__BASE_DELAY_MS, which is 5000",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_named(environ: Mapping[str, str], expected: str) -> None:
    assert fault({**LEAST, **environ}) == expected


@pytest.mark.parametrize("missing", ["AIKI_CLAIM_TOKEN_SECRET", "AIKI_SIGNING_KEYS_FILE"])
def test_a_server_without_its_secrets_is_refused(missing: str) -> None:
    environ = {name: value for name, value in LEAST.items() if name != missing}
    assert missing in fault(environ)
    assert fault(environ).startswith("exactly one of ")


def test_settings_are_frozen_and_hide_their_secret() -> None:
    settings = load_server_settings(LEAST)
    with pytest.raises(ValidationError):
        settings.table_name = "other"  # type: ignore[misc]  # the point of the test
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"


def test_settings_are_taken_from_what_is_given_and_not_from_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIKI_NAMESPACE", "from-the-process")
    assert load_server_settings(LEAST).namespace == "default"
    with pytest.raises(ValidationError, match="table_name"):
        ServerSettings.model_validate({})


def test_claim_secrets_are_the_bytes_of_their_text_in_its_order() -> None:
    assert parse_claim_secrets(SECRET) == (SECRET.encode(),)
    assert parse_claim_secrets(f" {NEW_SECRET} , {SECRET}\n") == (NEW_SECRET.encode(), SECRET.encode())
    assert parse_claim_secrets("é" * 16) == (("é" * 16).encode(),)
