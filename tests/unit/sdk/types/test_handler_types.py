"""The hints of handlers, as written in a module without postponed annotations."""

import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache, partial, wraps
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar, get_args

import pytest

from aiki_push.domain.errors import SettingsError
from aiki_push.sdk.types.hints import UNTYPED, HandlerTypes, Hint, handler_types, type_name

P = ParamSpec("P")
T = TypeVar("T")


class Run: ...


def resolved(types: HandlerTypes) -> tuple[object, object]:
    """The types themselves; "no input" in place of an input that is not there."""
    return types.input.resolve() if types.input else "no input", types.output.resolve()


def test_the_types_are_those_of_the_one_input_and_of_the_result() -> None:
    async def ship(order: dict[str, int]) -> list[str]:
        return list(order)

    assert resolved(handler_types(ship, drop_first=False, localns=locals())) == (dict[str, int], list[str])


def test_the_run_of_a_workflow_is_no_input_and_its_annotation_is_not_looked_at() -> None:
    async def order_v1(run: "Nowhere", order: int) -> None:  # type: ignore[name-defined]  # noqa: F821  # that is the point
        del run, order

    async def tick_v1(run: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821  # that is the point
        return str(run)

    assert resolved(handler_types(order_v1, drop_first=True, localns=locals())) == (int, type(None))
    assert resolved(handler_types(tick_v1, drop_first=True, localns=locals())) == ("no input", str)


def test_a_missing_hint_is_untyped() -> None:
    def bare(value):  # type: ignore[no-untyped-def]
        return value

    assert handler_types(bare, drop_first=False, localns=locals()) == HandlerTypes(UNTYPED, UNTYPED)


def test_an_awaitable_result_stands_for_what_it_gives() -> None:
    def later() -> Awaitable[int]:
        raise NotImplementedError

    def soon() -> Coroutine[Any, Any, "Run"]:
        raise NotImplementedError

    assert resolved(handler_types(later, drop_first=False, localns=locals())) == ("no input", int)
    assert resolved(handler_types(soon, drop_first=False, localns=locals())) == ("no input", Run)


def test_a_handler_that_never_returns_gives_none() -> None:
    async def refuse(order: str) -> NoReturn:
        raise ValueError(order)

    assert resolved(handler_types(refuse, drop_first=False, localns=locals())) == (str, type(None))


def test_wrapped_bound_partial_and_callable_handlers_have_the_hints_of_what_they_call() -> None:
    def logged(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **kwargs)

        return wrapper

    @logged
    def wrapped(order: int) -> str:
        return str(order)

    @cache
    def cached(order: "str") -> "Run":
        raise NotImplementedError

    def two(count: int, order: "str") -> "Run":
        raise NotImplementedError

    class Shop:
        def sell(self, order: "str") -> "Run":
            raise NotImplementedError

        def __call__(self, order: "int") -> "Run":
            raise NotImplementedError

    assert resolved(handler_types(wrapped, drop_first=False, localns={})) == (int, str)
    assert resolved(handler_types(cached, drop_first=False, localns={})) == (str, Run)
    assert resolved(handler_types(partial(two, 1), drop_first=False, localns={})) == (str, Run)
    assert resolved(handler_types(Shop().sell, drop_first=False, localns={})) == (str, Run)
    assert resolved(handler_types(Shop(), drop_first=False, localns={})) == (int, Run)


def test_a_handler_that_takes_anything_but_one_plain_input_is_refused() -> None:
    def two(order: int, amount: int) -> None: ...
    def defaulted(order: int = 1) -> None: ...
    def keyword(*, order: int) -> None: ...
    def variadic(*orders: int) -> None: ...
    def keywords(order: int, **options: int) -> None: ...

    told = {}
    for handler in (two, defaulted, keyword, variadic, keywords):
        with pytest.raises(SettingsError) as refused:
            handler_types(handler, drop_first=False, localns={})
        told[handler.__name__] = str(refused.value)
    assert told == {
        "two": "two takes 2 inputs (order, amount): put them into one model, dataclass or TypedDict",
        "defaulted": "defaulted has a default for 'order': an input is always given; put defaults into its fields",
        "keyword": "keyword takes 'order' in a way that has no place for an input: make it a plain parameter",
        "variadic": "variadic takes 'orders' in a way that has no place for an input: make it a plain parameter",
        "keywords": "keywords takes 'options' in a way that has no place for an input: make it a plain parameter",
    }


def test_a_workflow_without_a_run_is_refused() -> None:
    async def nothing() -> None: ...
    async def variadic(*runs: Run) -> None: ...

    for handler in (nothing, variadic):
        with pytest.raises(SettingsError, match="takes no run: the first parameter of a workflow's handler is its run"):
            handler_types(handler, drop_first=True, localns={})


def test_a_callable_without_a_signature_is_refused() -> None:
    with pytest.raises(SettingsError, match="cannot be a handler: Python cannot tell what it takes"):
        handler_types(type, drop_first=False, localns={})


def test_a_name_is_looked_up_when_the_hint_is_resolved_and_not_before() -> None:
    def handler(order: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821  # defined below

    names: dict[str, object] = {}
    types = handler_types(handler, drop_first=False, localns=names)
    with pytest.raises(NameError):
        resolved(types)
    names["Later"] = list[int]
    assert resolved(types) == (list[int], type(None))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_the_type_parameters_of_a_handler_are_names_of_its_hints() -> None:
    names: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef first[Item](items: list[Item]) -> Item: ...", names)
    handler = names["first"]
    (item,) = handler.__type_params__
    (received, given) = resolved(handler_types(handler, drop_first=False, localns={}))
    assert (get_args(received), given) == ((item,), item)


def test_an_attribute_that_does_not_exist_yet_counts_as_a_name() -> None:
    with pytest.raises(NameError):
        Hint("typing.NotThere", {"typing": __import__("typing")}).resolve()


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (Run | None, "Run | None"),
        (dict[str, list[Run]], "dict[str, list[Run]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Callable[[int], str], "Callable[[int], str]"),
        (Any, "Any"),
        (Annotated[int, "positive"], "int"),
    ],
)
def test_a_type_is_called_as_authors_write_it(hint: object, name: str) -> None:
    assert type_name(hint) == name
