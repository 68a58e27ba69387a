"""Where the records of a transition go: into the header's tail, or into a slot of the log."""

import pytest

from aiki_push.domain.changes import PutSlot, SaveRun
from aiki_push.domain.log_records import AnyRecord, LogSlot, Tail
from aiki_push.domain.run import LastWrite, Run
from aiki_push.domain.run_states import Paused
from aiki_push.domain.run_transitions import enter, keep_in_tail, next_position, seal, take_away
from tests.unit.domain.run_examples import CLAIM, EARLIER, NAMESPACE, RUN_ID, json_bytes, later, note, running_run


def filled_to(size: int, letter: str) -> tuple[Run, str]:
    """A run, and the text of a note that fills its tail to exactly `size` bytes with letters `letter` and one `x` or none."""
    run = running_run()
    missing = size - json_bytes((*EARLIER, note("")), position=3)
    letters, rest = divmod(missing, len(letter.encode()))
    return run, letter * letters + "x" * rest


@pytest.mark.parametrize("letter", ["a", "é", "語", "🦉"])
def test_records_stay_in_the_tail_up_to_exactly_2_048_bytes(letter: str) -> None:
    run, text = filled_to(2_048, letter)
    records = (*EARLIER, note(text))
    assert json_bytes(records, position=3) == 2_048

    assert keep_in_tail(run, (note(text),), later(9)) == (
        SaveRun(run.model_copy(update={"tail": Tail(position=3, records=records)})),
    )


@pytest.mark.parametrize("letter", ["a", "é", "語", "🦉"])
def test_one_byte_more_seals_the_tail_and_the_new_records_in_one_slot(letter: str) -> None:
    run, text = filled_to(2_049, letter)

    assert keep_in_tail(run, (note(text),), later(9)) == (
        SaveRun(run.model_copy(update={"tail": Tail(position=4, records=())})),
        PutSlot(NAMESPACE, RUN_ID, LogSlot(position=3, records=(*EARLIER, note(text)), revision=5, at=later(9))),
    )


def test_fields_that_are_not_set_do_not_count_as_bytes_of_the_tail() -> None:
    run, text = filled_to(2_048, "a")
    with_nulls = Tail(position=3, records=(*EARLIER, note(text))).model_dump_json()
    assert len(with_nulls) > 2_048
    assert len(keep_in_tail(run, (note(text),), later(9))) == 1


def test_a_sealed_slot_holds_the_records_in_order_under_the_runs_revision_and_starts_the_tail_anew() -> None:
    run = running_run(revision=8)

    assert seal(run, 5, [note("one"), note("two")], later(9)) == (
        SaveRun(run.model_copy(update={"tail": Tail(position=6, records=())})),
        PutSlot(NAMESPACE, RUN_ID, LogSlot(position=5, records=(note("one"), note("two")), revision=8, at=later(9))),
    )


def test_a_slot_sealed_by_an_owner_names_its_claim_and_checkpoint() -> None:
    wrote = LastWrite(checkpoint_id="checkpoint-1", claim_id=CLAIM.claim_id)
    _, put = seal(running_run(), 3, (), later(9), wrote)
    slot = LogSlot(position=3, records=(), revision=5, at=later(9), claim_id="claim-a", checkpoint_id="checkpoint-1")
    assert put == PutSlot(NAMESPACE, RUN_ID, slot)


def slot_at(position: int) -> LogSlot:
    return LogSlot(position=position, records=(note("step"),), revision=5, at=later(4_000), claim_id="claim-a")


@pytest.mark.parametrize(("last_position", "expected"), [(None, 3), (0, 3), (2, 3), (3, 4), (7, 8)])
def test_the_next_position_is_the_tails_until_that_is_a_slot(last_position: int | None, expected: int) -> None:
    last = None if last_position is None else slot_at(last_position)
    assert next_position(running_run(), last) == expected


@pytest.mark.parametrize(("last", "position", "unsealed"), [(None, 3, EARLIER), (slot_at(2), 3, EARLIER), (slot_at(4), 5, ())])
def test_a_run_is_taken_away_with_the_slot_that_its_owner_would_write_next(
    last: LogSlot | None, position: int, unsealed: tuple[AnyRecord, ...]
) -> None:
    run = running_run()
    taken, record = enter(run, Paused(), later(9))

    assert take_away(run, taken, record, last, later(9)) == (
        SaveRun(taken.model_copy(update={"tail": Tail(position=position + 1, records=())})),
        PutSlot(NAMESPACE, RUN_ID, LogSlot(position=position, records=(*unsealed, record), revision=6, at=later(9))),
    )
