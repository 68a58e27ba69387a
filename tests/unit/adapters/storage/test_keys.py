from itertools import product

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Key
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import DueRun, Queue

RUN = RunId("01JGFJJZ00000000000000000A")
NOW = TimestampMs(1_767_225_600_000)
HOSTILE = ("a", "a#b", "b", "#", "%23", "%", "%25", "a%23b", "", "#L#00000000")


def test_legal_names_are_kept_as_they_are() -> None:
    assert keys.header("shop-1", RUN) == Key(f"RUN#shop-1#{RUN}", "H")
    assert keys.slot("shop-1", RUN, 7) == Key(f"RUN#shop-1#{RUN}", "L#00000007")
    assert keys.message("shop-1", RUN, 12) == Key(f"RUN#shop-1#{RUN}", "I#00000012")
    assert keys.payload("shop-1", RUN, "ab12") == Key(f"RUN#shop-1#{RUN}", "P#ab12")
    assert keys.endpoint("shop-1", "a.b:c_d-e") == Key("ENDPOINTS#shop-1", "a.b:c_d-e")


def test_no_name_can_forge_a_separator() -> None:
    pairs = list(product(HOSTILE, repeat=2))
    assert len({keys.header(*pair) for pair in pairs}) == len(pairs)
    assert len({keys.endpoint(*pair) for pair in pairs}) == len(pairs)
    queues = [Queue(*parts) for parts in product(HOSTILE[:6], repeat=4)]
    assert len({keys.ready_entry(queue, RUN, NOW, 5)[0] for queue in queues}) == len(queues)


@pytest.mark.parametrize(("namespace", "run_id"), list(product(HOSTILE, repeat=2)))
def test_index_entries_give_back_the_names_they_were_made_of(namespace: str, run_id: str) -> None:
    entry = keys.due_entry(namespace, run_id, NOW, 1)[1]
    assert keys.due_run(entry) == DueRun(namespace, RunId(run_id), NOW)
    assert keys.ready_run(keys.ready_entry(Queue(namespace, "w", "v", "p"), run_id, NOW, 5)[1]) == run_id


def test_header_inbox_and_log_are_one_range_without_the_payloads() -> None:
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
