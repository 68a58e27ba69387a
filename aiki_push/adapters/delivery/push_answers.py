"""What the answer to a push means for the offer. Statuses and `Retry-After` are those of RFC 9110."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from aiki_push.domain.values import TimestampMs
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published, ReadyRun

BACKOFF_MIN_MS, BACKOFF_MAX_MS = 5_000, 300_000
"""Without a usable `Retry-After` a run is held back for as long as it has been ready, within these bounds."""

DEFERRAL_MIN_MS, DEFERRAL_MAX_MS = 1_000, 300_000
"""What an endpoint asks for is kept within these bounds: it can neither ask for a storm of pushes nor put a run off for days."""

GATEWAY_TIMEOUT_MS = 28_000
"""API Gateway ends a request after 29 to 30 s with an error of its own, while the Lambda behind it runs on."""

KEY_PROBLEMS = (401, 403)
"""The endpoint, or a gateway before it, does not trust the signature. Nothing but new settings will help."""


def read_answer(status: int, retry_after: str | None, run: ReadyRun, now: TimestampMs, elapsed_ms: float) -> Outcome:
    """The outcome of a push that was answered by `status` after `elapsed_ms`; a failure says so without naming the endpoint."""
    if 200 <= status < 300:
        return Published()
    if status >= 500 and elapsed_ms >= GATEWAY_TIMEOUT_MS:
        return Published()
    if status == 404:
        return Declined()
    if status in (429, 503):
        return Deferred(TimestampMs(now + _deferral_ms(retry_after, run, now)))
    if status in KEY_PROBLEMS:
        return Failed(
            f"refused the signature ({status}): compare the keys it trusts, its audience and its clock with the server's"
        )
    if 300 <= status < 400:
        return Failed(f"answered {status}; redirects are not followed, register the address itself")
    return Failed(f"answered {status}")


def _deferral_ms(retry_after: str | None, run: ReadyRun, now: TimestampMs) -> int:
    asked_ms = _asked_ms(retry_after.strip(), now) if retry_after else None
    if asked_ms is None:
        return max(BACKOFF_MIN_MS, min(now - run.ready_at, BACKOFF_MAX_MS))
    return max(DEFERRAL_MIN_MS, min(asked_ms, DEFERRAL_MAX_MS))


def _asked_ms(retry_after: str, now: TimestampMs) -> int | None:
    """The wait that the header asks for, by seconds or by a date; None where it says neither."""
    if retry_after.isascii() and retry_after.isdigit():
        return int(retry_after[:9]) * 1_000
    try:
        date = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1_000) - now
