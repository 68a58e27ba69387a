"""What DynamoDB does and its simulations never do: throttling, conflicts, lost answers, and refusals of every kind."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Absent, Delete, Item, Key, Put, Query, Write, WriteRefused
from aiki_push.domain.changes import CreateRun, DeleteWatcher, PutEventReference, PutMessage, PutSlot, PutWatcher, SaveRun
from aiki_push.domain.errors import InvalidRequest, PayloadTooLarge, SettingsError, StorageUnavailable
from aiki_push.domain.run import Offer
from aiki_push.ports.store import Listing, Queue
from aiki_push.testing import FakeClock, SequentialEntropy
from tests.contracts.stored_examples import event, queued_run, run_id, task_slot, watcher

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Parameters = Mapping[str, Any]
Fault = Callable[[str, Parameters, Callable[..., object]], object]


class Intercepted:
    """A client whose every call goes to `fault`, with the operation's name, its parameters and the real operation."""

    def __init__(self, client: object, fault: Fault) -> None:
        self._client = client
        self._fault = fault

    def __getattr__(self, name: str) -> Callable[..., object]:
        operation = getattr(self._client, name)
        return lambda **parameters: self._fault(name, parameters, operation)


def table_with(client: "DynamoDBClient", name: str, fault: Fault) -> DynamoDbTable:
    return DynamoDbTable(cast("DynamoDBClient", Intercepted(client, fault)), name)


def refusal(code: str, *, status: int = 400, reasons: Sequence[Mapping[str, object]] = ()) -> ClientError:
    response: dict[str, Any] = {
        "Error": {"Code": code, "Message": "the secret value"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        "CancellationReasons": reasons,
    }
    return ClientError(cast("Any", response), "Write")


def cancelled(*codes: str) -> ClientError:
    return refusal("TransactionCanceledException", reasons=[{"Code": code} for code in codes])


def failing(error: Exception) -> Fault:
    def fault(*_: object) -> object:
        raise error

    return fault


class NoClient:
    """Has every operation and can do none of them."""

    def __getattr__(self, name: str) -> object:
        return name


def failing_table(error: Exception) -> DynamoDbTable:
    return table_with(cast("DynamoDBClient", NoClient()), "t", failing(error))


WRITES: Sequence[Write] = [Put({"PK": "A", "SK": "1"}, Absent()), Put({"PK": "A", "SK": "2"}, Absent()), Delete(Key("A", "3"))]


@pytest.mark.parametrize(
    "error",
    [
        refusal("ProvisionedThroughputExceededException"),
        refusal("ThrottlingException"),
        refusal("RequestLimitExceeded"),
        refusal("TransactionConflictException"),
        refusal("TransactionInProgressException"),
        refusal("InternalServerError", status=500),
        refusal("SomethingNew", status=503),
        cancelled("TransactionConflict", "None", "None"),
        cancelled("None", "ThrottlingError", "ValidationError"),
        cancelled("ProvisionedThroughputExceeded", "None", "None"),
        cancelled("SomethingNew", "None", "None"),
        ReadTimeoutError(endpoint_url="https://dynamodb"),
        EndpointConnectionError(endpoint_url="https://dynamodb"),
        ResponseParserError("not JSON"),
    ],
    ids=repr,
)
def test_what_may_pass_is_unavailable_and_so_repeated(error: Exception) -> None:
    table = failing_table(error)
    with pytest.raises(StorageUnavailable) as failed:
        table.write(WRITES, token="t")
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("error", "items"),
    [
        (refusal("ValidationException"), "A 1, A 2, A 3"),
        (refusal("ItemCollectionSizeLimitExceededException"), "A 1, A 2, A 3"),
        (cancelled("None", "ValidationError", "None"), "A 2"),
        (cancelled("ItemCollectionSizeLimitExceeded", "None", "None"), "A 1"),
    ],
    ids=repr,
)
def test_what_is_too_large_or_invalid_is_final_and_names_the_items(error: ClientError, items: str) -> None:
    with pytest.raises(PayloadTooLarge) as failed:
        failing_table(error).write(WRITES, token="t")
    assert failed.value.fields == {"items": items}
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "error",
    [
        refusal("ResourceNotFoundException"),
        refusal("AccessDeniedException"),
        refusal("ExpiredTokenException"),
        NoCredentialsError(),
    ],
    ids=repr,
)
def test_a_wrong_table_or_wrong_credentials_are_a_wrong_setting(error: Exception) -> None:
    with pytest.raises(SettingsError) as failed:
        failing_table(error).write(WRITES, token="t")
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("other", ["None", "TransactionConflict", "ThrottlingError", "ValidationError"])
def test_a_failed_condition_decides_whatever_else_went_wrong(other: str) -> None:
    reasons: list[Mapping[str, object]] = [
        {"Code": other},
        {"Code": "ConditionalCheckFailed", "Item": {"PK": {"S": "A"}, "SK": {"S": "2"}, "n": {"N": "7"}, "b": {"B": b"x"}}},
        {"Code": "ConditionalCheckFailed"},
    ]
    error = refusal("TransactionCanceledException", reasons=reasons)
    with pytest.raises(WriteRefused) as refused:
        failing_table(error).write(WRITES, token="t")
    found: Item = {"PK": "A", "SK": "2", "n": 7, "b": b"x"}
    assert refused.value.found == {1: found, 2: None}


