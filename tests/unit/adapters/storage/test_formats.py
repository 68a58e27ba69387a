import zlib

import pytest

from aiki_push.adapters.storage.formats import (
    Shards,
    event_reference_item,
    header_item,
    message_item,
    read,
    read_header,
    read_slot,
    reference_item,
    slot_item,
    watcher_item,
)
from aiki_push.adapters.storage.keys import group_of
from aiki_push.adapters.storage.sizes import item_size
from aiki_push.adapters.storage.table import Item
from aiki_push.domain.errors import InternalError, UnsupportedVersion
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import KnownRecord, TaskCompleted, UnknownRecord
from aiki_push.domain.retry import fixed
from aiki_push.domain.run import Claim, Offer, Run, RunOptions, RunReference
from aiki_push.domain.run_states import Running, RunState
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.store import SentEvent
from tests.unit.adapters.storage.authored_items import HEADER, ITEMS, NEW_RUN, SLOT
from tests.unit.adapters.storage.authored_records import RECORDS, STATES, at

ETAG = "e" * 16
SLOT_ITEM = slot_item("default", HEADER.id, SLOT, ETAG)
HEADER_ITEM = header_item(NEW_RUN, ETAG, Shards())


def unpacked(item: Item) -> str:
    content = item["d"]
    return zlib.decompress(content).decode() if isinstance(content, bytes) else str(content)


def test_a_header_shows_its_status_revision_and_index_keys_beside_its_content() -> None:
    assert {name: value for name, value in HEADER_ITEM.items() if name != "d"} == {
        "PK": f"RUN#default#{NEW_RUN.id}",
        "SK": "H",
        "v": 1,
        "etag": ETAG,
        "status": "queued",
        "revision": 0,
        "due": "DUE#0",
        "due_at": f"001767225600000#RUN#default#{NEW_RUN.id}",
        "ready": "READY#default#orders#1.0.0#",
        "ready_at": f"001767225600000#5#{NEW_RUN.id}",
        "by_workflow": "default#orders#0",
        "by_state": "default#active#0",
        "created": f"001767225600000#{NEW_RUN.id}#1.0.0",
    }


def test_a_parked_run_is_in_the_due_index_only_and_one_that_waits_for_ever_in_none() -> None:
    assert {"due", "ready"} & header_item(HEADER, ETAG, Shards()).keys() == {"due"}
    assert {"due", "ready"} & header_item(HEADER.model_copy(update={"due_at": None}), ETAG, Shards()).keys() == set()


PULLED = NEW_RUN.model_copy(
    update={"state": Running(), "claim": Claim(claim_id="c", executor="e", claimed_at=at(), refreshed_at=at(), request_id="r-1")}
)


@pytest.mark.parametrize(
    ("run", "ready"),
    [
        (NEW_RUN, "READY#default#orders#1.0.0#"),
        (NEW_RUN.model_copy(update={"options": RunOptions(pool="gpu")}), "READY#default#orders#1.0.0#gpu"),
        (PULLED, "CLAIMS#default#r-1"),
        (PULLED.model_copy(update={"claim": HEADER.claim}), None),
        (PULLED.model_copy(update={"claim": None}), None),
        (PULLED.model_copy(update={"ready_at": None}), None),
    ],
    ids=["queued", "queued in a pool", "pulled", "pushed", "running without a claim", "pulled by an earlier release"],
)
def test_a_run_is_in_the_ready_index_in_its_queue_or_with_the_request_that_pulled_it(run: Run, ready: str | None) -> None:
    item = header_item(run, ETAG, Shards())
    assert (item.get("ready"), item.get("ready_at")) == (ready, HEADER_ITEM["ready_at"] if ready else None)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_run_is_in_both_lists_and_in_one_place_of_them(state: RunState) -> None:
    run = HEADER.model_copy(update={"state": state})
    item = header_item(run, ETAG, Shards(due=2, listing=8))
    shard = str(item["by_workflow"]).rsplit("#", 1)[1]
    assert (item["by_workflow"], item["created"]) == (f"default#orders#{shard}", HEADER_ITEM["created"])
    assert item["by_state"] == f"default#{group_of(state.status)}#{shard}"
    assert item["due"] in ("DUE#0", "DUE#1")


def test_a_reference_reads_as_it_was_written_and_is_the_condition_of_the_next_write() -> None:
    reference = ITEMS["reference"]
    assert isinstance(reference, RunReference)
    item = reference_item(reference, ETAG)
    assert item.keys() == {"PK", "SK", "v", "etag", "d"}
    assert read(item) == reference.model_copy(update={"etag": ETAG})
    assert "etag" not in unpacked(item)


def test_a_strategy_that_a_newer_release_knows_more_about_is_read() -> None:
    run = HEADER.model_copy(update={"options": RunOptions(retry=fixed(max_attempts=3, delay_ms=5))})
    item = header_item(run, ETAG, Shards())
    text = unpacked(item).replace('"delay_ms":5', '"delay_ms":5,"jitter":{"of":1}')
    assert read_header({**item, "d": text}).options == run.options


def test_a_slot_is_its_key_an_etag_and_readable_json() -> None:
    assert SLOT_ITEM.keys() == {"PK", "SK", "v", "etag", "d"}
    assert str(SLOT_ITEM["d"]).startswith('{"position":3,"records":[{"type":"task_completed",')
    assert "null" not in str(SLOT_ITEM["d"])


