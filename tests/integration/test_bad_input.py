"""What comes from outside and is wrong: a clear answer that names the field, and nothing changed."""

from typing import Any

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.canonical_json import compact_json, parse_json
from aiki_push.domain.errors import ApiError, InvalidRequest, NotFound, PayloadTooLarge, ReferenceConflict
from aiki_push.domain.log_records import InputRecord
from aiki_push.domain.values import MAX_VALUE_BYTES, Inline, PayloadReference, RunId
from aiki_push.ports.api.claims import ClaimRun, GetInbox, GetLog
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetHistory, GetPayload, GetRun, StartRun, WaitRun
from aiki_push.testing import FakeClock
from tests.integration.owners import Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem

UNKNOWN = RunId("01JZZZZZZZZZZZZZZZZZZZZZZZ")


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


def with_run_id(run_id: RunId) -> list[Operation[Any]]:
    return [
        GetRun(run_id=run_id),
        WaitRun(run_id=run_id, timeout_ms=0),
        GetHistory(run_id=run_id),
        PauseRun(run_id=run_id, operation_id="o"),
        ResumeRun(run_id=run_id, operation_id="o"),
        CancelRun(run_id=run_id, operation_id="o"),
        WakeUpRun(run_id=run_id, operation_id="o"),
        RequeueRun(run_id=run_id, operation_id="o"),
        SendEvent(run_id=run_id, event="paid"),
        ClaimRun(run_id=run_id, claim_id="c", executor="e"),
        GetLog(run_id=run_id),
        GetInbox(run_id=run_id),
        GetPayload(run_id=run_id, sha256="0" * 64),
    ]


def refusal(system: LocalSystem, namespace: str, operation: Operation[Any]) -> tuple[type[ApiError], str]:
    with pytest.raises(ApiError) as refused:
        system.server.call(namespace, operation)
    return type(refused.value), refused.value.detail.replace(str(getattr(operation, "run_id", "")), "<id>")


@pytest.mark.parametrize("index", range(len(with_run_id(UNKNOWN))))
def test_an_id_of_another_namespace_is_answered_like_an_unknown_one(system: LocalSystem, index: int) -> None:
    run_id = start(system)
    before = system.run(run_id)
    foreign = refusal(system, "another", with_run_id(run_id)[index])
    assert foreign == refusal(system, "another", with_run_id(UNKNOWN)[index])
    assert foreign[0] is NotFound
    assert system.run(run_id) == before


def test_a_forged_cursor_is_refused_by_name_and_a_real_one_is_good_for_its_run_only(system: LocalSystem) -> None:
    run_id, other_id = start(system), start(system)
    owner = Owner(system, claim(system, run_id))
    for number in range(3):
        owner.append(started(f"task-{number}"))
    real = system.context.seals.seal("history", f"{NAMESPACE}#{run_id}", 0)
    assert system.server.call(NAMESPACE, GetHistory(run_id=run_id, cursor=real)).entries[0].position == 1
    for cursor in ("e30.e30", real[:-2] + "AA", "x"):
        with pytest.raises(InvalidRequest) as refused:
            system.server.call(NAMESPACE, GetHistory(run_id=run_id, cursor=cursor))
        assert refused.value.fields["errors"][0]["field"] == "cursor"  # type: ignore[index, call-overload]  # JSON
    with pytest.raises(InvalidRequest):
        system.server.call(NAMESPACE, GetHistory(run_id=other_id, cursor=real))


@pytest.mark.parametrize("name", ["a#b", "a/b", "", "x" * 129, "a b", "a\n", "é"])
@pytest.mark.parametrize("field", ["workflow", "version"])
def test_a_name_with_a_separator_or_worse_starts_nothing(system: LocalSystem, name: str, field: str) -> None:
    wire = Wire(system.server, namespace=NAMESPACE, entropy=system.entropy)
    body = {"workflow": "w", "version": "1", field: name}
    answer = wire.handle(HttpRequest("POST", "/v1/runs", body=compact_json(body).encode()))
    problem = parse_json(answer.body)
    assert isinstance(problem, dict)
    assert (answer.status, problem["code"]) == (400, "invalid_request")
    assert [fault["field"] for fault in problem["errors"]] == [field]  # type: ignore[index, union-attr, call-overload]  # JSON
    assert system.store.due_runs(until=2**50, limit=10) == ()  # type: ignore[arg-type]  # a plain number does


def test_a_value_of_up_to_256_kb_goes_through_the_payload_store_and_comes_back_whole(system: LocalSystem) -> None:
    text = "é" * 60_000
    run_id = system.server.call(NAMESPACE, StartRun(workflow="w", version="1", input=text)).id
    stored = next(record for record in system.records(run_id) if isinstance(record, InputRecord)).value
    assert isinstance(stored, PayloadReference)
    assert system.server.call(NAMESPACE, GetPayload(run_id=run_id, sha256=stored.sha256)).value == text


def test_a_value_above_256_kb_is_refused_by_name_and_starts_nothing(system: LocalSystem) -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        system.server.call(NAMESPACE, StartRun(workflow="w", version="1", input="x" * MAX_VALUE_BYTES))
    assert (refused.value.fields["field"], refused.value.fields["limit"]) == ("input", MAX_VALUE_BYTES)
    assert system.store.due_runs(until=2**50, limit=10) == ()  # type: ignore[arg-type]  # a plain number does


def test_a_checkpoint_with_a_value_that_is_too_large_writes_nothing(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    before = system.records(run_id)
    too_large = completed("a").model_copy(update={"output": Inline(value="x" * MAX_VALUE_BYTES)})
    with pytest.raises(PayloadTooLarge) as refused:
        system.server.call(NAMESPACE, owner.checkpoint(started("a"), too_large))
    assert refused.value.fields["field"] == "records[1].output"
    assert system.records(run_id) == before


@pytest.mark.parametrize("value", [2**53 + 1, {"a": [1, -(2**60)]}], ids=["top", "nested"])
def test_an_integer_that_json_cannot_hold_exactly_starts_nothing(system: LocalSystem, value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        system.server.call(NAMESPACE, StartRun(workflow="w", version="1", input=value))
    assert refused.value.fields["errors"][0]["field"] == "input"  # type: ignore[index, call-overload]  # JSON


def test_a_run_id_in_use_for_another_start_is_refused_and_the_run_stays_as_it_is(system: LocalSystem) -> None:
    run_id = start(system)
    before = system.run(run_id)
    with pytest.raises(ReferenceConflict):
        system.server.call(NAMESPACE, StartRun(run_id=run_id, workflow="w", version="1", input="another"))
    assert system.run(run_id) == before
