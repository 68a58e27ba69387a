"""Every error this package raises on purpose.

AikiError
├── ApiError                  the server refused; carries `code`, HTTP status and fields, the same on both sides of the wire
│   ├── InvalidRequest        400   ├── UnsupportedVersion 400   ├── Unauthenticated 401    ├── Forbidden 403
│   ├── InvalidToken          403   ├── NotFound           404   ├── MethodNotAllowed 405
│   ├── RevisionConflict      409   ├── IllegalTransition  409   ├── ReferenceConflict 409  ├── LogFull 409
│   ├── PayloadTooLarge       413   ├── RateLimited        429   └── InternalError 500  └── StorageUnavailable 503
├── ServerUnreachable         no answer within the time budget
├── SettingsError             a setting or a definition is wrong; the process should not start
├── SignatureRejected         a push that nobody we trust has signed
├── WorkflowError             something a workflow did or met
│   ├── TaskFailed  TaskInterrupted  OutcomeUnknown   what a task's call raises
│   ├── RunFailed  ChildFailed   what a run or a child did not bring
│   ├── NotSerializable       a value that would not come back from JSON as it went in
│   ├── NonRetryableError     raised by user code to end retries
│   └── NotDurable  NothingToWaitFor   code that cannot be replayed or never ends
Dropped (BaseException)       a workflow branch is being closed; user code must let it pass
"""

from collections.abc import Mapping
from typing import ClassVar

from aiki_push.domain.values import Json


class AikiError(Exception):
    """Base of every error this package raises on purpose."""


class ApiError(AikiError):
    """The server refused a request. `code` is the stable name, `detail` one readable sentence, `fields` the typed facts."""

    code: ClassVar[str]
    http_status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, detail: str, **fields: Json) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields: Mapping[str, Json] = fields


class InvalidRequest(ApiError):
    """The request does not have the documented shape; `fields["errors"]` lists each field at fault. Correct it; a retry fails again."""

    code, http_status, title = "invalid_request", 400, "Invalid request"


class UnsupportedVersion(ApiError):
    """Client and server are too far apart. Upgrade the side that `detail` names, the server first."""

    code, http_status, title = "unsupported_version", 400, "Unsupported version"


class Unauthenticated(ApiError):
    """No credentials, or none that are known. Send a valid API key."""

    code, http_status, title = "unauthenticated", 401, "Unauthenticated"


class Forbidden(ApiError):
    """The credentials are known and not enough. Use a key with the role that `detail` names."""

    code, http_status, title = "forbidden", 403, "Forbidden"


class InvalidToken(ApiError):
    """The claim token was not issued for this run, claim and position. Only the executor that claimed the run can write to it."""

    code, http_status, title = "invalid_token", 403, "Invalid claim token"


class NotFound(ApiError):
    """Nothing with this id in the caller's namespace. Check the id, and the namespace of the key."""

    code, http_status, title = "not_found", 404, "Not found"


class MethodNotAllowed(ApiError):
    """The path exists, with other methods, which `fields["allowed"]` lists."""

    code, http_status, title = "method_not_allowed", 405, "Method not allowed"


class RevisionConflict(ApiError):
    """The run moved on since it was read. An executor stops; anyone else reads again and decides again."""

    code, http_status, title = "revision_conflict", 409, "Revision conflict"


class IllegalTransition(ApiError):
    """The run's state does not allow this; `fields` has `from_status` and `to_status`."""

    code, http_status, title = "illegal_transition", 409, "Illegal transition"


class ReferenceConflict(ApiError):
    """The id or reference is in use for something else. Choose another, or read what exists."""

    code, http_status, title = "reference_conflict", 409, "Reference conflict"


class LogFull(ApiError):
    """The run's log has reached its limit of slots. Do more in each task, or spread the work over several runs."""

    code, http_status, title = "log_full", 409, "Log full"


class PayloadTooLarge(ApiError):
    """A value or body is over its limit; `fields` names it. Store the data elsewhere and pass a reference."""

    code, http_status, title = "payload_too_large", 413, "Payload too large"


class RateLimited(ApiError):
    """Too many requests are in progress in one process. Retry after a moment."""

    code, http_status, title = "rate_limited", 429, "Too many requests"


class InternalError(ApiError):
    """A fault of the server; `fields["reference"]` finds it in the server's log."""

    code, http_status, title = "internal", 500, "Internal error"


class StorageUnavailable(ApiError):
    """The table is throttled or does not answer. Nothing definite is known about the write; repeating the request is safe."""

    code, http_status, title = "storage_unavailable", 503, "Storage unavailable"


class ServerUnreachable(AikiError):
    """The server gave no usable answer within the time budget. The write may or may not have happened; repeating it is safe."""


class SettingsError(AikiError):
    """A setting or definition is wrong. The message names it and says what would be right."""


class SignatureRejected(AikiError):
    """A push was not signed by a key we trust, or not recently. `check` names the check that failed; never tell it to the caller."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check


class WorkflowError(AikiError):
    """Base of what workflow code can meet while it runs."""


class NotSerializable(WorkflowError):
    """A value or type that JSON cannot hold and give back unchanged. The message names the place; use the type it suggests."""


class NonRetryableError(WorkflowError):
    """Raise it (or a subclass) in a task or workflow to end retries at once."""


class NotDurable(WorkflowError):
    """Workflow code touched the outside world, which a replay could not repeat. Do this in a task."""


class NothingToWaitFor(WorkflowError):
    """Every branch of the workflow waits, and none for anything that can ever happen. The message says where they stand."""


class Dropped(BaseException):
    """A branch of a workflow is being closed because its run goes on elsewhere or later. Let it pass; nothing done now is recorded."""


API_ERRORS: Mapping[str, type[ApiError]] = {
    error.code: error
    for error in (
        InvalidRequest,
        UnsupportedVersion,
        Unauthenticated,
        Forbidden,
        InvalidToken,
        NotFound,
        MethodNotAllowed,
        RevisionConflict,
        IllegalTransition,
        ReferenceConflict,
        LogFull,
        PayloadTooLarge,
        RateLimited,
        InternalError,
        StorageUnavailable,
    )
}
"""What the HTTP client raises for a problem document's `code`."""
