"""The one place where settings become a running server. Nothing is made before it is needed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, TypeVar

from aws_lambda_powertools.utilities.typing import LambdaContext

from aiki_push.adapters.delivery.http_push import HttpPushPublisher
from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import KeySet, parse_key_set
from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.lambda_api import lambda_api
from aiki_push.adapters.transport.wire import Wire
from aiki_push.adapters.wakeups.sqs import SqsWakeups
from aiki_push.apps.aws import AwsClients, aws_clients, read_secret
from aiki_push.apps.environment import fail_readably
from aiki_push.apps.lambda_events import Event, deliver, lambda_logger, recover
from aiki_push.apps.settings import RuntimeSettings, ServerSettings, load_server_settings, parse_claim_secrets
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import DurationMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.payloads import PayloadStore
from aiki_push.ports.signing import KeyRing
from aiki_push.ports.wakeups import Wakeups
from aiki_push.server.attention.advance import Attention
from aiki_push.server.context import ServerContext
from aiki_push.server.seals import Seals
from aiki_push.server.service import Server

Handler: TypeAlias = Callable[[Event, LambdaContext], Any]

MadeT = TypeVar("MadeT")


@dataclass(frozen=True, slots=True)
class Ports:
    """What a server is made of beside its settings. Payloads lie in the table where no store is given for them."""

    table: Table
    wakeups: Wakeups
    keys: KeyRing
    claim_secrets: tuple[bytes, ...] = field(repr=False)
    payloads: PayloadStore | None = None
    clock: Clock = field(default_factory=SystemClock)
    entropy: Entropy = field(default_factory=SystemEntropy)


def build_context(settings: RuntimeSettings, ports: Ports) -> ServerContext:
    """The server's ports and limits, ready for use."""
    return ServerContext(
        store=SingleTableStore(
            ports.table, ports.clock, ports.entropy, due_shards=settings.due_shards, list_shards=settings.list_shards
        ),
        payloads=ports.payloads or TablePayloadStore(ports.table, ports.clock, ports.entropy),
        clock=ports.clock,
        entropy=ports.entropy,
        wakeups=ports.wakeups,
        seals=Seals(ports.claim_secrets),
        keys=ports.keys,
        limits=settings.limits(),
        max_wait_ms=DurationMs(settings.max_wait_ms),
        allow_loopback_http=settings.allow_loopback_http,
    )


def build_wire(settings: RuntimeSettings, context: ServerContext) -> Wire:
    """The API, for a door to put in front of it."""
    return Wire(Server(context), namespace=settings.namespace, entropy=context.entropy)


def build_publisher(settings: RuntimeSettings, context: ServerContext) -> HttpPushPublisher:
    """Pushes to the endpoints that are registered; whoever has it built closes it."""
    return HttpPushPublisher(
        context.store.endpoints,
        context.keys,
        context.clock,
        push_timeout_ms=settings.push_timeout_ms,
        allow_private_addresses=settings.allow_private_addresses or settings.allow_loopback_http,
    )


def build_attention(settings: RuntimeSettings, context: ServerContext) -> Attention:
    """What hints and sweeps are given to."""
    return Attention(context, build_publisher(settings, context))


def aws_context(settings: ServerSettings, clients: AwsClients) -> ServerContext:
    """A server on DynamoDB and SQS. Reads the secrets. Raises SettingsError: one of them is missing or wrong."""
    clock, entropy = SystemClock(), SystemEntropy()
    ports = Ports(
        table=DynamoDbTable(clients.dynamodb, settings.table_name),
        wakeups=SqsWakeups(clients.sqs, settings.hint_queue_url, clock),
        keys=CachedKeyRing(_key_reader(settings, clients, clock, entropy), clock),
        claim_secrets=_claim_secrets(settings, clients),
        clock=clock,
        entropy=entropy,
    )
    return build_context(settings, ports)


def api_handler(environ: Mapping[str, str] = os.environ, clients: Callable[[], AwsClients] = aws_clients) -> Handler:
    """Answers API Gateway's events. Ends the process readably where settings are wrong."""

    def build(settings: ServerSettings) -> Handler:
        return lambda_api(build_wire(settings, aws_context(settings, clients())))

    return _handler(environ, build)


def deliver_handler(environ: Mapping[str, str] = os.environ, clients: Callable[[], AwsClients] = aws_clients) -> Handler:
    """Answers SQS's events. Ends the process readably where settings are wrong."""

    def build(settings: ServerSettings) -> Handler:
        attention = build_attention(settings, aws_context(settings, clients()))
        return lambda event, _context: deliver(attention, event)

    return _handler(environ, build)


def recover_handler(environ: Mapping[str, str] = os.environ, clients: Callable[[], AwsClients] = aws_clients) -> Handler:
    """Answers EventBridge's events. Ends the process readably where settings are wrong."""

    def build(settings: ServerSettings) -> Handler:
        context = aws_context(settings, clients())
        attention = build_attention(settings, context)
        return lambda _event, lambda_context: recover(context, attention, lambda_context.get_remaining_time_in_millis())

    return _handler(environ, build)


def _handler(environ: Mapping[str, str], build: Callable[[ServerSettings], Handler]) -> Handler:
    """Checks the settings now, so that a wrong deployment shows at once, and builds the rest at the first event."""
    with fail_readably():
        settings = load_server_settings(environ)

    @cache
    def built() -> Handler:
        with fail_readably():
            return build(settings)

    def handle(event: Event, context: LambdaContext) -> Any:
        return built()(event, context)

    # Said aloud, because an environment variable of powertools could otherwise have the events logged.
    return lambda_logger(settings.log_level).inject_lambda_context(handle, log_event=False, clear_state=True)


def _key_reader(settings: ServerSettings, clients: AwsClients, clock: Clock, entropy: Entropy) -> Callable[[], KeySet]:
    arn = settings.signing_keys_secret_arn
    if arn is not None:
        source = "AIKI_SIGNING_KEYS_SECRET_ARN"
        return lambda: parse_key_set(read_secret(clients.secrets, arn, source).encode(), f"the secret of {source}")
    assert settings.signing_keys_file is not None, "one of the two is set, or the settings would not have been accepted"
    return KeyFile(settings.signing_keys_file, clock, entropy).read


def _claim_secrets(settings: ServerSettings, clients: AwsClients) -> tuple[bytes, ...]:
    if settings.claim_token_secret is not None:
        return parse_claim_secrets(settings.claim_token_secret.get_secret_value())
    assert settings.claim_token_secret_arn is not None, "one of the two is set, or the settings would not have been accepted"
    source = "AIKI_CLAIM_TOKEN_SECRET_ARN"
    try:
        return parse_claim_secrets(read_secret(clients.secrets, settings.claim_token_secret_arn, source))
    except ValueError as error:
        raise SettingsError(f"the secret that {source} names {error}") from None