READS: Mapping[str, Callable[[DynamoDbTable], object]] = {
    "get": lambda table: table.get(Key("A", "1")),
    "get_many": lambda table: table.get_many([Key("A", "1")]),
    "query": lambda table: table.query(Query("A", "0", "9")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reads_fail_in_the_same_ways(read: Callable[[DynamoDbTable], object]) -> None:
    def call(error: Exception) -> None:
        read(failing_table(error))

    with pytest.raises(StorageUnavailable):
        call(refusal("ThrottlingException"))
    with pytest.raises(InvalidRequest):
        call(refusal("ValidationException"))
    with pytest.raises(SettingsError):
        call(refusal("ResourceNotFoundException"))


def test_a_table_that_does_not_exist_is_a_wrong_setting(dynamodb: "DynamoDBClient") -> None:
    with pytest.raises(SettingsError, match="ResourceNotFoundException"):
        DynamoDbTable(dynamodb, "nobody").get(Key("A", "1"))


def test_an_invalid_key_is_an_invalid_request(dynamodb: "DynamoDBClient", table_name: str) -> None:
    with pytest.raises(InvalidRequest, match="ValidationException"):
        DynamoDbTable(dynamodb, table_name).get(Key("", "1"))


def test_a_repeated_transaction_carries_the_same_token_and_the_next_one_another(
    dynamodb: "DynamoDBClient", table_name: str, clock: FakeClock
) -> None:
    tokens: list[str] = []

    def fault(name: str, parameters: Parameters, operation: Callable[..., object]) -> object:
        if name == "transact_write_items":
            tokens.append(parameters["ClientRequestToken"])
            if len(tokens) < 3:
                raise cancelled("TransactionConflict", "None")
        return operation(**parameters)

    store = SingleTableStore(table_with(dynamodb, table_name, fault), clock, SequentialEntropy())
    for number in (1, 2):
        store.commit(CreateRun(queued_run(number)), PutSlot("default", run_id(number), task_slot(0)))
    assert tokens[0] == tokens[1] == tokens[2] != tokens[3]
    assert all(1 <= len(token) <= 36 for token in tokens)


def test_reads_of_the_table_are_consistent_and_reads_of_an_index_cannot_be(
    dynamodb: "DynamoDBClient", table_name: str, clock: FakeClock
) -> None:
    seen: dict[tuple[str, str | None], set[bool]] = {}

    def fault(name: str, parameters: Parameters, operation: Callable[..., object]) -> object:
        asked = parameters["RequestItems"][table_name] if name == "batch_get_item" else parameters
        seen.setdefault((name, asked.get("IndexName")), set()).add(asked["ConsistentRead"])
        return operation(**parameters)

    store = SingleTableStore(table_with(dynamodb, table_name, fault), clock, SequentialEntropy())
    store.last_slot("default", run_id(1))
    store.watchers("default", run_id(1), limit=1)
    store.due_runs(until=queued_run().created_at, limit=1)
    store.ready_runs(Queue("default", "orders", "1", None), limit=1)
    store.newest_runs(Listing("default"), before=None, limit=1)
    store.newest_runs(Listing("default", workflow="orders"), before=None, limit=1)
    store.endpoints("default")
    store.load_many("default", [run_id(1)])
    table_with(dynamodb, table_name, fault).get(Key("A", "1"))
    assert seen == {
        ("query", None): {True},
        ("query", "due"): {False},
        ("query", "ready"): {False},
        ("query", "by_state"): {False},
        ("query", "by_workflow"): {False},
        ("batch_get_item", None): {True},
        ("get_item", None): {True},
    }


class ThirtyPercent:
    """Fails three calls in ten: half of them before anything is written, half with the answer lost."""

    def __init__(self) -> None:
        self._entropy = SequentialEntropy()
        self.failures = 0

    def __call__(self, name: str, parameters: Parameters, operation: Callable[..., object]) -> object:
        chance = self._entropy.fraction()
        if chance < 0.3:
            self.failures += 1
        if chance < 0.15:
            raise cancelled("TransactionConflict", "None") if name == "transact_write_items" else refusal("ThrottlingException")
        answer = operation(**parameters)
        if chance < 0.3:
            raise ReadTimeoutError(endpoint_url="https://dynamodb")
        return answer


def test_with_three_calls_in_ten_failing_every_commit_happens_exactly_once(
    dynamodb: "DynamoDBClient", table_name: str, clock: FakeClock
) -> None:
    faults = ThirtyPercent()
    store = SingleTableStore(table_with(dynamodb, table_name, faults), clock, SequentialEntropy())
    run = run_id(1)
    store.commit(CreateRun(queued_run()))
    for number in range(60):
        loaded = store.load("default", run)
        assert loaded.offer.attempts == number
        changed = loaded.model_copy(update={"offer": Offer(attempts=number + 1)})
        store.commit(SaveRun(changed), PutSlot("default", run, task_slot(2 * number)), PutWatcher("default", run, watcher(2)))
        store.commit(PutSlot("default", run, task_slot(2 * number + 1)))
        delete = DeleteWatcher("default", run, *store.watchers("default", run, limit=2))
        store.commit(PutMessage("default", run, event(number + 1)), delete)
        store.commit(PutEventReference("default", run, "paid", str(number)))
        assert store.watchers("default", run, limit=1) == ()
    contents = store.load_contents("default", run, max_bytes=10**9)
    assert contents.run.offer.attempts == 60
    assert contents.slots == tuple(map(task_slot, range(120)))
    assert contents.messages == tuple(event(number) for number in range(1, 61))
    assert faults.failures > 50
