"""What the functions make of SQS's events."""

import json
import logging
from collections.abc import Callable
from threading import Barrier

import pytest

from aiki_push.apps.lambda_events import deliver
from aiki_push.domain.errors import InternalError, StorageUnavailable
from aiki_push.domain.values import RunId
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW
from tests.integration.lambda_calls import sqs_event

PATIENCE_S = 20


class HintTaker:
    """Does `act` with every hint, and keeps the ids of their runs."""

    def __init__(self, act: Callable[[Hint], object]) -> None:
        self._act = act
        self.taken: list[str] = []

    def handle(self, hint: Hint) -> None:
        self.taken.append(hint.run_id)
        self._act(hint)


def nothing(_: Hint) -> None:
    pass


def body(run_id: str) -> str:
    return Hint(namespace="default", run_id=RunId(run_id), due_at=FAKE_NOW).model_dump_json()


def test_every_hint_of_a_batch_is_handled() -> None:
    taker = HintTaker(nothing)
    answer = deliver(taker, sqs_event(body(f"run-{number}") for number in range(10)))

    assert answer == {"batchItemFailures": []}
    assert sorted(taker.taken) == [f"run-{number}" for number in range(10)]


def test_an_empty_batch_is_an_empty_answer() -> None:
    assert deliver(HintTaker(nothing), sqs_event([])) == {"batchItemFailures": []}


def test_hints_of_a_batch_do_not_wait_for_each_other() -> None:
    all_begun = Barrier(10, timeout=PATIENCE_S)
    taker = HintTaker(lambda _: all_begun.wait())
    assert deliver(taker, sqs_event(body(f"run-{number}") for number in range(10))) == {"batchItemFailures": []}


def test_a_message_that_is_no_hint_is_logged_and_not_delivered_again(caplog: pytest.LogCaptureFixture) -> None:
    taker = HintTaker(nothing)
    with caplog.at_level(logging.ERROR, "aiki_push.apps.lambda_events"):
        answer = deliver(taker, sqs_event(["{}", body("run-1"), '{"card": "4111 1111"}']))

    assert (answer, taker.taken) == ({"batchItemFailures": []}, ["run-1"])
    reason = "the message is no hint that this release understands: due_at, namespace, run_id"
    assert sorted(caplog.messages) == [f"message message-{number} is dropped: {reason}" for number in (0, 2)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StorageUnavailable("DynamoDB is busy"), "run run-1 is looked at again later: DynamoDB is busy"),
        (InternalError("the log has a gap"), "InternalError: the log has a gap"),
        (ZeroDivisionError(json.dumps({"card": "4111 1111"})), "ZeroDivisionError"),
    ],
)
def test_a_hint_that_could_not_be_handled_is_delivered_again_and_the_others_are_not(
    error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    def act(hint: Hint) -> None:
        if hint.run_id == "run-1":
            raise error

    taker = HintTaker(act)
    with caplog.at_level(logging.WARNING, "aiki_push.apps.lambda_events"):
        answer = deliver(taker, sqs_event(body(f"run-{number}") for number in range(3)))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    assert sorted(taker.taken) == ["run-0", "run-1", "run-2"]
    (message,) = caplog.messages
    assert message.endswith(told)
    assert json.dumps({"card": "4111 1111"}) not in message
