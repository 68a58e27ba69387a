"""Reading many items at once from DynamoDB, which may answer a part of them: where the rest would be too much, or it is busy."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Absent, Key, Put
from aiki_push.domain.changes import CreateRun
from aiki_push.testing import FakeClock, SequentialEntropy
from tests.contracts.stored_examples import queued_run, run_id
from tests.contracts.test_dynamodb_faults import Parameters, table_with

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def batches(dynamodb: "DynamoDBClient", name: str, taken: Iterator[int]) -> tuple[DynamoDbTable, list[int]]:
    """A table that reads as many items of each batch as the next number of `taken`, and the sizes of the batches asked for."""
    sizes: list[int] = []

    def fault(operation_name: str, parameters: Parameters, operation: Callable[..., object]) -> object:
        if operation_name != "batch_get_item":
            return operation(**parameters)
        asked = parameters["RequestItems"][name]
        sizes.append(len(asked["Keys"]))
        count = next(taken)
        if count == 0:
            return {"Responses": {}, "UnprocessedKeys": {name: asked}}
        answer = cast("dict[str, Any]", operation(RequestItems={name: {**asked, "Keys": asked["Keys"][:count]}}))
        left = asked["Keys"][count:]
        return {**answer, "UnprocessedKeys": {name: {**asked, "Keys": left}} if left else {}}

    return table_with(dynamodb, name, fault), sizes


def test_what_a_batch_leaves_unread_is_asked_for_until_all_is_read(dynamodb: "DynamoDBClient", table_name: str) -> None:
    table, sizes = batches(dynamodb, table_name, iter([3, 1, 100]))
    table.write([Put({"PK": "A", "SK": str(number)}, Absent()) for number in range(9)], token="t")
    found = table.get_many([Key("A", str(number)) for number in range(10)])
    assert sorted(str(item["SK"]) for item in found) == [str(number) for number in range(9)]
    assert sizes == [10, 7, 6]


def test_a_batch_of_which_nothing_is_read_is_waited_for(dynamodb: "DynamoDBClient", table_name: str, clock: FakeClock) -> None:
    table, sizes = batches(dynamodb, table_name, iter([1, 0, 0, 100]))
    store = SingleTableStore(table, clock, SequentialEntropy())
    for number in range(3):
        store.commit(CreateRun(queued_run(number)))
    assert [run.id for run in store.load_many("default", [*map(run_id, range(3))])] == [*map(run_id, range(3))]
    assert (sizes, clock.slept_ms > 0) == ([3, 2, 3, 3], True)
