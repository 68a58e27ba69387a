from hashlib import sha256
from itertools import product

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Key
from aiki_push.domain.run_states import STATUSES
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import DueRun, ListedRun, ListPlace, Queue

RUN = RunId("01JGFJJZ00000000000000000A")
OTHER = RunId("01JGFJJZ00000000000000000B")
NOW = TimestampMs(1_767_225_600_000)
HOSTILE = ("a", "a#b", "b", "#", "%23", "%", "%25", "a%23b", "", "#L#00000000")


def test_legal_names_are_kept_as_they_are() -> None:
    assert keys.header("shop-1", RUN) == Key(f"RUN#shop-1#{RUN}", "H")
    assert keys.slot("shop-1", RUN, 7) == Key(f"RUN#shop-1#{RUN}", "L#00000007")
    assert keys.message("shop-1", RUN, 12) == Key(f"RUN#shop-1#{RUN}", "I#00000012")
    assert keys.payload("shop-1", RUN, "ab12") == Key(f"RUN#shop-1#{RUN}", "P#ab12")
    assert keys.watcher("shop-1", RUN, OTHER) == Key(f"RUN#shop-1#{RUN}", f"W#{OTHER}")
    assert keys.endpoint("shop-1", "a.b:c_d-e") == Key("ENDPOINTS#shop-1", "a.b:c_d-e")
    assert keys.list_partitions("shop-1", "orders", 2) == ("shop-1#orders#0", "shop-1#orders#1")
    assert keys.created(ListPlace(NOW, RUN), "1.0.0") == f"001767225600000#{RUN}#1.0.0"
    assert keys.claimed_entry("shop-1", "r-1", "any") == ("CLAIMS#shop-1#r-1", "any")


def test_a_reference_is_hashed_and_so_has_a_short_key_whatever_it_says() -> None:
    key = keys.reference("shop-1", "orders", "1.0.0", "order 7")
    assert key == Key(f"REF#shop-1#orders#1.0.0#{sha256(b'order 7').hexdigest()}", "-")
    assert len(key.pk) == len(keys.reference("shop-1", "orders", "1.0.0", "🧾" * 256).pk)


def test_what_is_no_legal_name_is_escaped() -> None:
    assert keys.header("a#b%", "c#d") == Key("RUN#a%23b%25#c%23d", "H")
    assert keys.watcher("a#b%", "c#d", "e#f%") == Key("RUN#a%23b%25#c%23d", "W#e%23f%25")
    event = keys.event_reference("a#b%", "c#d", "e#f%", "g#h")
    assert event == Key("EVENTREF#a%23b%25#c%23d", f"e%23f%25#{sha256(b'g#h').hexdigest()}")


def test_a_reference_of_an_event_lies_beside_those_of_its_run_and_is_hashed_like_any() -> None:
    key = keys.event_reference("shop-1", RUN, "order:paid", "order 7")
    assert key == Key(f"EVENTREF#shop-1#{RUN}", f"order:paid#{sha256(b'order 7').hexdigest()}")
    assert len(key.sk) == len(keys.event_reference("shop-1", RUN, "order:paid", "🧾" * 256).sk)


def test_no_name_can_forge_a_separator() -> None:
    pairs = list(product(HOSTILE, repeat=2))
    assert len({keys.header(*pair) for pair in pairs}) == len(pairs)
    assert len({keys.endpoint(*pair) for pair in pairs}) == len(pairs)
    queues = [Queue(*parts) for parts in product(HOSTILE[:6], repeat=4)]
    assert len({keys.ready_entry(queue, RUN, NOW, 5)[0] for queue in queues}) == len(queues)
    references = list(product(HOSTILE[:6], repeat=4))
    assert len({keys.reference(*parts) for parts in references}) == len(references)
    assert len({keys.event_reference(*parts) for parts in references}) == len(references)
    triples = list(product(HOSTILE[:6], repeat=3))
    assert len({keys.watcher(*parts) for parts in triples}) == len(triples)
    assert len({keys.list_partitions(one, other, 1) for one, other in pairs}) == len(pairs)
    assert len({keys.claimed_entry(one, other, "same")[0] for one, other in pairs}) == len(pairs)


@pytest.mark.parametrize(("namespace", "run_id"), list(product(HOSTILE, repeat=2)))
def test_index_entries_give_back_the_names_they_were_made_of(namespace: str, run_id: str) -> None:
    entry = keys.due_entry(namespace, run_id, NOW, 1)[1]
    assert keys.due_run(entry) == DueRun(namespace, RunId(run_id), NOW)
    assert keys.ready_run(keys.ready_entry(Queue(namespace, "w", "v", "p"), run_id, NOW, 5)[1]) == run_id
    place = ListPlace(NOW, RunId(run_id))
    assert keys.listed_run(keys.created(place, namespace)) == ListedRun(place, namespace)


