"""What a server can be told by its environment. Every variable, its default and its meaning: `docs/settings.md`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from aiki_push.apps.environment import EnvironmentSettings, Expected, load_settings
from aiki_push.domain.limits import Limits
from aiki_push.domain.values import NAMESPACE_PATTERN, Frozen
from aiki_push.server.seals import MIN_SECRET_BYTES

CLAIM_SECRETS = Expected(f"a text of {MIN_SECRET_BYTES} bytes or more without commas or spaces, or two with a comma between them")

_DAY_MS = 86_400_000
_LIMITS = Limits()


def parse_claim_secrets(text: str) -> tuple[bytes, ...]:
    """The secret that seals and, after a comma, one that is accepted beside it, as bytes. Raises ValueError, quoting neither."""
    secrets = tuple(part.strip().encode() for part in text.split(","))
    if len(secrets) > 2 or any(len(secret) < MIN_SECRET_BYTES or len(secret.split()) > 1 for secret in secrets):
        raise ValueError(f"should be {CLAIM_SECRETS.text}")
    return secrets


def _checked_claim_secrets(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None:
        parse_claim_secrets(secret.get_secret_value())
    return secret


SecretArn = Annotated[
    str | None,
    Field(pattern=r"^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$"),
    Expected("the ARN of a secret in Secrets Manager, arn:aws:secretsmanager:…"),
]


class RecoverOverdueOutboxEntries(Frozen):
    """When a claim is taken away."""

    claim_idle_timeout_ms: int = Field(
        default=_LIMITS.claim_idle_timeout_ms,
        ge=1_000,
        le=_DAY_MS,
        description="A claim not refreshed for so long is taken away.",
    )
    max_recoveries: int = Field(
        default=_LIMITS.max_recoveries, ge=1, le=1_000, description="So many recoveries in a row without progress stall the run."
    )


class StallUndeliverableRuns(Frozen):
    """When nobody takes a run."""

    max_age_ms: int = Field(
        default=_LIMITS.max_age_ms,
        ge=1_000,
        le=365 * _DAY_MS,
        description="A queued run that nobody claimed for so long is stalled.",
    )


class RepublishBackoff(Frozen):
    """When a run is offered again."""

    base_delay_ms: int = Field(
        default=_LIMITS.offer_base_ms,
        ge=100,
        le=_DAY_MS,
        description="The shortest wait between two offers of a run; it grows with the run's age.",
    )
    max_delay_ms: int = Field(
        default=_LIMITS.offer_max_ms, ge=100, le=_DAY_MS, description="The longest wait between two offers of a run."
    )
    declined_backoff_ms: int = Field(
        default=_LIMITS.declined_ms, ge=100, le=_DAY_MS, description="The wait after every endpoint has declined a run."
    )


class PublishPendingOutboxEntries(Frozen):
    """How runs are offered."""

    lease_duration_ms: int = Field(
        default=_LIMITS.offer_lease_ms,
        ge=200,
        le=600_000,
        description="How long an offer keeps other deliverers away; longer than `AIKI_PUSH_TIMEOUT_MS`.",
    )
    republish_backoff: RepublishBackoff = RepublishBackoff()


class Daemons(Frozen):
    """What happens to runs without anyone asking."""

    recover_overdue_outbox_entries: RecoverOverdueOutboxEntries = RecoverOverdueOutboxEntries()
    stall_undeliverable_runs: StallUndeliverableRuns = StallUndeliverableRuns()
    publish_pending_outbox_entries: PublishPendingOutboxEntries = PublishPendingOutboxEntries()


class RuntimeSettings(EnvironmentSettings):
    """What every server can be told, wherever it runs."""

    namespace: Annotated[str, Field(pattern=NAMESPACE_PATTERN), Expected("1 to 64 letters, digits, `.`, `_` or `-`")] = Field(
        default="default", description="The namespace that all requests are made in."
    )
    due_shards: int = Field(
        default=1,
        ge=1,
        le=256,
        description="Partitions of the index of deadlines: one for each 1 000 writes a second. Never lower it.",
    )
    list_shards: int = Field(
        default=1,
        ge=1,
        le=32,
        description="Partitions of every list of runs: one for each 1 000 writes a second. Each page of a list asks all of them. "
        "Never lower it.",
    )
    push_timeout_ms: int = Field(default=3_000, ge=100, le=60_000, description="How long a push waits for the endpoint's answer.")
    max_wait_ms: int = Field(
        default=1_000, ge=0, le=60_000, description="The longest time that one request waits for the end of a run."
    )
    allow_loopback_http: bool = Field(
        default=False, description="Whether endpoints on the server's own machine are allowed, and without TLS."
    )
    allow_private_addresses: bool = Field(
        default=False, description="Whether pushes may go to hosts that are not on the public internet, such as those of a VPC."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="What is logged: this and what is worse."
    )
    max_log_slots: int = Field(
        default=_LIMITS.max_log_slots, ge=10, le=1_000_000, description="A run whose log would grow beyond so many slots fails."
    )
    daemons: Daemons = Daemons()

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        publishing = self.daemons.publish_pending_outbox_entries
        if publishing.lease_duration_ms <= self.push_timeout_ms:
            raise ValueError(
                "AIKI_DAEMONS__PUBLISH_PENDING_OUTBOX_ENTRIES__LEASE_DURATION_MS should be above AIKI_PUSH_TIMEOUT_MS, "
                f"which is {self.push_timeout_ms}: otherwise an offer in progress is made twice"
            )
        backoff = publishing.republish_backoff
        if backoff.max_delay_ms < backoff.base_delay_ms:
            raise ValueError(
                "AIKI_DAEMONS__PUBLISH_PENDING_OUTBOX_ENTRIES__REPUBLISH_BACKOFF__MAX_DELAY_MS should not be below "
                f"…__BASE_DELAY_MS, which is {backoff.base_delay_ms}"
            )
        return self

    def limits(self) -> Limits:
        """The numbers that decisions depend on."""
        publishing = self.daemons.publish_pending_outbox_entries
        return Limits(
            claim_idle_timeout_ms=self.daemons.recover_overdue_outbox_entries.claim_idle_timeout_ms,
            max_age_ms=self.daemons.stall_undeliverable_runs.max_age_ms,
            max_recoveries=self.daemons.recover_overdue_outbox_entries.max_recoveries,
            offer_base_ms=publishing.republish_backoff.base_delay_ms,
            offer_max_ms=publishing.republish_backoff.max_delay_ms,
            declined_ms=publishing.republish_backoff.declined_backoff_ms,
            offer_lease_ms=publishing.lease_duration_ms,
            max_log_slots=self.max_log_slots,
        )


class ServerSettings(RuntimeSettings):
    """What a server on AWS must be told beside. Secrets are not in its repr."""

    table_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{3,255}$"), Expected("the name of a DynamoDB table")] = Field(
        description="The DynamoDB table."
    )
    hint_queue_url: Annotated[str, Field(pattern=r"^https?://[^\s]+$"), Expected("the URL of an SQS queue, https://…")] = Field(
        description="The SQS queue that hints go through."
    )
    claim_token_secret: Annotated[SecretStr | None, AfterValidator(_checked_claim_secrets), CLAIM_SECRETS] = Field(
        default=None,
        description="What seals claim tokens and cursors: the same in every process of a server, and the first of two.",
    )
    claim_token_secret_arn: SecretArn = Field(
        default=None, description="The secret in Secrets Manager that holds that text instead."
    )
    signing_keys_file: Annotated[Path | None, Expected("the path of a file made by `aiki-push keys init`")] = Field(
        default=None, description="The file with the keys that sign pushes."
    )
    signing_keys_secret_arn: SecretArn = Field(
        default=None, description="The secret in Secrets Manager that holds that file's content instead."
    )

    @model_validator(mode="after")
    def _one_source_each(self) -> Self:
        if (self.claim_token_secret is None) == (self.claim_token_secret_arn is None):
            raise ValueError("exactly one of AIKI_CLAIM_TOKEN_SECRET and AIKI_CLAIM_TOKEN_SECRET_ARN should be set")
        if (self.signing_keys_file is None) == (self.signing_keys_secret_arn is None):
            raise ValueError("exactly one of AIKI_SIGNING_KEYS_FILE and AIKI_SIGNING_KEYS_SECRET_ARN should be set")
        return self


def load_server_settings(environ: Mapping[str, str]) -> ServerSettings:
    """The settings in `environ`, usually `os.environ`. Raises SettingsError, one readable line that quotes no secret."""
    return load_settings(ServerSettings, environ)
