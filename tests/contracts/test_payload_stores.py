"""Payload stores: the table's on every engine, and the folder's."""

from hashlib import sha256
from pathlib import Path

import pytest

from aiki_push.adapters.payloads.folder import FolderPayloadStore
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.table import Always, Key, Put, Table
from aiki_push.domain.errors import InternalError, InvalidRequest, NotFound, PayloadTooLarge, StorageUnavailable
from aiki_push.domain.values import PayloadReference, RunId
from aiki_push.ports.payloads import PayloadStore
from aiki_push.testing import CountingTable, FakeClock, FaultyTable, SequentialEntropy
from tests.contracts.engines import table_of
from tests.contracts.stored_examples import run_id

RUN = run_id(1)
CONTENT = b'{"lines":[1,2,3]}'
DIGEST = sha256(CONTENT).hexdigest()


@pytest.fixture(params=["folder", "memory table", "dynamodb table"])
def payloads(request: pytest.FixtureRequest) -> PayloadStore:
    if request.param == "folder":
        return FolderPayloadStore(request.getfixturevalue("tmp_path"), max_bytes=390 * 1024)
    return TablePayloadStore(table_of(request.param.split()[0], request), FakeClock(), SequentialEntropy())


def test_what_was_put_is_got_by_its_hash(payloads: PayloadStore) -> None:
    assert payloads.put("default", RUN, CONTENT) == PayloadReference(run_id=RUN, sha256=DIGEST, size=len(CONTENT))
    assert payloads.get("default", RUN, DIGEST) == CONTENT


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff", "é".encode(), bytes(range(256)) * 1560], ids=["empty", "bytes", "text", "390 KB"]
)
def test_any_bytes_come_back_as_they_were(payloads: PayloadStore, content: bytes) -> None:
    reference = payloads.put("default", RUN, content)
    assert payloads.get("default", RUN, reference.sha256) == content


def test_putting_again_changes_nothing(payloads: PayloadStore) -> None:
    first = payloads.put("default", RUN, CONTENT)
    assert payloads.put("default", RUN, CONTENT) == first
    assert payloads.get("default", RUN, DIGEST) == CONTENT


def test_content_over_the_limit_is_refused_with_its_size_and_not_stored(payloads: PayloadStore) -> None:
    content = b"x" * (390 * 1024 + 1)
    with pytest.raises(PayloadTooLarge) as refused:
        payloads.put("default", RUN, content)
    assert refused.value.fields == {"size": 390 * 1024 + 1, "limit": 390 * 1024}
    with pytest.raises(NotFound):
        payloads.get("default", RUN, sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("namespace", "run", "digest"),
    [
        ("other", RUN, DIGEST),
        ("default", run_id(2), DIGEST),
        ("default", RUN, "0" * 64),
        ("default", RUN, ""),
        ("default", RUN, "."),
        ("default", f"{RUN}/../{RUN}", DIGEST),
        ("default", "..", f"{RUN}/{DIGEST}"),
        ("default/../default", RUN, DIGEST),
        ("..", "default", f"{RUN}/{DIGEST}"),
        ("default", RUN, f"../{RUN}/{DIGEST}"),
        ("default", RUN, f"{DIGEST}\n"),
    ],
)
def test_other_names_find_nothing(payloads: PayloadStore, namespace: str, run: str, digest: str) -> None:
    payloads.put("default", RUN, CONTENT)
    with pytest.raises(NotFound):
        payloads.get(namespace, run, digest)


@pytest.mark.parametrize(
    ("namespace", "run"), [("..", RUN), (".", RUN), ("", RUN), ("a/b", RUN), ("default", RunId("..")), ("default", RunId("a"))]
)
def test_a_name_that_could_lead_out_of_the_folder_is_refused(tmp_path: Path, namespace: str, run: RunId) -> None:
    root = tmp_path / "root"
    with pytest.raises(InvalidRequest, match="namespace or run_id"):
        FolderPayloadStore(root).put(namespace, run, CONTENT)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_holds_one_complete_file_for_each_payload(tmp_path: Path) -> None:
    store = FolderPayloadStore(tmp_path)
    for _ in range(2):
        store.put("default", RUN, CONTENT)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / "default" / RUN / DIGEST]
    assert files[0].read_bytes() == CONTENT


def test_a_file_that_was_changed_is_not_given_out_and_is_mended_by_putting_again(tmp_path: Path) -> None:
    store = FolderPayloadStore(tmp_path)
    store.put("default", RUN, CONTENT)
    (tmp_path / "default" / RUN / DIGEST).write_bytes(b"forged")
    with pytest.raises(InternalError, match="hash does not match"):
        store.get("default", RUN, DIGEST)
    store.put("default", RUN, CONTENT)
    assert store.get("default", RUN, DIGEST) == CONTENT


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "default").write_text("a file where a folder should be")
    with pytest.raises(StorageUnavailable, match="cannot be written"):
        FolderPayloadStore(tmp_path).put("default", RUN, CONTENT)


@pytest.mark.parametrize("packed", [b"not zlib", "text", 1])
def test_an_item_that_was_changed_is_not_given_out(table: Table, packed: str | bytes | int) -> None:
    store = TablePayloadStore(table, FakeClock(), SequentialEntropy())
    table.write([Put({"PK": f"RUN#default#{RUN}", "SK": f"P#{DIGEST}", "v": 1, "d": packed}, Always())], token="t")
    with pytest.raises(InternalError, match="hash does not match"):
        store.get("default", RUN, DIGEST)


def test_a_payload_lies_beside_the_items_of_its_run_and_is_compressed(counting: CountingTable) -> None:
    TablePayloadStore(counting, FakeClock(), SequentialEntropy()).put("default", RUN, b"x" * 300 * 1024)
    assert counting.counts.write_units == 1
    assert counting.get(Key(f"RUN#default#{RUN}", f"P#{sha256(b'x' * 300 * 1024).hexdigest()}")) is not None


def test_a_payload_whose_answer_was_lost_is_stored(faulty: FaultyTable) -> None:
    store = TablePayloadStore(faulty, FakeClock(), SequentialEntropy())
    lost = iter([StorageUnavailable("lost")])

    def lose(_: object) -> None:
        error = next(lost, None)
        if error is not None:
            raise error

    faulty.after_write = lose
    store.put("default", RUN, CONTENT)
    assert store.get("default", RUN, DIGEST) == CONTENT
