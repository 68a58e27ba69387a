import pytest

from aiki_push.domain.changes import CreateRun, PutReference, PutSlot
from aiki_push.domain.errors import ReferenceConflict
from aiki_push.domain.log_records import InputRecord, Tail, Transition
from aiki_push.domain.run import Run, RunOptions, RunReference
from aiki_push.domain.run_states import Queued, RunState, Scheduled, Status
from aiki_push.domain.starts import Start, check_holder, decide_start, is_same_start
from aiki_push.domain.values import DurationMs, Inline, RunId, TimestampMs
from tests.unit.domain.run_examples import EXAMPLES, INPUT_HASH, NAMESPACE, RUN_ID, later, run_in

NOW = later(70)


def start_of(*, delay_ms: int | None = None, reference: str | None = None, value: str = "") -> Start:
    return Start(
        namespace=NAMESPACE,
        run_id=RUN_ID,
        workflow="order",
        version="v1",
        input=Inline(value=value),
        input_hash=INPUT_HASH,
        options=RunOptions(),
        delay_ms=None if delay_ms is None else DurationMs(delay_ms),
        reference=reference,
    )


def created(state: RunState, ready_at: TimestampMs | None, due_at: TimestampMs, reference: str | None = None) -> CreateRun:
    records = (
        InputRecord(at=NOW, value=Inline(value=""), hash=INPUT_HASH),
        Transition(at=NOW, state=state, revision=0, attempts=1),
    )
    run = Run(
        namespace=NAMESPACE,
        id=RUN_ID,
        workflow="order",
        version="v1",
        input_hash=INPUT_HASH,
        options=RunOptions(),
        reference=reference,
        created_at=NOW,
        revision=0,
        state=state,
        tail=Tail(position=0, records=records),
        ready_at=ready_at,
        due_at=due_at,
    )
    return CreateRun(run)


def named(etag: str = "") -> PutReference:
    return PutReference(
        RunReference(etag=etag, namespace=NAMESPACE, workflow="order", version="v1", reference="order #7", run_id=RUN_ID)
    )


@pytest.mark.parametrize("delay_ms", [None, 0])
def test_a_run_without_a_delay_is_queued_at_once(delay_ms: int | None) -> None:
    assert decide_start(start_of(delay_ms=delay_ms), NOW) == (created(Queued(reason="new"), NOW, NOW),)


def test_a_run_with_a_delay_is_scheduled_for_after_it_and_not_ready_before() -> None:
    state = Scheduled(scheduled_at=later(71))
    assert decide_start(start_of(delay_ms=1), NOW) == (created(state, None, later(71)),)
    assert state.reason == "new"


def test_a_run_with_a_reference_is_written_together_with_it() -> None:
    run = created(Queued(reason="new"), NOW, NOW, reference="order #7")
    assert decide_start(start_of(reference="order #7"), NOW) == (run, named())


def test_the_reference_of_a_run_that_is_gone_is_taken_over_only_as_it_was_read() -> None:
    over = RunReference(
        etag="e-9",
        namespace=NAMESPACE,
        workflow="order",
        version="v1",
        reference="order #7",
        run_id=RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SB"),
    )
    run = created(Queued(reason="new"), NOW, NOW, reference="order #7")
    assert decide_start(start_of(reference="order #7"), NOW, over) == (run, named(etag="e-9"))


def test_a_large_input_its_header_and_its_reference_are_one_commit() -> None:
    changes = decide_start(start_of(reference="order #7", value="x" * 30_000), NOW)
    assert [type(change) for change in changes] == [CreateRun, PutSlot, PutReference]


def test_a_start_with_another_reference_is_another_start_and_with_another_delay_it_is_not() -> None:
    run = run_in(EXAMPLES["queued"], options=RunOptions(), reference="order #7")
    assert is_same_start(run, start_of(reference="order #7"))
    assert is_same_start(run, start_of(reference="order #7", delay_ms=9_000))
    assert not is_same_start(run, start_of(reference="order #8"))
    assert not is_same_start(run, start_of())


@pytest.mark.parametrize("status", EXAMPLES)
def test_a_start_with_the_input_of_the_run_that_has_its_reference_gets_that_run(status: Status) -> None:
    holder = run_in(EXAMPLES[status], reference="order #7")
    assert check_holder(holder, INPUT_HASH, "error") is holder
    assert check_holder(holder, INPUT_HASH, "return_existing") is holder


@pytest.mark.parametrize("status", EXAMPLES)
def test_a_start_with_another_input_gets_the_run_that_has_its_reference_only_if_it_asks_for_it(status: Status) -> None:
    holder = run_in(EXAMPLES[status], reference="order #7")
    assert check_holder(holder, "00" * 32, "return_existing") is holder
    with pytest.raises(ReferenceConflict) as refused:
        check_holder(holder, "00" * 32, "error")
    assert refused.value.fields == {"run_id": RUN_ID}
    assert "order #7" not in refused.value.detail
