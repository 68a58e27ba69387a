"""The recover function, called as EventBridge calls it, on a simulated AWS."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from aiki_push.adapters.system import SystemClock
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.runs import StartRun
from aiki_push.testing import FakeClock
from tests.architecture.source_files import ROOT
from tests.integration.deployed import CLAIM_SECRET, Deployed, deployed
from tests.integration.lambda_calls import SCHEDULED_EVENT, FunctionContext

OVERDUE = RunId("01KDWZ5A0000000000000000R1")
SOON = RunId("01KDWZ5A0000000000000000R2")

pytestmark = pytest.mark.usefixtures("dynamodb")
"""One simulated AWS for all of them makes each of its clients once."""


@pytest.fixture
def aws() -> Iterator[Deployed]:
    with deployed() as made:
        yield made


def start(aws: Deployed, run_id: RunId, due_in_ms: int) -> None:
    """As a server would have done whose clock was `due_in_ms` ahead, and its hint lost."""
    clock = FakeClock(TimestampMs(SystemClock().now() + due_in_ms))
    aws.server_at(clock).call("default", StartRun(run_id=run_id, workflow="order", version="1"))


def offers(aws: Deployed, run_id: RunId) -> int:
    return int(aws.request("GET", f"/v1/runs/{run_id}").body["offer"]["attempts"])


def test_what_is_overdue_is_advanced_and_what_is_due_soon_gets_a_hint(aws: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    start(aws, OVERDUE, -60_000)
    start(aws, SOON, 40_000)

    counts = aws.recover(SCHEDULED_EVENT, FunctionContext())

    assert counts == {"advanced": 1, "failed": 0, "hinted": 1, "is_complete": True}
    assert (offers(aws, OVERDUE), offers(aws, SOON)) == (1, 0)
    assert (aws.hints(), aws.delayed_hints()) == ([], 1)
    (swept,) = [vars(record) for record in caplog.records if record.message == "swept"]
    assert {name: swept[f"aiki.{name}"] for name in counts} == counts


def test_nothing_due_is_a_complete_sweep(aws: Deployed) -> None:
    assert aws.recover(SCHEDULED_EVENT, FunctionContext()) == {"advanced": 0, "failed": 0, "hinted": 0, "is_complete": True}


def test_a_function_without_time_left_begins_nothing(aws: Deployed) -> None:
    start(aws, OVERDUE, -60_000)
    counts = aws.recover(SCHEDULED_EVENT, FunctionContext(left_ms=9_000))
    assert counts == {"advanced": 0, "failed": 0, "hinted": 0, "is_complete": False}
    assert offers(aws, OVERDUE) == 0


DELIVER_A_BAD_MESSAGE = """
from handlers.deliver import handler
from tests.integration.lambda_calls import FunctionContext, sqs_event
handler(sqs_event(['{"card": "4111 1111"}']), FunctionContext())
"""


def test_the_log_is_json_and_holds_no_input() -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AIKI_TABLE_NAME": "runs",
        "AIKI_HINT_QUEUE_URL": "http://127.0.0.1:1/hints",
        "AIKI_CLAIM_TOKEN_SECRET": CLAIM_SECRET,
        "AIKI_SIGNING_KEYS_FILE": "nowhere.json",
        "POWERTOOLS_LOGGER_LOG_EVENT": "true",
    }
    command = [sys.executable, "-c", DELIVER_A_BAD_MESSAGE]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert (done.stderr, done.returncode) == ("", 0)
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    reason = "the message is no hint that this release understands: due_at, namespace, run_id"
    assert (line["level"], line["message"]) == ("ERROR", f"message message-0 is dropped: {reason}")
    assert line["function_request_id"] == FunctionContext().aws_request_id
    assert "4111" not in done.stdout
