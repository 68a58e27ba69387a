"""What a failed call of DynamoDB means for the caller.

Codes: "Error handling with DynamoDB" in its developer guide, and "TransactWriteItems" in its API reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from aiki_push.adapters.storage.dynamodb.items import plain
from aiki_push.adapters.storage.table import Item, Write, WriteRefused
from aiki_push.domain.errors import AikiError, InvalidRequest, PayloadTooLarge, SettingsError, StorageUnavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

TRANSIENT = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
TOO_LARGE = frozenset(
    {"ItemCollectionSizeLimitExceeded", "ItemCollectionSizeLimitExceededException", "ValidationError", "ValidationException"}
)


@contextmanager
def explained(writes: Sequence[Write] = ()) -> Iterator[None]:
    """Turn what boto3 raises inside into the errors of Table.

    Raises SettingsError where the table, the credentials or the permissions are wrong.
    """
    try:
        yield
    except ClientError as error:
        raise _meaning(cast("Mapping[str, Any]", error.response), writes) from error
    except (HTTPClientError, ConnectionError, ResponseParserError) as error:
        raise StorageUnavailable(f"DynamoDB gave no usable answer ({type(error).__name__})") from error
    except BotoCoreError as error:
        # Its text may quote parameters.
        raise SettingsError(f"DynamoDB cannot be called ({type(error).__name__}); check region and credentials") from None


def _meaning(response: Mapping[str, Any], writes: Sequence[Write]) -> AikiError:
    """`response` is the parsed body of a failed call, typed by its documentation only."""
    code = str(response.get("Error", {}).get("Code"))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code == "ConditionalCheckFailedException":
        return WriteRefused({0: _found(response)})
    if code == "TransactionCanceledException":
        return _cancellation(response.get("CancellationReasons", ()), writes)
    if code in TRANSIENT or status >= 500:
        return StorageUnavailable(f"DynamoDB is busy ({code})")
    if code in TOO_LARGE:
        return _too_large(code, writes) if writes else InvalidRequest(f"DynamoDB finds a key invalid ({code})")
    return SettingsError(f"DynamoDB refused the call ({code}); check the table's name and the role's permissions")


def _cancellation(reasons: Sequence[Mapping[str, Any]], writes: Sequence[Write]) -> AikiError:
    """A failed condition decides, whatever else went wrong; a conflict or throttling is worth repeating; the rest is final."""
    codes = [str(reason.get("Code")) for reason in reasons]
    refused = {place: _found(reasons[place]) for place, code in enumerate(codes) if code == "ConditionalCheckFailed"}
    if refused:
        return WriteRefused(refused)
    busy = next((code for code in codes if code in TRANSIENT), None)
    if busy is not None:
        return StorageUnavailable(f"DynamoDB is busy ({busy})")
    places = [place for place, code in enumerate(codes) if code in TOO_LARGE]
    if places:
        return _too_large(codes[places[0]], [writes[place] for place in places])
    return StorageUnavailable("DynamoDB cancelled the transaction without a known reason")


def _found(reason: Mapping[str, Any]) -> Item | None:
    item = cast("Mapping[str, AttributeValueTypeDef] | None", reason.get("Item"))
    return plain(item) if item else None


def _too_large(code: str, writes: Sequence[Write]) -> PayloadTooLarge:
    items = ", ".join(str(write.key) for write in writes)
    return PayloadTooLarge(f"DynamoDB finds a write too large or invalid ({code}): {items}", items=items)
