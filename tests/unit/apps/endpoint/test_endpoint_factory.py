import asyncio
import json
import logging
import subprocess
import sys

import pytest
from pydantic import ValidationError

from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.standard_webhooks import StandardSigner
from aiki_push.apps.endpoint.endpoint import Endpoint, EndpointConfig, endpoint
from aiki_push.apps.endpoint.messages import PushAnswer
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.push_message import PushData, encode_push
from aiki_push.ports.signing import signed_headers
from aiki_push.sdk.run import Run
from aiki_push.sdk.workflow import workflow
from aiki_push.testing import FAKE_NOW, FakeClock
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.apps.endpoint.lambda_events import http_api
from tests.unit.apps.endpoint.push_examples import AUDIENCE, OTHER_SECRET, PUBLIC, push, signed

SHARED = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
OTHER_PUBLIC = "whpk_lRH3LSWG0B1kmbj+RnsJaTtyLWg8nP5frNNonhg8M+M="

COMPLETED = PushAnswer(200, {"outcome": "completed"})
UNAUTHENTICATED = PushAnswer(401, {"code": "unauthenticated"})

greetings = workflow("greeting")


@greetings.v("1.0.0")
async def greet(run: Run, name: str) -> str:
    return f"{name} {run.workflow}"


@greetings.v("2.0.0")
async def greet_again(run: Run) -> str:
    return run.id


def offer(system: LocalSystem, run_id: str, audience: str | None = None) -> bytes:
    """The body of a push of a run that was just started."""
    run = system.run(run_id)
    data = PushData(
        run_id=run.id, workflow=run.workflow, version=run.version, pool=None, revision=0, namespace=NAMESPACE, audience=audience
    )
    return encode_push(data, system.clock.now())


async def offered(system: LocalSystem, audience: str | None = None) -> bytes:
    """The same, of a new run of `greet`."""
    return offer(system, (await greet.start(system.client(), "hello")).id, audience)


def on_fake_time() -> LocalSystem:
    return LocalSystem(clock=FakeClock())


def only_run(system: LocalSystem, body: bytes) -> str:
    return system.run(json.loads(body)["data"]["run_id"]).state.status


def by_keys(
    system: LocalSystem, *public_keys: str, audience: str | None = None, config: EndpointConfig | None = None
) -> Endpoint:
    return endpoint(
        workflows=[greet, greet_again], client=system.client(), public_keys=public_keys, audience=audience, config=config
    )


async def test_a_signed_push_executes_its_run_once_and_a_replay_of_it_nothing() -> None:
    system = on_fake_time()
    body = await offered(system)
    made = by_keys(system, PUBLIC)

    assert await made.handle(push(body)) == COMPLETED
    assert only_run(system, body) == "completed"
    assert await made.handle(push(body)) == PushAnswer(200, {"outcome": "already_claimed"})


