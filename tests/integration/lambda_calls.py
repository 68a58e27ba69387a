"""Events as AWS sends them to the functions, and the context that comes with them."""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

REGION = "eu-central-1"
ACCOUNT = "123456789012"

SCHEDULED_EVENT: dict[str, Any] = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": ACCOUNT,
    "time": "2026-01-01T00:00:00Z",
    "region": REGION,
    "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/aiki-RecoverFunctionSweep-1A2B3C"],
    "detail": {},
}
"""Amazon EventBridge, user guide, "Scheduled events"."""


class FunctionContext(LambdaContext):
    """What Lambda says of one invocation of a function that has `left_ms` to live."""

    def __init__(self, left_ms: int = 60_000) -> None:
        self._function_name = "aiki"
        self._function_version = "$LATEST"
        self._invoked_function_arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:aiki"
        self._memory_limit_in_mb = 512
        self._aws_request_id = "7e0a8c1e-3b3f-4f6e-8a59-5b5c1f0e9d10"
        self._left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]  # it is static in the stub, and not in Lambda
        return self._left_ms


def sqs_event(bodies: Iterable[str]) -> dict[str, Any]:
    """AWS Lambda, developer guide, "Using Lambda with Amazon SQS". The messages' ids are message-0, message-1 …"""
    return {"Records": [_record(number, body) for number, body in enumerate(bodies)]}


def _record(number: int, body: str) -> dict[str, Any]:
    return {
        "messageId": f"message-{number}",
        "receiptHandle": f"AQEB{number}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1767225600000",
            "SenderId": f"AROA:{number}",
            "ApproximateFirstReceiveTimestamp": "1767225600001",
        },
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(body.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:hints",
        "awsRegion": REGION,
    }


@contextmanager
def logging_as_before() -> Iterator[None]:
    """The functions configure logging for their whole process, which here has other tests too."""
    package = logging.getLogger("aiki_push")
    before, handlers = dict(vars(package)), [*package.handlers]
    try:
        yield
    finally:
        vars(package).clear()
        vars(package).update(before)
        package.handlers[:] = handlers
        package.setLevel(before["level"])