@pytest.mark.parametrize("version", ["1", "~", "!"])
def test_after_a_place_come_those_that_are_older_and_not_the_place_itself(version: str) -> None:
    older, newer = RunId(RUN[:-1] + "9"), RunId(RUN[:-1] + "B")
    query = keys.listed("by_state", "p", ListPlace(NOW, RUN), 10)
    places = {
        ListPlace(TimestampMs(NOW - 1), newer): True,
        ListPlace(NOW, older): True,
        ListPlace(NOW, RUN): False,
        ListPlace(NOW, newer): False,
        ListPlace(TimestampMs(NOW + 1), older): False,
    }
    assert {place: query.low <= keys.created(place, version) <= query.high for place in places} == places
    first = keys.listed("by_state", "p", None, 10)
    assert all(first.low <= keys.created(place, version) <= first.high for place in places)


def test_each_group_of_states_holds_its_statuses() -> None:
    groups = {group: [status for status in STATUSES if keys.group_of(status) == group] for group in keys.GROUPS}
    assert {group: statuses for group, statuses in groups.items() if group != "active"} == {
        "stalled": ["stalled"],
        "completed": ["completed"],
        "failed": ["failed"],
        "cancelled": ["cancelled"],
    }
    assert sum(map(len, groups.values())) == len(STATUSES)


@pytest.mark.parametrize(("due_at", "is_due"), [(NOW - 1, True), (NOW, True), (NOW + 1, False)])
def test_an_entry_tells_whether_its_run_is_due(due_at: int, is_due: bool) -> None:
    assert keys.is_due(keys.due_entry("shop", RUN, TimestampMs(due_at), 1)[1], NOW) is is_due


def test_header_inbox_and_log_are_one_range_without_payloads_and_watchers() -> None:
    query = keys.contents("shop", RUN)

    def covers(key: Key) -> bool:
        return key.pk == query.pk and query.low <= key.sk <= query.high

    within = (
        keys.header("shop", RUN),
        keys.message("shop", RUN, 1),
        keys.slot("shop", RUN, 0),
        keys.slot("shop", RUN, 99_999_999),
    )
    assert all(map(covers, within))
    assert sorted(within, key=lambda key: key.sk) == list(within)
    assert not covers(keys.payload("shop", RUN, "00"))
    assert not covers(keys.watcher("shop", RUN, OTHER))


@pytest.mark.parametrize("run_id", ["0" * 26, "7" + "Z" * 25])
def test_watchers_are_a_range_of_their_own_from_the_lowest_id_to_the_highest(run_id: str) -> None:
    query = keys.watchers("shop", RUN, 10)
    watcher, payload = keys.watcher("shop", RUN, run_id), keys.payload("shop", RUN, "f" * 64)
    assert (watcher.pk, query.low <= watcher.sk <= query.high) == (query.pk, True)
    assert not query.low <= payload.sk <= query.high
    assert query.page_size == 10


def test_a_run_is_in_one_of_the_partitions_of_its_list_and_all_are_used() -> None:
    partitions = keys.list_partitions("shop", "orders", 8)
    found = [keys.list_partition("shop", "orders", f"01J{number:023d}", 8) for number in range(200)]
    assert {*found} == {*partitions}
    assert max(map(found.count, found)) < 50


def test_shards_of_the_due_index_are_stable_and_all_used() -> None:
    shards = [keys.due_entry("shop", f"01J{number:023d}", NOW, 8)[0] for number in range(200)]
    assert set(shards) == {f"DUE#{shard}" for shard in range(8)}
    assert max(map(shards.count, shards)) < 50
    assert (
        keys.due_entry("shop", RUN, NOW, 8) == keys.due_entry("other", RUN, NOW, 8)[:1] + keys.due_entry("shop", RUN, NOW, 8)[1:]
    )


@pytest.mark.parametrize("after", [-5, -1, 0, 99_999_998, 99_999_999, 99_999_999_998, 10**11])
def test_the_bounds_of_a_range_are_never_the_wrong_way_round(after: int) -> None:
    """DynamoDB refuses a range whose lower bound is above its upper bound."""
    for query in (keys.slots("shop", RUN, after=after), keys.messages("shop", RUN, after=after)):
        assert query.low <= query.high
