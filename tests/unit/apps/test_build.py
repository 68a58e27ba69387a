"""From settings to a server."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from aiki_push.adapters.payloads.folder import FolderPayloadStore
from aiki_push.adapters.signing.ed25519 import generate_signing_key
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.adapters.wakeups.memory import MemoryWakeups
from aiki_push.apps.aws import AwsClients
from aiki_push.apps.build import Ports, api_handler, aws_context, build_attention, build_context, build_wire
from aiki_push.apps.settings import Daemons, RecoverOverdueOutboxEntries, RuntimeSettings, ServerSettings, load_server_settings
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import RunId
from aiki_push.ports.api.runs import StartRun
from aiki_push.ports.store import Listing
from aiki_push.ports.wakeups import Hint
from aiki_push.server.seals import Seals
from aiki_push.server.service import Server
from aiki_push.testing import FAKE_NOW, FakeClock, SequentialEntropy
from tests.integration.lambda_calls import FunctionContext, logging_as_before
from tests.unit.adapters.transport.lambda_events import http_api_event

RUN_ID = RunId("01KDWZ5A0000000000000000R1")
SECRET = b"a-claim-secret-of-more-than-thirty-two-bytes"
OLD_SECRET = b"an-older-secret-of-more-than-thirty-two-bytes"
KEYS = KeySet(active=ActiveKey(secret=generate_signing_key(SequentialEntropy()), created_at=FAKE_NOW))
ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:aiki-"


@pytest.fixture
def ports() -> Ports:
    clock = FakeClock()
    return Ports(
        table=MemoryTable(),
        wakeups=MemoryWakeups(clock),
        keys=CachedKeyRing(lambda: KEYS, clock),
        claim_secrets=(SECRET,),
        clock=clock,
        entropy=SequentialEntropy(),
    )


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with logging_as_before():
        yield


class Secrets:
    """A SecretsClient over a dictionary."""

    def __init__(self, **texts: str) -> None:
        self._texts = texts

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's own spelling
        return {"SecretString": self._texts[SecretId.removeprefix(ARN)]}


def aws(**texts: str) -> AwsClients:
    """Clients for what never calls DynamoDB or SQS."""
    nobody = cast("Any", None)
    return AwsClients(dynamodb=nobody, sqs=nobody, secrets=Secrets(**texts))


AWS_ENVIRONMENT = {
    "AIKI_TABLE_NAME": "runs",
    "AIKI_HINT_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/hints",
    "AIKI_CLAIM_TOKEN_SECRET_ARN": f"{ARN}claims",
    "AIKI_SIGNING_KEYS_SECRET_ARN": f"{ARN}keys",
}


def aws_settings(**changes: str) -> ServerSettings:
    return load_server_settings(AWS_ENVIRONMENT | changes)


def test_the_server_has_the_ports_and_the_limits_of_the_settings(ports: Ports) -> None:
    daemons = Daemons(recover_overdue_outbox_entries=RecoverOverdueOutboxEntries(claim_idle_timeout_ms=3_000))
    settings = RuntimeSettings(max_wait_ms=5, allow_loopback_http=True, daemons=daemons)

    context = build_context(settings, ports)

    assert (context.wakeups, context.keys, context.clock, context.entropy) == (
        ports.wakeups,
        ports.keys,
        ports.clock,
        ports.entropy,
    )
    assert (context.limits, context.max_wait_ms, context.allow_loopback_http) == (settings.limits(), 5, True)
    assert isinstance(context.store, SingleTableStore)
    assert isinstance(context.payloads, TablePayloadStore)
    assert context.seals.open("p", "s", Seals([SECRET]).seal("p", "s", 1)) == 1


def test_payloads_lie_where_the_ports_say(ports: Ports, tmp_path: Path) -> None:
    folder = FolderPayloadStore(tmp_path)
    assert build_context(RuntimeSettings(), replace(ports, payloads=folder)).payloads is folder


def test_deadlines_are_spread_over_the_shards_of_the_settings(ports: Ports) -> None:
    start = StartRun(run_id=RUN_ID, workflow="order", version="1")
    Server(build_context(RuntimeSettings(due_shards=256), ports)).call("default", start)

    seen = [
        shards
        for shards in (1, 256)
        if build_context(RuntimeSettings(due_shards=shards), ports).store.due_runs(until=FAKE_NOW, limit=9)
    ]
    assert seen == [256]


def test_lists_are_spread_over_the_shards_of_the_settings(ports: Ports) -> None:
    start = StartRun(run_id=RUN_ID, workflow="order", version="1")
    Server(build_context(RuntimeSettings(list_shards=32), ports)).call("default", start)

    stores = {shards: build_context(RuntimeSettings(list_shards=shards), ports).store for shards in (1, 32)}
    listed = {
        shards: len(store.newest_runs(listing, before=None, limit=9))
        for shards, store in stores.items()
        for listing in (Listing("default"), Listing("default", workflow="order"))
    }
    assert listed == {1: 0, 32: 1}


def test_the_api_works_within_the_namespace_of_the_settings(ports: Ports) -> None:
    settings = RuntimeSettings(namespace="team")
    context = build_context(settings, ports)
    body = b'{"run_id": "%s", "workflow": "order", "version": "1"}' % RUN_ID.encode()
    assert build_wire(settings, context).handle(HttpRequest("POST", "/v1/runs", body=body)).status == 200
    assert context.store.load("team", RUN_ID).workflow == "order"


def test_attention_offers_a_run_to_the_endpoints_of_the_store(ports: Ports) -> None:
    settings = RuntimeSettings()
    context = build_context(settings, ports)
    Server(context).call("default", StartRun(run_id=RUN_ID, workflow="order", version="1"))

    build_attention(settings, context).handle(Hint(namespace="default", run_id=RUN_ID, due_at=FAKE_NOW))

    offer = context.store.load("default", RUN_ID).offer
    assert (offer.attempts, offer.last_error) == (1, "no endpoint is registered for the run's workflow, version and pool")


def test_ports_hide_the_claim_secret(ports: Ports) -> None:
    assert SECRET.decode() not in repr(ports)


def test_a_server_on_aws_reads_its_secrets() -> None:
    context = aws_context(aws_settings(), aws(claims=f"{SECRET.decode()},{OLD_SECRET.decode()}\n", keys=KEYS.encoded().decode()))

    assert context.keys.public_keys() == KEYS.public_keys()
    assert context.seals.seal("p", "s", 1) == Seals([SECRET]).seal("p", "s", 1)
    assert context.seals.open("p", "s", Seals([OLD_SECRET]).seal("p", "s", 1)) == 1


def test_secrets_may_stand_in_the_environment_and_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(KEYS.encoded())
    settings = load_server_settings(
        {
            "AIKI_TABLE_NAME": "runs",
            "AIKI_HINT_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/hints",
            "AIKI_CLAIM_TOKEN_SECRET": SECRET.decode(),
            "AIKI_SIGNING_KEYS_FILE": str(path),
        }
    )
    context = aws_context(settings, aws())

    assert context.keys.public_keys() == KEYS.public_keys()
    assert context.seals.seal("p", "s", 1) == Seals([SECRET]).seal("p", "s", 1)


def test_a_secret_with_damaged_keys_is_named_by_its_setting() -> None:
    context = aws_context(aws_settings(), aws(claims=SECRET.decode(), keys="{}"))
    with pytest.raises(
        SettingsError, match=r"in the secret of AIKI_SIGNING_KEYS_SECRET_ARN are damaged.* active: Field required"
    ):
        context.keys.public_keys()


def test_a_handler_with_a_wrong_secret_ends_with_one_line_at_its_first_event(capsys: pytest.CaptureFixture[str]) -> None:
    handler = api_handler(AWS_ENVIRONMENT, lambda: aws(claims="short-secret"))
    with pytest.raises(SystemExit) as ended:
        handler(http_api_event("GET", "/health"), FunctionContext())

    assert ended.value.code == 2
    expected = "should be a text of 32 bytes or more without commas or spaces, or two with a comma between them"
    assert capsys.readouterr().err == f"aiki-push: the secret that AIKI_CLAIM_TOKEN_SECRET_ARN names {expected}\n"


def test_a_handler_is_built_once_and_at_its_first_event() -> None:
    made: list[AwsClients] = []

    def clients() -> AwsClients:
        made.append(aws(claims=SECRET.decode()))
        return made[-1]

    handler = api_handler(AWS_ENVIRONMENT, clients)
    assert made == []
    for _ in range(2):
        assert handler(http_api_event("GET", "/health"), FunctionContext())["statusCode"] == 200
    assert len(made) == 1
