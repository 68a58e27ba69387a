"""The built wheel, in an environment that has nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey
from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.standard_webhooks import StandardSigner
from aiki_push.adapters.system import SystemEntropy
from aiki_push.domain.push_message import PushData, encode_push
from aiki_push.domain.values import RunId
from aiki_push.ports.signing import signed_headers
from tests.architecture.source_files import ROOT
from tests.e2e.clean_environment import Environment, build_wheel, make_environment
from tests.e2e.processes import CLOCK, Processes
from tests.e2e.system import DevServer, end_of, system_in, transitions
from tests.e2e.wheel_endpoint import doubling
from tests.unit.adapters.signing.test_signing_interop import AT_S, ED25519_SIGNATURE, PUBLIC, TEXT
from tests.unit.apps.endpoint.lambda_events import http_api

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ASKED_FOR = {"pydantic", "httpx", "pynacl", "typing-extensions"}
NOT_FOR_ENDPOINTS = {
    "boto3",
    "botocore",
    "moto",
    "aws-lambda-powertools",
    "pydantic-settings",
    "starlette",
    "uvicorn",
    "typer",
    "rich",
}

VECTOR = {
    "public_key": PUBLIC,
    "headers": {"webhook-id": "msg_vector", "webhook-timestamp": str(AT_S), "webhook-signature": ED25519_SIGNATURE},
    "body": TEXT,
    "at_ms": AT_S * 1_000,
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """With the wheel and what it asks for."""
    made = make_environment(tmp_path_factory.mktemp("environment") / "venv")
    made.install(str(wheel))
    return made


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    names = {Path(name) for name in ZipFile(wheel).namelist()}
    package = {
        path.relative_to(ROOT) for path in (ROOT / "aiki_push").rglob("*") if path.suffix == ".py" or path.name == "py.typed"
    }
    assert {name for name in names if not name.parts[0].endswith(".dist-info")} == package


def test_an_endpoint_installs_three_libraries_with_what_those_need(environment: Environment) -> None:
    packages = environment.packages()
    assert packages > ASKED_FOR | {"aiki-push"}
    assert packages.isdisjoint(NOT_FOR_ENDPOINTS)
    assert len(packages) <= 16, packages


def test_a_command_whose_libraries_are_not_installed_says_what_to_install(environment: Environment) -> None:
    ended = environment.run("aiki-push", "runs", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    told = "aiki-push: typer is not installed; it comes with the extra `cli`: pip install 'aiki-push[cli]'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", told)


def event(server: DevServer, run_id: RunId, revision: int) -> Mapping[str, object]:
    """What API Gateway makes of the push that the server would send now."""
    now = CLOCK.now()
    data = PushData(
        run_id=run_id,
        workflow=doubling.name,
        version=doubling.version,
        pool=None,
        revision=revision,
        namespace="default",
        audience=None,
    )
    body = encode_push(data, now)
    keys = KeyFile(server.home / "signing-keys.json", CLOCK, SystemEntropy()).read()
    signer = StandardSigner([Ed25519SecretKey(secret) for secret in keys.secrets()])
    return http_api(signed_headers(signer, "msg_wheel", now // 1_000, body), body)


async def test_the_installed_wheel_verifies_signatures_and_executes_a_run(environment: Environment, processes: Processes) -> None:
    async with system_in(processes, idle_timeout_ms=90_000) as system:
        handle = await doubling.start(system.client, 5)
        signed = event(system.server, handle.id, 0)
        unsigned = {**signed, "headers": {"content-type": "application/json"}}
        given = {
            "server_url": system.server.url,
            "public_keys": system.server.public_keys.split(),
            "events": [unsigned, signed, signed],
            "vector": VECTOR,
        }

        script = ROOT / "tests" / "e2e" / "wheel_endpoint.py"
        ended = environment.run("python", "-I", "-W", "error", str(script), given=json.dumps(given))

        assert ended.returncode == 0, ended.stderr
        printed = json.loads(ended.stdout)
        assert printed["verified"] == AT_S
        assert [(answer["statusCode"], json.loads(answer["body"])) for answer in printed["answers"]] == [
            (401, {"code": "unauthenticated"}),
            (200, {"outcome": "completed"}),
            (200, {"outcome": "already_claimed"}),
        ], ended.stderr
        assert (await end_of(handle)).value() == 20
        assert await transitions(handle) == [(0, "queued", None), (1, "running", "wheel"), (2, "completed", "wheel")]


def test_the_command_line_needs_no_more_than_its_own_extra(wheel: Path, tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "venv")
    environment.install(f"{wheel}[cli]")

    made = environment.run("aiki-push", "keys", "init")
    ended = environment.run("aiki-push", "dev")

    assert (made.returncode, made.stdout[:5], made.stderr) == (0, "whpk_", "")
    assert (ended.returncode, ended.stdout) == (2, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith("aiki-push: ")
    assert line.endswith(" is not installed; it comes with the extra `dev`: pip install 'aiki-push[dev]'")
