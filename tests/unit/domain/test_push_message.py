import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.push_message import PushData, PushMessage, encode_push, parse_push, webhook_id
from aiki_push.domain.values import Json, RunId, TimestampMs

RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
DATA = PushData(
    run_id=RUN_ID,
    workflow="order",
    version="1.0.0",
    pool="eu",
    revision=7,
    namespace="shop",
    audience="https://x.example/a?b=1&c=<d>🙂",
)
AT = TimestampMs(1_769_851_800_125)
BODY = (
    '{"v":1,"type":"run.ready","timestamp":"2026-01-31T09:30:00.125Z","data":{"run_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV",'
    '"workflow":"order","version":"1.0.0","pool":"eu","revision":7,"namespace":"shop",'
    '"audience":"https://x.example/a?b=1&c=<d>🙂"}}'
).encode()


def with_fields(**fields: Json) -> bytes:
    return json.dumps(json.loads(BODY) | fields).encode()


def with_data(**fields: Json) -> bytes:
    return with_fields(data=json.loads(BODY)["data"] | fields)


def faults(body: bytes) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as refused:
        parse_push(body)
    errors = refused.value.fields["errors"]
    assert isinstance(errors, list)
    found: dict[str, str] = {}
    for error in errors:
        assert isinstance(error, dict)
        assert sorted(error) == ["field", "message"]
        found[str(error["field"])] = str(error["message"])
    return found


def test_a_push_is_encoded_as_documented_to_the_byte() -> None:
    assert encode_push(DATA, AT) == BODY


def test_a_push_is_read_as_it_was_written() -> None:
    assert parse_push(BODY) == PushMessage(v=1, type="run.ready", timestamp="2026-01-31T09:30:00.125Z", data=DATA)


def test_a_run_without_a_pool_for_an_endpoint_without_a_name_is_written_with_nulls() -> None:
    data = DATA.model_copy(update={"pool": None, "audience": None})

    assert json.loads(encode_push(data, AT))["data"] == {
        "run_id": RUN_ID,
        "workflow": "order",
        "version": "1.0.0",
        "pool": None,
        "revision": 7,
        "namespace": "shop",
        "audience": None,
    }
    assert parse_push(encode_push(data, AT)).data == data


@pytest.mark.parametrize(
    ("at", "timestamp"),
    [(0, "1970-01-01T00:00:00.000Z"), (999, "1970-01-01T00:00:00.999Z"), (1_800_000_000_000, "2027-01-15T08:00:00.000Z")],
)
def test_a_timestamp_always_has_three_decimals(at: int, timestamp: str) -> None:
    assert parse_push(encode_push(DATA, TimestampMs(at))).timestamp == timestamp


def test_unknown_fields_are_ignored() -> None:
    assert parse_push(with_fields(later=[1], data=json.loads(BODY)["data"] | {"later": {"v": 2}})) == parse_push(BODY)


def test_a_newer_version_is_refused_alone_whatever_else_has_changed() -> None:
    body = json.dumps({"v": 2, "type": "run.ready", "runs": []}).encode()

    assert faults(body) == {"v": "Newer than version 1, which this release reads; upgrade the receiving side"}


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_never_was_is_refused(version: int) -> None:
    assert faults(with_fields(v=version)) == {"v": "Input should be 1"}


@pytest.mark.parametrize("version", [True, 1.0, "1", None, [1]])
def test_a_version_of_another_json_type_is_refused(version: Json) -> None:
    assert faults(with_fields(v=version)) == {"v": "Input should be a valid integer"}


def test_another_type_of_message_is_refused_alone() -> None:
    assert faults(with_fields(type="run.finished", data={})) == {"type": "Input should be 'run.ready'"}


def test_every_missing_field_is_named() -> None:
    assert faults(b'{"v":1,"type":"run.ready","data":{}}') == dict.fromkeys(
        [
            "timestamp",
            "data.run_id",
            "data.workflow",
            "data.version",
            "data.pool",
            "data.revision",
            "data.namespace",
            "data.audience",
        ],
        "Field required",
    )


@pytest.mark.parametrize("field", ["v", "type"])
def test_a_missing_version_or_type_is_named(field: str) -> None:
    body = json.loads(BODY)
    del body[field]

    assert faults(json.dumps(body).encode()) == {field: "Field required"}


WRONG: list[tuple[str, Json]] = [
    ("run_id", "01arz3ndektsv4rrffq69g5fav"),
    ("run_id", "x"),
    ("run_id", RUN_ID + "\n"),
    ("workflow", ""),
    ("workflow", "a#b"),
    ("workflow", "a" * 129),
    ("version", 1),
    ("pool", ""),
    ("pool", "é"),
    ("revision", -1),
    ("revision", "7"),
    ("revision", 7.0),
    ("revision", True),
    ("revision", 2**53),
    ("revision", None),
    ("namespace", "a/b"),
    ("namespace", None),
    ("audience", 5),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_field_is_named(field: str, value: Json) -> None:
    assert list(faults(with_data(**{field: value}))) == [f"data.{field}"]


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        "2026-01-31T09:30:00Z",
        "2026-01-31T09:30:00.125+00:00",
        "2026-01-31 09:30:00.125Z",
        "٢٠٢٦-01-31T09:30:00.125Z",
        1_769_851_800,
    ],
)
def test_a_timestamp_in_another_form_is_named(timestamp: Json) -> None:
    assert list(faults(with_fields(timestamp=timestamp))) == ["timestamp"]


@pytest.mark.parametrize("data", [None, [], "x"])
def test_data_that_is_no_object_is_named(data: Json) -> None:
    assert list(faults(with_fields(data=data))) == ["data"]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", BODY[:-1], BODY + b"x", b"[]", b"null", b'"x"', b"[" * 60_000, BODY.replace(b"7", b"9" * 5_000)],
    ids=["empty", "not UTF-8", "cut short", "followed by more", "a list", "null", "a text", "deeply nested", "a number too long"],
)
def test_a_body_that_is_no_json_object_is_named_as_a_whole(body: bytes) -> None:
    assert list(faults(body)) == ["body"]


def test_the_error_says_what_is_wrong_and_repeats_no_value() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_push(with_data(revision="PRIVATE", namespace="PRIVATE#", pool="PRIVATE#"))

    assert refused.value.detail.startswith(
        "The body is not a push that this release reads. data.pool: String should match pattern"
    )
    assert "PRIVATE" not in f"{refused.value!s}{refused.value.fields}"
    assert refused.value.__context__ is None


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_push_or_an_invalid_request(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_push(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(field=st.sampled_from(["v", "type", "timestamp", "data"]), value=JSON)
def test_any_json_in_any_field_gives_the_push_or_an_error_about_that_field(field: str, value: Json) -> None:
    try:
        outcome = parse_push(with_fields(**{field: value})).data == DATA
    except InvalidRequest as refused:
        outcome = refused.detail.startswith(f"The body is not a push that this release reads. {field}")

    assert outcome


def test_the_webhook_id_tells_runs_revisions_and_offers_apart_and_has_no_full_stop() -> None:
    other = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAW")
    ids = [
        webhook_id(RUN_ID, 7, 1),
        webhook_id(RUN_ID, 7, 2),
        webhook_id(RUN_ID, 71, 2),
        webhook_id(RUN_ID, 7, 12),
        webhook_id(other, 7, 1),
    ]

    assert ids[0] == webhook_id(RUN_ID, 7, 1) == "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV_7_1"
    assert len(set(ids)) == 5
    assert not any("." in one for one in ids)
