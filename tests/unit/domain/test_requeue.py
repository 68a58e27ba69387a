"""Putting a stalled run back in its queue."""

from typing import get_args

import pytest

from aiki_push.domain.changes import PutSlot, SaveRun
from aiki_push.domain.controls import decide_requeue
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.log_records import LogSlot, Tail, Transition
from aiki_push.domain.run import Offer
from aiki_push.domain.run_states import Queued, Stalled, StalledReason, Status
from tests.unit.domain.run_examples import EARLIER, EXAMPLES, NAMESPACE, RUN_ID, later, note, queued_run, run_in, saved


@pytest.mark.parametrize("reason", get_args(StalledReason))
def test_a_requeue_puts_a_stalled_run_into_its_queue_with_a_fresh_clock(reason: StalledReason) -> None:
    state = Stalled(reason=reason)
    run = run_in(state, attempts=2, recoveries=9, inbox_seq=3, operations=("op-0",))
    record = Transition(at=later(900), origin="stalled", state=Queued(reason="redelivery"), revision=6, attempts=2)

    assert decide_requeue(run, "op-1", later(900)) == (
        SaveRun(
            run.model_copy(
                update={
                    "state": Queued(reason="redelivery"),
                    "revision": 6,
                    "recoveries": 0,
                    "operations": ("op-0", "op-1"),
                    "offer": Offer(),
                    "ready_at": later(900),
                    "due_at": later(900),
                    "tail": Tail(position=3, records=(*EARLIER, record)),
                }
            )
        ),
    )


def test_a_requeue_that_overflows_the_tail_seals_it() -> None:
    run = run_in(Stalled(reason="diverged"), tail=Tail(position=3, records=(note("x" * 1_900),)))
    record = Transition(at=later(900), origin="stalled", state=Queued(reason="redelivery"), revision=6, attempts=1)

    save, put = decide_requeue(run, "op-1", later(900))

    assert saved(save).tail == Tail(position=4, records=())
    slot = LogSlot(position=3, records=(note("x" * 1_900), record), revision=6, at=later(900))
    assert put == PutSlot(NAMESPACE, RUN_ID, slot)


def test_a_repeated_requeue_changes_nothing_even_after_the_run_went_on() -> None:
    requeued = saved(*decide_requeue(run_in(Stalled(reason="diverged")), "op-1", later(900)))

    assert requeued.state == Queued(reason="redelivery")
    assert decide_requeue(requeued, "op-1", later(901)) == ()
    assert decide_requeue(run_in(EXAMPLES["completed"], operations=("op-1",)), "op-1", later(902)) == ()
    assert decide_requeue(run_in(EXAMPLES["stalled"], operations=("op-1",)), "op-1", later(903)) == ()


def test_another_requeue_of_a_run_that_is_queued_again_is_refused() -> None:
    with pytest.raises(IllegalTransition, match="is queued; it cannot become queued"):
        decide_requeue(queued_run(operations=("op-1",)), "op-2", later(900))


@pytest.mark.parametrize("status", [status for status in EXAMPLES if status != "stalled"])
def test_only_a_stalled_run_can_be_requeued(status: Status) -> None:
    with pytest.raises(IllegalTransition):
        decide_requeue(run_in(EXAMPLES[status]), "op-1", later(900))


def test_a_header_remembers_the_latest_eight_operations() -> None:
    run = run_in(Stalled(reason="diverged"), operations=tuple(f"op-{i}" for i in range(8)))

    assert saved(*decide_requeue(run, "op-8", later(900))).operations == tuple(f"op-{i}" for i in range(1, 9))
