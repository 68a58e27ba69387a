"""Exceptions as data, so that they can be raised again where the exception itself does not exist."""

import traceback

from aiki_push.domain.log_records import MAX_ERROR_BYTES, RecordedError

MAX_CAUSES = 10
_CUT = " … (cut)"


def record_error(error: BaseException) -> RecordedError:
    """`error` with its stack and causes, cut to MAX_ERROR_BYTES: first the stacks of the causes go, then what is too long."""
    recorded = _recorded(error, MAX_CAUSES)
    if _size(recorded) > MAX_ERROR_BYTES:
        recorded = recorded.model_copy(update={"cause": None})
    if _size(recorded) > MAX_ERROR_BYTES:
        half = MAX_ERROR_BYTES // 8
        recorded = RecordedError(
            name=_shortened(recorded.name, half),
            message=_shortened(recorded.message, half),
            stack=_shortened(recorded.stack or "", half),
        )
    return recorded


def _recorded(error: BaseException, causes_left: int) -> RecordedError:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return RecordedError(
        name=_text(type(error).__qualname__),
        message=_text(str(error)),
        stack=_text("".join(traceback.format_tb(error.__traceback__))) or None,
        cause=_recorded(cause, causes_left - 1) if cause is not None and causes_left else None,
    )


def _text(text: str) -> str:
    """`text` without the lone surrogates that UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + _CUT


def _size(error: RecordedError) -> int:
    return len(error.model_dump_json().encode())
