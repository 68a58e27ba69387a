import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import date
from enum import IntEnum, StrEnum
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.domain.canonical_json import (
    MAX_INTEGER,
    NO_INPUT_HASH,
    NotJson,
    canonical_json,
    check_json,
    compact_json,
    input_hash,
    parse_json,
)
from aiki_push.domain.errors import AikiError, NotSerializable
from aiki_push.domain.values import Json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = (
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 1


def nested(levels: int, innermost: Json = None) -> Json:
    value: Json = [] if innermost is None else innermost
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text", "sha256"),
    [
        (None, '{"input":null}', "73c92acd67f108f29ffc7b792c22978979900de72197dd828950c5c98456efb6"),
        ("info", '{"input":"info"}', "eee174de222a1998026eed89c79330efdeb1f46a5862d1c5ce44132dc4bd8851"),
        (1, '{"input":1}', "44745faaac4f3c1540a8c2974578aea85c08bb89ee2caf3afd1a24f9724f280f"),
        (1.0, '{"input":1}', "44745faaac4f3c1540a8c2974578aea85c08bb89ee2caf3afd1a24f9724f280f"),
        (-0.0, '{"input":0}', "c8af5390f58ef586871fd7c0d57716127c5c5cd49fb1d0fb31e49e0c4e58d826"),
        (1e21, '{"input":1e+21}', "00f1bf01e053150eef1248f3b8b7a37cbdf88e887ac0663f9fedd1593bdced91"),
        (1e-7, '{"input":1e-7}', "0cebf384e11431813e944658cc49241014e576e8885db04d993ed94fe666d964"),
        ({"b": 2, "a": 1}, '{"input":{"a":1,"b":2}}', "7e916c4ebcfdd07c6e9d4f6e3393cf48452e66ba21017d4fc409f37bda4d5f6c"),
        (
            [3, 1, {"d": 1, "c": []}],
            '{"input":[3,1,{"c":[],"d":1}]}',
            "14c0e386894d788de0cc095b510ea5263ce45145280efbb606fc61a8507d420b",
        ),
        (
            {"é": True, "z": 0.1},
            '{"input":{"z":0.1,"é":true}}',
            "9f3627583c1e1b9be62bb8b064c28f91d5548dc444bc817441b33c0a2c5e8633",
        ),
        (
            {"\uff21": 2, "\U0001f600": 1},
            '{"input":{"\U0001f600":1,"\uff21":2}}',
            "00b44c0b739319b06a5e8d213b073ffb4112732f0ee9af71809ea73f2da28360",
        ),
    ],
)
def test_inputs_hash_as_the_typescript_implementation_hashes_them(value: Json, text: str, sha256: str) -> None:
    assert (canonical_json({"input": value}), input_hash(value)) == (text, sha256)


