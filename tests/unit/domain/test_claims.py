import pytest

from aiki_push.domain.changes import PutSlot, SaveRun
from aiki_push.domain.claims import (
    AlreadyMine,
    Claimer,
    NotAvailable,
    Owner,
    check_owner,
    decide_claim,
    decide_refresh,
    decide_release,
)
from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot, Tail, Transition
from aiki_push.domain.run import Claim, Offer, Run
from aiki_push.domain.run_states import Queued, Running, Status
from tests.unit.domain.run_examples import (
    CLAIM,
    EARLIER,
    EXAMPLES,
    NAMESPACE,
    RUN_ID,
    later,
    note,
    queued_run,
    run_in,
    running_run,
    saved,
)

LIMITS = Limits(claim_idle_timeout_ms=90_000)
OWNER = Owner(claim_id="claim-a", revision=5)


def slot_at(position: int, claim_id: str | None = "claim-a") -> LogSlot:
    return LogSlot(position=position, records=(note("step"),), revision=5, at=later(4_000), claim_id=claim_id)


@pytest.mark.parametrize("revision", [None, 5])
def test_a_queued_run_is_claimed_at_the_revision_asked_for_or_at_any(revision: int | None) -> None:
    run = queued_run(attempts=2, recoveries=3, offer=Offer(attempts=4, last_error="refused"), advance_errors=1)
    record = Transition(at=later(7_000), origin="queued", state=Running(), revision=6, attempts=2, executor="worker-b")

    decision = decide_claim(run, Claimer("claim-b", "worker-b", revision), later(7_000), LIMITS)

    assert decision == (
        SaveRun(
            run.model_copy(
                update={
                    "state": Running(),
                    "revision": 6,
                    "claim": Claim(claim_id="claim-b", executor="worker-b", claimed_at=later(7_000), refreshed_at=later(7_000)),
                    "offer": Offer(),
                    "advance_errors": 0,
                    "ready_at": None,
                    "due_at": later(97_000),
                    "tail": Tail(position=3, records=(*EARLIER, record)),
                }
            )
        ),
    )


def test_a_pulled_claim_remembers_its_request_and_since_when_the_run_was_ready() -> None:
    run = queued_run(ready_at=later(1_000))

    pulled = decide_claim(run, Claimer("claim-b", "worker-b", request_id="request-1"), later(7_000), LIMITS)
    pushed = decide_claim(run, Claimer("claim-b", "worker-b"), later(7_000), LIMITS)

    assert isinstance(pulled, tuple)
    assert isinstance(pushed, tuple)
    claim = Claim(
        claim_id="claim-b", executor="worker-b", claimed_at=later(7_000), refreshed_at=later(7_000), request_id="request-1"
    )
    assert saved(*pulled) == saved(*pushed).model_copy(update={"claim": claim, "ready_at": later(1_000)})


def test_a_claim_that_overflows_the_tail_seals_it_and_owns_the_run() -> None:
    run = queued_run(tail=Tail(position=3, records=(note("x" * 1_900),)))
    record = Transition(at=later(7_000), origin="queued", state=Running(), revision=6, attempts=1, executor="worker-b")

    decision = decide_claim(run, Claimer("claim-b", "worker-b"), later(7_000), LIMITS)

    assert isinstance(decision, tuple)
    save, put = decision
    assert saved(save).tail == Tail(position=4, records=())
    assert saved(save).claim == Claim(claim_id="claim-b", executor="worker-b", claimed_at=later(7_000), refreshed_at=later(7_000))
    slot = LogSlot(position=3, records=(note("x" * 1_900), record), revision=6, at=later(7_000))
    assert put == PutSlot(NAMESPACE, RUN_ID, slot)


@pytest.mark.parametrize("revision", [4, 6])
def test_a_queued_run_that_moved_on_since_it_was_offered_was_taken_by_someone(revision: int) -> None:
    assert decide_claim(queued_run(), Claimer("claim-b", "worker-b", revision), later(7_000), LIMITS) == NotAvailable(
        is_taken=True
    )


