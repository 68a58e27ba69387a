"""Hints as messages of an SQS queue.

Delays: `DelaySeconds` of "SendMessageBatch" in the SQS API reference, 0 to 900; at most ten messages a batch.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS, Hint

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

MAX_BATCH = 10
_NO_HINT = "run %s got no hint (%s); the sweep will find it"

_log = logging.getLogger(__name__)


class SqsWakeups:
    """Sends each hint with what is left until its time as the message's delay, rounded up to seconds.

    What is due within less than a second is sent without any: whoever handles hints waits that long, and it may be a matter of
    milliseconds.
    """

    def __init__(self, client: "SQSClient", queue_url: str, clock: Clock) -> None:
        self._client = client
        self._queue_url = queue_url
        self._clock = clock

    def send(self, *hints: Hint) -> None:
        """See Wakeups. A hint for later than MAX_HINT_DELAY_MS is not sent: the sweep sends one when its time is near."""
        now = self._clock.now()
        near = [hint for hint in hints if hint.due_at - now <= MAX_HINT_DELAY_MS]
        for start in range(0, len(near), MAX_BATCH):
            self._send(near[start : start + MAX_BATCH], now)

    def _send(self, hints: Sequence[Hint], now: TimestampMs) -> None:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(place), "MessageBody": hint.model_dump_json(), "DelaySeconds": _delay_s(hint, now)}
            for place, hint in enumerate(hints)
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        except (BotoCoreError, ClientError) as error:
            # Without its text, which may quote the address of the queue and the account.
            for hint in hints:
                _log.warning(_NO_HINT, hint.run_id, _code(error))
            return
        for failed in answer.get("Failed", []):
            _log.warning(_NO_HINT, hints[int(failed["Id"])].run_id, failed["Code"])


def _delay_s(hint: Hint, now: TimestampMs) -> int:
    left_ms = max(0, hint.due_at - now)
    return 0 if left_ms < 1_000 else -(-left_ms // 1_000)


def parse_hint(body: str) -> Hint:
    """The hint in a message's body. Raises InvalidRequest, naming each field at fault and quoting none of it."""
    try:
        return Hint.model_validate_json(body, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
    fields = sorted({str(detail["loc"][0]) if detail["loc"] else "body" for detail in details})
    raise InvalidRequest(
        f"the message is no hint that this release understands: {', '.join(fields)}",
        errors=[{"field": field, "message": "is missing or not of the documented form"} for field in fields],
    )


def _code(error: BotoCoreError | ClientError) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code"))
    return type(error).__name__
