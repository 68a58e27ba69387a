import pytest

from aiki_push.domain.changes import CreateRun, PutSlot
from aiki_push.domain.log_records import InputRecord, LogSlot, Tail, Transition
from aiki_push.domain.run import Run, RunOptions
from aiki_push.domain.run_states import Queued
from aiki_push.domain.starts import Start, decide_start, is_same_start
from aiki_push.domain.values import Inline, PayloadReference, StoredValue
from tests.unit.domain.run_examples import EXAMPLES, INPUT_HASH, NAMESPACE, RUN_ID, later, run_in
from tests.unit.domain.run_table import Refused, RunTable

DEFAULTS = RunOptions()


def start_of(value: StoredValue | None, options: RunOptions = DEFAULTS) -> Start:
    return Start(
        namespace=NAMESPACE,
        run_id=RUN_ID,
        workflow="order",
        version="v1",
        input=value,
        input_hash=INPUT_HASH,
        options=options,
    )


def started(tail: Tail, options: RunOptions = DEFAULTS) -> Run:
    return Run(
        namespace=NAMESPACE,
        id=RUN_ID,
        workflow="order",
        version="v1",
        input_hash=INPUT_HASH,
        options=options,
        created_at=later(70),
        revision=0,
        state=Queued(reason="new"),
        attempts=1,
        tail=tail,
        ready_at=later(70),
        due_at=later(70),
    )


BEGINNING = Transition(at=later(70), origin=None, state=Queued(reason="new"), revision=0, attempts=1)

SMALL_INPUTS = [
    None,
    Inline(value=None),
    Inline(value={"order": 7, "note": None}),
    PayloadReference(run_id=RUN_ID, sha256="ab" * 32, size=5_000_000),
]


@pytest.mark.parametrize("value", SMALL_INPUTS)
def test_a_start_with_a_small_input_is_one_header_with_the_input_in_its_tail(value: StoredValue | None) -> None:
    options = RunOptions(pool="large", priority=0)
    tail = Tail(position=0, records=(InputRecord(at=later(70), value=value, hash=INPUT_HASH), BEGINNING))

    assert decide_start(start_of(value, options), later(70)) == (CreateRun(started(tail, options)),)


def test_a_start_with_an_input_of_30_kb_writes_slot_0_in_the_same_commit() -> None:
    value = Inline(value="x" * 30_000)
    records = (InputRecord(at=later(70), value=value, hash=INPUT_HASH), BEGINNING)

    assert decide_start(start_of(value), later(70)) == (
        CreateRun(started(Tail(position=1, records=()))),
        PutSlot(NAMESPACE, RUN_ID, LogSlot(position=0, records=records, revision=0, at=later(70))),
    )


def test_an_input_is_measured_in_bytes_and_not_in_characters() -> None:
    assert len(decide_start(start_of(Inline(value="e" * 1_000)), later(70))) == 1
    assert len(decide_start(start_of(Inline(value="🦉" * 1_000)), later(70))) == 2


def test_a_run_begins_in_a_state_in_which_runs_may_begin() -> None:
    run = started(Tail(position=0, records=()))
    assert isinstance(run.state, Queued)
    assert run.state.reason == "new"


def test_a_second_start_with_the_same_id_is_refused_and_changes_nothing() -> None:
    table = RunTable()
    table.commit(*decide_start(start_of(Inline(value=1)), later(70)))
    log = table.log(NAMESPACE, RUN_ID)

    with pytest.raises(Refused):
        table.commit(*decide_start(start_of(Inline(value="x" * 30_000)), later(80)))

    assert table.log(NAMESPACE, RUN_ID) == log


def test_a_run_is_the_same_start_whatever_became_of_it() -> None:
    run = run_in(EXAMPLES["completed"], workflow="order", version="v1", options=RunOptions())
    assert is_same_start(run, start_of(Inline(value=1)))


@pytest.mark.parametrize(
    "difference",
    [
        {"workflow": "refund"},
        {"version": "v2"},
        {"input_hash": "00" * 32},
        {"options": RunOptions(pool="large")},
        {"options": RunOptions(priority=4)},
    ],
)
def test_a_run_of_something_else_is_not_the_same_start(difference: dict[str, object]) -> None:
    run = run_in(EXAMPLES["queued"], **{"options": RunOptions(), **difference})
    assert not is_same_start(run, start_of(Inline(value=1)))