def test_no_input_hashes_as_an_empty_object_and_none_does_not() -> None:
    assert hashlib.sha256(canonical_json({}).encode()).hexdigest() == NO_INPUT_HASH != input_hash(None)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.30000000000000004"),
        (4.35, "4.35"),
        (100.0, "100"),
        (1e15, "1000000000000000"),
        (-1e16, "-10000000000000000"),
        (2.0**60, "1152921504606847000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1.5e21, "1.5e+21"),
        (-0.000001, "-0.000001"),
        (1.5e-6, "0.0000015"),
        (1.25e-7, "1.25e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (MAX_INTEGER, "9007199254740992"),
        (-MAX_INTEGER, "-9007199254740992"),
        (float(MAX_INTEGER), "9007199254740992"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    assert canonical_json(number) == text


def test_strings_are_escaped_as_ecmascript_escapes_them() -> None:
    assert canonical_json('\0\1\b\t\n\f\r\x1f\x7f\u2028"\\/é😀') == r'"\u0000\u0001\b\t\n\f\r\u001f' + '\x7f\u2028\\"\\\\/é😀"'


def test_keys_sort_by_utf16_code_units_at_every_depth() -> None:
    keys = ["\uff21", "\U0001f600", "\ue000", "z", "é", "", "a"]
    assert canonical_json([dict.fromkeys(keys)]) == '[{"":null,"a":null,"z":null,"é":null,"😀":null,"\ue000":null,"\uff21":null}]'


def test_true_and_one_are_different_values() -> None:
    assert (canonical_json([True, 1, False, 0]), input_hash(True) == input_hash(1)) == ("[true,1,false,0]", False)


@given(st.dictionaries(texts, values, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_keys_never_changes_the_canonical_text(members: dict[str, Json], random: Random) -> None:
    keys = list(members)
    random.shuffle(keys)
    assert canonical_json({key: members[key] for key in keys}) == canonical_json(members)


@given(values)
def test_the_canonical_text_holds_the_value_when_numbers_are_read_as_doubles(value: Json) -> None:
    assert json.loads(canonical_json(value), parse_int=float) == value


@given(values)
def test_canonical_text_is_canonical_already(value: Json) -> None:
    text = canonical_json(value)
    assert canonical_json(json.loads(text, parse_int=float)) == text


@given(values)
def test_the_compact_text_gives_every_value_back_with_its_types(value: Json) -> None:
    assert repr(parse_json(compact_json(value))) == repr(value)
    assert repr(parse_json(compact_json(value).encode())) == repr(value)


def test_the_compact_text_keeps_order_and_floats_and_has_no_spaces() -> None:
    assert compact_json({"b": [1.0, 1, -0.0, 1e21, "é"], "a": None}) == '{"b":[1.0,1,-0.0,1e+21,"é"],"a":null}'


BAD_VALUES: Sequence[tuple[object, str]] = [
    (float("nan"), "is nan"),
    (float("inf"), "is inf"),
    (float("-inf"), "is -inf"),
    (MAX_INTEGER + 1, "is an integer beyond ±2^53: use str"),
    (-MAX_INTEGER - 1, "is an integer beyond ±2^53: use str"),
    ("a\ud800b", "holds half of a surrogate pair, which is not Unicode text"),
    ({"a": 1, 2: 3}, "has a key of type int: keys must be str"),
    ({Colour.RED: 1}, "has a key of type Colour: keys must be str"),
    ({"\udfff": 1}, "has a key with half of a surrogate pair, which is not Unicode text"),
    ((1, 2), "is tuple: use None, bool, int, float, str, list or dict"),
    (b"x", "is bytes: use None, bool, int, float, str, list or dict"),
    (date(2026, 1, 2), "is date: use None, bool, int, float, str, list or dict"),
    (Colour.RED, "is Colour: use None, bool, int, float, str, list or dict"),
    (Level.HIGH, "is Level: use None, bool, int, float, str, list or dict"),
    (OrderedDict(a=1), "is OrderedDict: use None, bool, int, float, str, list or dict"),
    (nested(121), "is inside more than 100 lists and dicts, or in itself"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_VALUES)
def test_what_json_cannot_give_back_is_refused_by_every_function(bad: object, reason: str) -> None:
    for refuse in (canonical_json, input_hash, compact_json, lambda value: check_json(value, at="x")):
        with pytest.raises(NotSerializable) as refused:
            refuse(bad)
        assert str(refused.value).endswith(" " + reason)


def test_the_message_names_the_path_and_nothing_else_of_the_value() -> None:
    order = {"secret": "hunter2", "items": [{"price": 1.0}, {"price": float("nan")}]}
    with pytest.raises(NotSerializable) as refused:
        canonical_json(order, at="input")
    assert str(refused.value) == "input.items[1].price is nan"


def test_an_input_is_called_input_where_it_is_hashed() -> None:
    with pytest.raises(NotSerializable) as refused:
        input_hash([b""])
    assert str(refused.value) == "input[0] is bytes: use None, bool, int, float, str, list or dict"


@given(
    st.lists(st.integers(0, 3) | st.sampled_from(["price", "größe", "two words", 'quo"te', "😀", ""]), max_size=8),
    st.sampled_from([entry for entry in BAD_VALUES if not isinstance(entry[0], list)]),
    values,
)
def test_the_path_leads_to_the_planted_value(steps: list[int | str], bad: tuple[object, str], sibling: Json) -> None:
    value, path = bad[0], ""
    for step in reversed(steps):
        value = [*[sibling] * step, value, float("nan")] if isinstance(step, int) else {"before": sibling, step: value}
        path = (f"[{json.dumps(step)}]" if isinstance(step, int) or not step.isidentifier() else f".{step}") + path
    with pytest.raises(NotSerializable) as refused:
        check_json(value, at="input")
    assert str(refused.value) == f"input{path} {bad[1]}"


def test_a_value_may_nest_100_levels_and_no_more() -> None:
    empty: tuple[Json, Json] = ([], {})
    for innermost in empty:
        check_json(nested(100, innermost), at="input")
        with pytest.raises(NotSerializable, match="more than 100 lists"):
            check_json(nested(101, innermost), at="input")


def test_a_text_has_room_for_the_record_around_the_deepest_value() -> None:
    assert parse_json(compact_json(nested(120))) == nested(120)


@pytest.mark.parametrize("wrap", [lambda loop: loop.append(loop), lambda loop: loop.append({"again": loop})])
def test_a_value_that_holds_itself_is_refused(wrap: Callable[[list[object]], None]) -> None:
    loop: list[object] = []
    wrap(loop)
    with pytest.raises(NotSerializable, match="or in itself") as refused:
        check_json(loop, at="input")
    assert len(str(refused.value)) < 300


def test_one_value_may_occur_twice() -> None:
    shared: Json = [1]
    assert canonical_json({"a": shared, "b": shared}) == '{"a":[1],"b":[1]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("{'a': 1}", "body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("1 2", "body is not JSON: Extra data: line 1 column 3 (char 2)"),
        ('"\n"', "body is not JSON: Invalid control character at: line 1 column 2 (char 1)"),
        ("[NaN]", "body is not JSON: it has no number NaN"),
        ("-Infinity", "body is not JSON: it has no number -Infinity"),
        ('{"a":1e999}', "body.a is inf"),
        ("[9007199254740993]", "body[0] is an integer beyond ±2^53: use str"),
        (r'{"a":"\ud800"}', "body.a holds half of a surrogate pair, which is not Unicode text"),
        (b'"caf\xe9"', "body is not UTF-8 at byte 4"),
        ('"é"'.encode("utf-16"), "body is not UTF-8 at byte 0"),
        (b'"\xed\xa0\x80"', "body is not UTF-8 at byte 1"),
        ("[" * 1_000_000, "body is inside more than 100 lists and dicts, or in itself"),
    ],
)
def test_a_text_that_is_not_json_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(NotJson) as refused:
        parse_json(text, at="body")
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 200 + "]" * 200])
def test_a_text_beyond_the_limits_of_the_parser_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parse_json(text)


def test_a_long_path_is_shortened_in_the_middle() -> None:
    with pytest.raises(NotSerializable) as refused:
        check_json({"a" * 150: {"b" * 150: float("nan")}}, at="input")
    assert str(refused.value) == f"input.{'a' * 94}…{'b' * 100} is nan"


def test_a_refused_text_is_not_carried_along_by_the_error() -> None:
    with pytest.raises(NotJson) as refused:
        parse_json('{"password": "hunter2"')
    assert (refused.value.__cause__, refused.value.__suppress_context__, "hunter2" in str(refused.value)) == (None, True, False)


def test_not_json_is_both_ours_and_a_value_error() -> None:
    assert issubclass(NotJson, AikiError)
    assert issubclass(NotJson, ValueError)


def test_of_two_members_with_one_key_the_last_counts() -> None:
    assert parse_json('{"a":1,"a":2}') == {"a": 2}
