import collections
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import (  # noqa: UP035  # the old form of tuple is refused too
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    Self,
    Tuple,
    TypeVar,
    TypeVarTuple,
    Union,
)
from uuid import UUID

import pydantic.dataclasses
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PositiveInt, PrivateAttr, RootModel
from typing_extensions import ReadOnly, TypeAliasType, TypedDict

from aiki_push.domain.errors import NotSerializable
from aiki_push.sdk.types.allowed import check_type
from aiki_push.sdk.types.hints import Hint
from aiki_push.sdk.types.json_type import JsonType

T = TypeVar("T")
Shown = TypeVar("Shown", int, str)
Mixed = TypeVar("Mixed", int, UUID)
Bounded = TypeVar("Bounded", bound="Model")
Moment = TypeVar("Moment", bound=datetime.datetime)
Shape = TypeVarTuple("Shape")


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 1


class OldColor(str, Enum):  # noqa: UP042  # the form of before Python 3.11
    RED = "red"


class PlainEnum(Enum):
    RED = "red"


class Arbitrary: ...


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")
    shared: ClassVar[datetime.datetime | None] = None
    placed_at: str = Field("", alias="placedAt")
    next: Optional["Model"] = None
    twin: Self | None = None
    _seen: datetime.datetime | None = PrivateAttr(None)


class Stamped(BaseModel):
    placed_at: datetime.datetime


class Cyclic(BaseModel):
    others: list["Cyclic"]
    raw: bytes


class GenericModel(BaseModel, Generic[T]):
    item: T


class Orders(RootModel[list[Stamped]]): ...


@dataclass
class Box(Generic[T]):
    item: T
    open_with: InitVar[bytes | None] = None
    kind: ClassVar[set[str]] = set()


class StampBox(Box[datetime.datetime]): ...


@dataclass
class Wrapper(Generic[T]):
    anything: Box  # type: ignore[type-arg]  # what is looked at


@dataclass
class BoxOfBoxes(Generic[T]):
    boxes: list[Box[T | None]]


@pydantic.dataclasses.dataclass
class Validated:
    tags: set[str] = field(default_factory=set)


class Options(TypedDict):
    name: Required[str]
    since: NotRequired[ReadOnly[datetime.date]]


class GenericOptions(TypedDict, Generic[T]):
    item: T


class Point(NamedTuple):
    x: int
    y: Decimal


class GenericPoint(NamedTuple, Generic[T]):
    x: T


Untyped = collections.namedtuple("Untyped", ["x"])  # noqa: PYI024  # what is looked at

OrderId = NewType("OrderId", str)
Token = NewType("Token", UUID)
Tree = TypeAliasType("Tree", "dict[str, Tree | int]")
BadTree = TypeAliasType("BadTree", "dict[str, BadTree | UUID]")
Many = TypeAliasType("Many", list[T], type_params=(T,))

ALLOWED = [
    *(str, int, float, bool, None, Any, object, list, dict, list[Any], dict[str, Any], list[dict[str, list[int | None]]]),
    *(Color, Size, OldColor, dict[Color, int], dict[OrderId, int], dict[Literal["a", "b"], int], dict[Literal["a"] | Color, int]),
    *(Literal["a", 1, True, None], Literal[Color.RED, Size.BIG], int | None, int | str, Union[Color, "int"], OrderId),
    *(
        Annotated[int, Field(gt=0)],
        PositiveInt,
        Annotated[str, AfterValidator(str.strip)],
        JsonValue,
        Tree,
        Many[int],
        T,
        Shown,
        Bounded,
    ),
    *(
        Model,
        GenericModel,
        GenericModel[int],
        GenericModel[list[Model]],
        RootModel[list[int]],
        Box,
        Box[int],
        BoxOfBoxes[str],
        Wrapper[UUID],
    ),
    *(tuple[int, str], tuple[()], tuple[Color, Model], Untyped, GenericPoint[int], GenericOptions[Color]),
]

OTHERWISE = (
    "use None, bool, int, float, str, list, dict[str, ...], or a pydantic model, dataclass, TypedDict or NamedTuple made of them"
)
DATETIME = 'use str (ISO 8601) or int (milliseconds), or allow it with json="typed"'
DATE = 'use str (ISO 8601), or allow it with json="typed"'
TUPLE = 'use list, or a tuple of fixed length, or allow it with json="typed"'
STR = 'use str, or allow it with json="typed"'
NO_ORDER = "it has no order; use list"