def test_an_item_is_compressed_only_above_1024_bytes_and_only_where_that_saves_a_write_unit() -> None:
    def sized(letters: int) -> Item:
        record = TaskCompleted(at=TimestampMs(1), task_id="t" * letters, attempt=1, output={"kind": "inline"})
        return slot_item("default", HEADER.id, SLOT.model_copy(update={"records": (record,)}), ETAG)

    just_fits = 1024 - item_size(sized(1)) + 1
    assert item_size(sized(just_fits)) == 1024
    assert isinstance(sized(just_fits)["d"], str)
    assert isinstance(sized(just_fits + 1)["d"], bytes)
    assert read(sized(just_fits + 1)) == read_slot(sized(just_fits + 1))
    incompressible = slot_item("default", HEADER.id, SLOT.model_copy(update={"checkpoint_id": incompressible_text(1000)}), ETAG)
    assert item_size(incompressible) > 1024
    assert isinstance(incompressible["d"], str)


def incompressible_text(characters: int) -> str:
    """Letters that zlib cannot shrink by a write unit."""
    state, letters = 1, []
    for _ in range(characters):
        state = state * 6364136223846793005 % 2**64 + 1442695040888963407
        letters.append(chr(0x100 + state // 2**40 % 0x600))
    return "".join(letters)


def test_a_compressed_item_is_smaller_and_reads_the_same() -> None:
    large = ITEMS["slot_compressed"]
    assert isinstance(large, type(SLOT))
    item = slot_item("default", HEADER.id, large, ETAG)
    assert isinstance(item["d"], bytes)
    assert item_size(item) < len(zlib.decompress(item["d"]))
    assert read_slot(item) == large


def test_only_the_header_knows_its_etag_and_no_item_holds_it_twice() -> None:
    assert read_header(HEADER_ITEM) == NEW_RUN.model_copy(update={"etag": ETAG})
    assert "etag" not in unpacked(HEADER_ITEM)


def test_an_unknown_record_becomes_one_and_survives_being_written_back() -> None:
    record = '{"type":"teleported","at":5,"to":{"planet":"Mars","via":null},"fuel":3}'
    text = unpacked(HEADER_ITEM).replace('"records":[', f'"records":[{record},')
    run = read_header({**HEADER_ITEM, "d": text})
    unknown, *known = run.tail.records
    assert isinstance(unknown, UnknownRecord)
    assert (unknown.type, unknown.at) == ("teleported", 5)
    assert tuple(known) == NEW_RUN.tail.records
    assert unpacked(header_item(run, ETAG, Shards())) == text


def test_fields_of_a_newer_release_are_ignored() -> None:
    item = {**SLOT_ITEM, "d": str(SLOT_ITEM["d"]).replace('{"position"', '{"colour":"blue","position"', 1), "w": 1}
    assert read(item) == SLOT


@pytest.mark.parametrize("item", [HEADER_ITEM, SLOT_ITEM], ids=["header", "slot"])
def test_a_newer_format_is_refused_by_name_with_what_to_do(item: Item) -> None:
    with pytest.raises(
        UnsupportedVersion, match=r"RUN#default.*format 2; this one reads format 1. Upgrade this process"
    ) as refused:
        read({**item, "v": 2})
    assert refused.value.fields == {"format": 2}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"d": "{}"}, "d.position"),
        ({"d": "not JSON, secret"}, "d"),
        ({"d": b"not zlib"}, "d"),
        ({"d": 1}, "d"),
        ({"d": '{"position":0,"records":["secret"],"revision":0,"at":1}'}, "d.records.0"),
        ({"v": "1"}, "v"),
        ({"SK": "X#1"}, "SK"),
    ],
)
def test_an_item_of_another_shape_is_named_with_the_place_and_without_its_values(
    change: dict[str, str | bytes | int], place: str
) -> None:
    with pytest.raises(InternalError, match=f"at {place}") as refused:
        read({**SLOT_ITEM, **change})
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_item_without_content_or_version_is_named() -> None:
    for name in ("d", "v"):
        with pytest.raises(InternalError, match="RUN#default"):
            read({key: value for key, value in SLOT_ITEM.items() if key != name})


def test_an_error_of_an_offer_is_cut_between_two_characters() -> None:
    def stored(text: str) -> str | None:
        run = NEW_RUN.model_copy(update={"offer": Offer(attempts=1, last_error=text)})
        return read_header(header_item(run, ETAG, Shards())).offer.last_error

    assert stored("x" * 200) == "x" * 200
    assert stored("x" * 201) == "x" * 200
    assert stored("x" + "é" * 200) == "x" + "é" * 99


@pytest.mark.parametrize("message", [item for item in ITEMS.values() if isinstance(item, Message)], ids=str)
def test_a_message_reads_as_it_was_written(message: Message) -> None:
    assert read(message_item("default", HEADER.id, message, ETAG)) == message


def test_a_watcher_reads_as_it_was_written_and_is_the_condition_of_its_removal() -> None:
    watcher = ITEMS["watcher"]
    assert isinstance(watcher, Watcher)
    item = watcher_item("default", HEADER.id, watcher, ETAG)
    assert item.keys() == {"PK", "SK", "v", "etag", "d"}
    assert read(item) == watcher.model_copy(update={"etag": ETAG})
    assert "etag" not in unpacked(item)


def test_a_reference_of_an_event_reads_as_it_was_written() -> None:
    sent = SentEvent("order:paid", "webhook 17 / é")
    item = event_reference_item("default", HEADER.id, sent, ETAG)
    assert item.keys() == {"PK", "SK", "v", "etag", "d"}
    assert read(item) == sent


@pytest.mark.parametrize("header", [item for item in ITEMS.values() if isinstance(item, Run)], ids=lambda run: run.etag)
def test_a_header_reads_as_it_was_written(header: Run) -> None:
    assert read(header_item(header, ETAG, Shards())) == header.model_copy(update={"etag": ETAG})


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_every_record_reads_as_it_was_written(record: KnownRecord) -> None:
    slot = SLOT.model_copy(update={"records": (record,)})
    assert read(slot_item("default", HEADER.id, slot, ETAG)) == slot