@pytest.mark.parametrize("revision", [None, 4, 5])
def test_a_repeated_claim_is_recognised_by_its_id(revision: int | None) -> None:
    assert decide_claim(running_run(), Claimer("claim-a", "worker-a", revision), later(7_000), LIMITS) == AlreadyMine()


def test_a_run_that_someone_else_executes_is_taken() -> None:
    assert decide_claim(running_run(), Claimer("claim-b", "worker-a"), later(7_000), LIMITS) == NotAvailable(is_taken=True)


def test_a_running_run_without_a_claim_is_taken() -> None:
    assert decide_claim(run_in(Running()), Claimer("claim-b", "worker-b"), later(7_000), LIMITS) == NotAvailable(is_taken=True)


@pytest.mark.parametrize("status", [status for status in EXAMPLES if status not in ("queued", "running")])
def test_a_run_that_is_neither_queued_nor_running_is_not_ready(status: Status) -> None:
    decision = decide_claim(run_in(EXAMPLES[status]), Claimer("claim-b", "worker-b", 5), later(7_000), LIMITS)
    assert decision == NotAvailable(is_taken=False)


def test_the_owner_is_who_holds_the_claim_at_its_revision() -> None:
    assert check_owner(running_run(), OWNER) == CLAIM


NOT_OWNERS = [
    (running_run(), Owner(claim_id="claim-a", revision=4)),
    (running_run(), Owner(claim_id="claim-a", revision=6)),
    (running_run(), Owner(claim_id="claim-b", revision=5)),
    (running_run(revision=6), OWNER),
    (queued_run(), OWNER),
    (run_in(EXAMPLES["completed"]), OWNER),
]


@pytest.mark.parametrize(("run", "owner"), NOT_OWNERS)
def test_nobody_else_refreshes_or_releases_the_run(run: Run, owner: Owner) -> None:
    expected = {"run_id": RUN_ID, "expected_revision": owner.revision, "revision": run.revision}
    for write in (
        lambda: check_owner(run, owner),
        lambda: decide_refresh(run, owner, later(33_000), LIMITS),
        lambda: decide_release(run, owner, None, later(33_000)),
    ):
        with pytest.raises(RevisionConflict) as refused:
            write()
        assert refused.value.fields == expected


def test_a_refused_owner_is_told_what_became_of_the_run_and_to_stop() -> None:
    with pytest.raises(RevisionConflict) as refused:
        check_owner(queued_run(revision=6), OWNER)
    assert refused.value.detail == (
        f"run {RUN_ID} is at revision 6 and queued; the claim taken at revision 5 no longer holds: stop executing it"
    )


def test_a_refresh_lets_the_claim_live_on_from_now() -> None:
    refreshed = CLAIM.model_copy(update={"refreshed_at": later(33_000)})
    assert decide_refresh(running_run(), OWNER, later(33_000), LIMITS) == (
        SaveRun(running_run(claim=refreshed, due_at=later(123_000))),
    )


def test_a_release_puts_the_run_back_into_its_queue() -> None:
    run = running_run(recoveries=3)
    record = Transition(at=later(4_000), origin="running", state=Queued(reason="released"), revision=6, attempts=1)

    assert decide_release(run, OWNER, slot_at(2), later(4_000)) == (
        SaveRun(
            run.model_copy(
                update={
                    "state": Queued(reason="released"),
                    "revision": 6,
                    "claim": None,
                    "ready_at": later(4_000),
                    "due_at": later(4_000),
                    "tail": Tail(position=3, records=(*EARLIER, record)),
                }
            )
        ),
    )


def test_a_run_without_any_slot_can_be_released() -> None:
    run = running_run(tail=Tail(position=0, records=EARLIER))
    assert saved(*decide_release(run, OWNER, None, later(4_000))).state == Queued(reason="released")


@pytest.mark.parametrize("position", [3, 4])
def test_a_run_whose_owner_has_appended_is_not_released(position: int) -> None:
    with pytest.raises(IllegalTransition) as refused:
        decide_release(running_run(), OWNER, slot_at(position), later(4_000))
    assert refused.value.fields == {"run_id": RUN_ID, "from_status": "running", "to_status": "queued"}
    assert refused.value.detail == (
        f"run {RUN_ID} has progressed under this claim; only a run of which nothing was executed can be released"
    )
