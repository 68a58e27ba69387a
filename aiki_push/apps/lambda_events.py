"""What the events mean that AWS sends to the Lambda functions beside API requests."""

import logging
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Protocol, TypeAlias

from aws_lambda_powertools import Logger

from aiki_push.adapters.wakeups.sqs import parse_hint
from aiki_push.domain.errors import AikiError, InvalidRequest, StorageUnavailable
from aiki_push.ports.wakeups import Hint
from aiki_push.server.attention.advance import Attention
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.server.context import ServerContext

Event: TypeAlias = Mapping[str, Any]
"""As AWS documents it in the developer guide of Lambda."""

SWEEP_MARGIN_MS = 10_000
"""What a sweep leaves of a function's time, for the run that it is working on when its budget ends."""

_log = logging.getLogger(__name__)


class HandlesHints(Protocol):
    """The part of Attention that hints need."""

    def handle(self, hint: Hint) -> None:
        """As Attention.handle."""
        ...


def lambda_logger(level: str) -> Logger:
    """A logger that writes JSON lines for every module of this package; made again, it is the same one."""
    # Named like the package, so that the modules' own loggers are its children.
    return Logger(service="aiki_push", level=level)


def deliver(attention: HandlesHints, event: Event) -> dict[str, list[dict[str, str]]]:
    """Handle the hints in an SQS event, side by side, since one may have to wait for an endpoint.

    The answer lists the messages that SQS should deliver again ("Implementing partial batch responses"). A message that is no
    hint is logged and dropped: it would never become one.
    """
    records: list[Event] = event["Records"]
    with ThreadPoolExecutor(max(1, len(records)), thread_name_prefix="aiki-hint") as threads:
        settled = list(threads.map(lambda record: _is_settled(attention, record), records))
    failed = [record for record, is_settled in zip(records, settled, strict=True) if not is_settled]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def recover(context: ServerContext, attention: Attention, left_ms: int) -> dict[str, int | bool]:
    """Sweep for as long as a function with `left_ms` to live can; the answer and a log line tell what was done."""
    counts = asdict(sweep(context, attention, SweepPlan(budget_ms=max(0, left_ms - SWEEP_MARGIN_MS))))
    _log.info("swept", extra={f"aiki.{name}": count for name, count in counts.items()})
    return counts


def _is_settled(attention: HandlesHints, record: Event) -> bool:
    try:
        hint = parse_hint(record["body"])
    except InvalidRequest as error:
        _log.error("message %s is dropped: %s", record["messageId"], error)
        return True
    try:
        attention.handle(hint)
    except StorageUnavailable as error:
        _log.warning("run %s is looked at again later: %s", hint.run_id, error, extra={"aiki.run_id": hint.run_id})
        return False
    except Exception as error:  # noqa: BLE001 - one run must not fail the others of the batch
        _log.error("the hint for run %s failed\n%s", hint.run_id, _anatomy(error), extra={"aiki.run_id": hint.run_id})
        return False
    return True


def _anatomy(error: Exception) -> str:
    """Where and what. Only our own errors speak: the message of another may quote what a user sent."""
    message = f": {error}" if isinstance(error, AikiError) else ""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__qualname__}{message}"