REFUSED: list[tuple[object, str]] = [
    (datetime.datetime, f" is datetime: {DATETIME}"),
    (datetime.date, f" is date: {DATE}"),
    (datetime.time, f" is time: {DATE}"),
    (datetime.timedelta, ' is timedelta: use int (milliseconds), or allow it with json="typed"'),
    (Decimal, f" is Decimal: {STR}"),
    (UUID, f" is UUID: {STR}"),
    (Token, f" is UUID: {STR}"),
    (Path, f" is Path: {STR}"),
    (bytes, " is bytes: use str (base64)"),
    (set[int], f" is set[int]: {NO_ORDER}"),
    (frozenset, f" is frozenset: {NO_ORDER}"),
    (Set[int], f" is Set[int]: {NO_ORDER}"),
    (PlainEnum, ' is PlainEnum: use StrEnum or IntEnum, or allow it with json="typed"'),
    (Literal[PlainEnum.RED], ' is PlainEnum: use StrEnum or IntEnum, or allow it with json="typed"'),
    (Literal["a", b"a"], " is bytes: use str (base64)"),
    (tuple, f" is tuple: {TUPLE}"),
    (Tuple, f" is Tuple: {TUPLE}"),  # noqa: UP006  # the old form
    (tuple[int, ...], f" is tuple[int, ...]: {TUPLE}"),
    (tuple[int, *Shape], f" is tuple[int, Unpack[Shape]]: {TUPLE}"),  # type: ignore[valid-type]  # unbound on purpose
    (tuple[int, *tuple[str, ...]], f" is tuple[int, Unpack[tuple[str, ...]]]: {TUPLE}"),
    (Sequence[int], ' is Sequence[int]: use list, or allow it with json="typed"'),
    (Iterable[int], " is Iterable[int]: use list"),
    (collections.deque[int], ' is deque[int]: use list, or allow it with json="typed"'),
    (Mapping[str, int], ' is Mapping[str, int]: use dict[str, ...], or allow it with json="typed"'),
    (dict[int, str], " has int keys: JSON has only str keys"),
    (dict[str | Size, str], " has str | Size keys: JSON has only str keys"),
    (list[dict[Literal[1], str]], "[] has Literal[1] keys: JSON has only str keys"),
    (complex, f" is complex: {OTHERWISE}"),
    (Callable[[int], str], f" is Callable[[int], str]: {OTHERWISE}"),
    (type[int], f" is type[int]: {OTHERWISE}"),
    (Arbitrary, f" is Arbitrary: {OTHERWISE}"),
    (Iterator[int], " is Iterator[int]: use list"),
    (5, f" is 5: {OTHERWISE}"),
    (Mixed, f" is UUID: {STR}"),
    (Moment, f" is datetime: {DATETIME}"),
    (list[dict[str, Arbitrary | None]], f"[][] is Arbitrary: {OTHERWISE}"),
    (tuple[int, bytes], "[1] is bytes: use str (base64)"),
    (Stamped, f".placed_at is datetime: {DATETIME}"),
    (dict[str, list[Stamped]], f"[][].placed_at is datetime: {DATETIME}"),
    (Orders, f"[].placed_at is datetime: {DATETIME}"),
    (Cyclic, ".raw is bytes: use str (base64)"),
    (GenericModel[UUID], f".item is UUID: {STR}"),
    (Box[UUID], f".item is UUID: {STR}"),
    (StampBox, f".item is datetime: {DATETIME}"),
    (BoxOfBoxes[UUID], f".boxes[].item is UUID: {STR}"),
    (Validated, f".tags is set[str]: {NO_ORDER}"),
    (Options, f".since is date: {DATE}"),
    (GenericOptions[bytes], ".item is bytes: use str (base64)"),
    (Point, f".y is Decimal: {STR}"),
    (GenericPoint[UUID], f".x is UUID: {STR}"),
    (BadTree, f"[] is UUID: {STR}"),
    (Many[UUID], f"[] is UUID: {STR}"),
]


@pytest.mark.parametrize("declared", ALLOWED, ids=str)
def test_a_type_that_json_holds_is_allowed(declared: object) -> None:
    JsonType(Hint(declared, globals()), at="fetch-order: output").check()


@pytest.mark.parametrize(("declared", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_type_that_json_cannot_hold_is_refused_by_its_place(declared: object, sentence: str) -> None:
    with pytest.raises(NotSerializable) as refused:
        JsonType(Hint(declared), at="fetch-order: output")
    assert str(refused.value) == f"fetch-order: output{sentence}"


@pytest.mark.parametrize(
    "declared",
    [
        datetime.datetime,
        UUID,
        Decimal,
        Path,
        PlainEnum,
        bytes,
        tuple[int, ...],
        Stamped,
        StampBox,
        Options,
        Point,
        dict[int, str],
    ],
)
def test_the_typed_rule_lets_through_what_pydantic_restores(declared: object) -> None:
    check_type(declared, at="fetch-order: output", json="typed")


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (set[int], f" is set[int]: {NO_ORDER}"),
        (tuple[frozenset[str], ...], f"[] is frozenset[str]: {NO_ORDER}"),
        (Sequence[set[int]], f"[] is set[int]: {NO_ORDER}"),
        (Callable[[int], str], f" is Callable[[int], str]: {OTHERWISE}"),
        (type[int], f" is type[int]: {OTHERWISE}"),
        (Arbitrary, f" is Arbitrary: {OTHERWISE}"),
    ],
)
def test_the_typed_rule_still_refuses_what_would_not_come_back_the_same(declared: object, sentence: str) -> None:
    with pytest.raises(NotSerializable) as refused:
        check_type(declared, at="fetch-order: output", json="typed")
    assert str(refused.value) == f"fetch-order: output{sentence}"
