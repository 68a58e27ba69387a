import pytest

from aiki_push.domain.changes import CreateRun, PutReference, PutSlot, PutWatcher, SaveRun
from aiki_push.domain.children import decide_child, decide_link
from aiki_push.domain.errors import ReferenceConflict
from aiki_push.domain.inbox import Watcher
from aiki_push.domain.run import RunOptions, RunReference
from aiki_push.domain.run_states import TERMINAL, Status
from aiki_push.domain.starts import Start, decide_start
from aiki_push.domain.values import DurationMs, Inline, RunId
from tests.unit.domain.run_examples import EXAMPLES, INPUT_HASH, NAMESPACE, RUN_ID, later, run_in

NOW = later(70)
PARENT = RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SB")
WATCHED_BY_PARENT = PutWatcher(NAMESPACE, RUN_ID, Watcher(run_id=PARENT))


def start_of(*, delay_ms: int | None = None, reference: str | None = None, value: str = "") -> Start:
    return Start(
        namespace=NAMESPACE,
        run_id=RUN_ID,
        workflow="ship",
        version="v1",
        input=Inline(value=value),
        input_hash=INPUT_HASH,
        options=RunOptions(pool="large", priority=2),
        delay_ms=None if delay_ms is None else DurationMs(delay_ms),
        reference=reference,
    )


@pytest.mark.parametrize("delay_ms", [None, 500])
def test_a_child_is_a_run_like_any_other_but_that_it_knows_its_parent_and_its_parent_watches_it(delay_ms: int | None) -> None:
    start = start_of(delay_ms=delay_ms)
    (created,) = decide_start(start, NOW)
    assert isinstance(created, CreateRun)
    child = CreateRun(created.run.model_copy(update={"parent": PARENT, "watched": True}))
    assert decide_child(start, PARENT, NOW) == (child, WATCHED_BY_PARENT)


def test_a_child_with_a_large_input_and_a_reference_is_four_writes_whatever_the_reference_named_before() -> None:
    start = start_of(reference="parcel 7", value="x" * 30_000)
    over = RunReference(etag="e-9", namespace=NAMESPACE, workflow="ship", version="v1", reference="parcel 7", run_id=PARENT)
    changes = decide_child(start, PARENT, NOW, over)
    created, slot, named, watched = changes
    assert isinstance(created, CreateRun)
    assert (created.run.parent, created.run.watched, created.run.tail.position) == (PARENT, True, 1)
    assert isinstance(slot, PutSlot)
    assert (slot.run_id, slot.slot.position) == (RUN_ID, 0)
    assert named == PutReference(over.model_copy(update={"run_id": RUN_ID}))
    assert watched == WATCHED_BY_PARENT


@pytest.mark.parametrize("status", [status for status in EXAMPLES if status not in TERMINAL])
def test_a_run_that_goes_on_is_linked_by_a_watcher_in_one_commit_with_its_header(status: Status) -> None:
    holder = run_in(EXAMPLES[status])
    assert decide_link(holder, PARENT) == (SaveRun(holder.model_copy(update={"watched": True})), WATCHED_BY_PARENT)


def test_a_run_that_is_watched_already_is_written_too_so_that_it_cannot_end_meanwhile() -> None:
    holder = run_in(EXAMPLES["running"], watched=True, parent=RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SC"))
    assert decide_link(holder, PARENT) == (SaveRun(holder), WATCHED_BY_PARENT)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_run_that_has_ended_is_watched_by_nobody_any_more(status: Status) -> None:
    assert decide_link(run_in(EXAMPLES[status]), PARENT) == ()


@pytest.mark.parametrize("status", EXAMPLES)
def test_no_run_is_its_own_child(status: Status) -> None:
    with pytest.raises(ReferenceConflict) as refused:
        decide_link(run_in(EXAMPLES[status]), RUN_ID)
    assert refused.value.fields == {"run_id": RUN_ID}