async def test_an_endpoint_trusts_each_of_its_public_keys_and_secrets_and_no_other() -> None:
    system = on_fake_time()
    shared = StandardSigner([HmacSecret(SHARED)])
    made = endpoint(workflows=[greet], client=system.client(), public_keys=[OTHER_PUBLIC, PUBLIC], hmac_secrets=[SHARED])
    for sign in (
        signed,
        lambda body: signed(body, secret=OTHER_SECRET),
        lambda body: signed_headers(shared, "m", FAKE_NOW // 1_000, body),
    ):
        body = await offered(system)
        assert await made.handle(push(body, headers=sign(body))) == COMPLETED

    body = await offered(system)
    assert await by_keys(system, OTHER_PUBLIC).handle(push(body)) == UNAUTHENTICATED
    assert only_run(system, body) == "queued"


async def test_an_endpoint_with_an_audience_takes_pushes_for_it_alone() -> None:
    system = on_fake_time()
    made = by_keys(system, PUBLIC, audience=AUDIENCE)
    assert await made.handle(push(await offered(system, AUDIENCE))) == COMPLETED
    assert await made.handle(push(await offered(system, None))) == UNAUTHENTICATED


async def test_the_tolerance_of_clocks_is_a_setting() -> None:
    system = on_fake_time()
    body = await offered(system)
    late = push(body, headers=signed(body, at_s=FAKE_NOW // 1_000 - 45))
    assert await by_keys(system, PUBLIC).handle(late) == UNAUTHENTICATED
    assert await by_keys(system, PUBLIC, config=EndpointConfig(signature_tolerance_ms=45_000)).handle(late) == COMPLETED


async def test_a_refresh_interval_that_does_not_fit_the_server_is_reported_and_the_run_handed_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    system = on_fake_time()
    body = await offered(system)
    made = by_keys(system, PUBLIC, config=EndpointConfig(claim_refresh_interval_ms=45_000))
    assert await made.handle(push(body)) == PushAnswer(500, {"code": "internal"})
    assert only_run(system, body) == "queued"
    assert "claim_refresh_interval_ms is 45000" in caplog.text


@pytest.mark.parametrize(("max_inline_wait_ms", "outcome"), [(0, "parked"), (1_000, "completed")])
async def test_how_long_a_run_is_waited_for_in_place_is_a_setting(max_inline_wait_ms: int, outcome: str) -> None:
    system = LocalSystem()
    naps = workflow("greeting")

    @naps.v("1.0.0")
    async def nap(_: Run) -> None:
        await asyncio.sleep(0.05)

    body = offer(system, (await nap.start(system.client())).id)
    config = EndpointConfig(max_inline_wait_ms=max_inline_wait_ms)
    made = endpoint(workflows=[nap], client=system.client(), insecure=True, config=config)
    assert await made.handle(push(body, headers={})) == PushAnswer(200, {"outcome": outcome})


def test_the_lambda_handler_and_the_asgi_app_are_doors_to_the_same_endpoint() -> None:
    system = on_fake_time()
    body = asyncio.run(offered(system))
    made = by_keys(system, PUBLIC)
    sent: list[object] = []

    async def call_asgi() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body}

        async def send(message: object) -> None:
            sent.append(message)

        headers = [(name.encode(), value.encode()) for name, value in signed(body).items()]
        await made.asgi({"type": "http", "method": "POST", "headers": headers}, receive, send)

    try:
        assert made.lambda_handler(http_api(signed(body), body), None)["body"] == '{"outcome":"completed"}'
        asyncio.run(call_asgi())
        assert sent[1:] == [{"type": "http.response.body", "body": b'{"outcome":"already_claimed"}'}]
    finally:
        made.close()


@pytest.mark.parametrize(("name", "expected"), [("blue", "blue"), (None, ":")])
async def test_the_executor_has_a_name_that_is_shown_with_its_runs(name: str | None, expected: str) -> None:
    shown: list[str] = []
    system = LocalSystem()
    waiting = workflow("watched")

    @waiting.v("1.0.0")
    async def watched(run: Run) -> None:
        claim = system.run(run.id).claim
        shown.append(claim.executor if claim else "")

    handle = await watched.start(system.client())
    body = offer(system, handle.id)
    made = endpoint(workflows=[watched], client=system.client(), insecure=True, name=name)
    assert await made.handle(push(body, headers={})) == COMPLETED
    [executor] = shown
    assert expected in executor
    assert 0 < len(executor) <= 128


def test_an_endpoint_without_any_key_is_not_built() -> None:
    with pytest.raises(SettingsError, match="^an endpoint needs the server's public keys .* say insecure=True$"):
        endpoint(workflows=[greet], client=LocalSystem().client())


async def test_unsigned_pushes_are_taken_only_where_that_is_said_and_then_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    system = on_fake_time()
    made = endpoint(workflows=[greet], client=system.client(), insecure=True)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["this endpoint takes unsigned pushes from anyone who reaches it"]
    assert await made.handle(push(await offered(system), headers={})) == COMPLETED


def test_keys_and_insecure_contradict_each_other() -> None:
    with pytest.raises(SettingsError, match="^an endpoint with keys checks signatures; leave out either the keys or `insecure`$"):
        endpoint(workflows=[greet], client=LocalSystem().client(), public_keys=[PUBLIC], insecure=True)


@pytest.mark.parametrize(
    ("keys", "secrets", "named"),
    [
        ([PUBLIC, "whpk_s3cret-word"], [], "Trusted key 2: "),
        ([], ["whsec_s3cret-word"], "Trusted key 1: "),
        (["s3cret-word"], [], "Trusted key 1: "),
        ([""], [], "Trusted key 1: "),
        (
            ["whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
            [],
            "Trusted key 1: A secret signing key belongs to the server alone",
        ),
    ],
)
def test_a_bad_key_is_named_by_its_place_and_not_shown(keys: list[str], secrets: list[str], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        endpoint(workflows=[greet], client=LocalSystem().client(), public_keys=keys, hmac_secrets=secrets)
    assert str(refused.value).startswith(named)
    assert "s3cret" not in str(refused.value)
    assert "AAECAwQF" not in str(refused.value)


def test_an_endpoint_needs_workflows_and_one_handler_for_each_version() -> None:
    client = LocalSystem().client()
    with pytest.raises(SettingsError, match="at least one workflow version"):
        endpoint(workflows=[], client=client, public_keys=[PUBLIC])
    with pytest.raises(SettingsError, match="greeting 1.0.0 is registered twice"):
        endpoint(workflows=[greet, greet_again, greet], client=client, public_keys=[PUBLIC])


@pytest.mark.parametrize(
    "settings",
    [
        {"signature_tolerance_ms": 0},
        {"signature_tolerance_ms": "30000"},
        {"signature_tolerance_ms": True},
        {"max_inline_wait_ms": -1},
        {"claim_refresh_interval_ms": 0},
        {"claim_refresh_interval_ms": 1.5},
        {"claim_refresh_interval": 1},
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as refused:
        EndpointConfig.model_validate(settings)
    assert [error["loc"] for error in refused.value.errors()] == [tuple(settings)]


def test_the_defaults_are_those_of_the_documents_and_cannot_be_changed_later() -> None:
    config = EndpointConfig()
    assert config.model_dump() == {
        "signature_tolerance_ms": 30_000,
        "max_inline_wait_ms": 1_000,
        "claim_refresh_interval_ms": 30_000,
        "deadline_margin_ms": 5_000,
    }
    with pytest.raises(ValidationError):
        config.max_inline_wait_ms = 1  # type: ignore[misc]  # that is what must fail


def test_no_key_is_in_the_repr_of_an_endpoint() -> None:
    made = endpoint(workflows=[greet], client=LocalSystem().client(), hmac_secrets=[SHARED])
    assert "AAECAwQF" not in f"{made!r} {vars(made)!r}"


def test_an_endpoint_loads_no_http_client_server_or_aws_library() -> None:
    script = (
        "import sys; import aiki_push.apps.endpoint.endpoint; "
        "print(sorted({'httpx', 'boto3', 'botocore', 'starlette', 'uvicorn', 'aws_lambda_powertools'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "[]\n"
