"""What the annotations of a handler say that it takes and gives."""

import inspect
import sys
from collections import ChainMap
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Never, NoReturn, Union, cast, get_args, get_origin, get_type_hints

from aiki_push.domain.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Hint:
    """A type as it was written, perhaps as text, and the names it was written among, which may be defined later."""

    annotation: object
    names: Mapping[str, object] = field(default_factory=dict, repr=False)
    is_result: bool = False
    """Of a handler: an awaitable stands for what it gives, and a handler that never returns for one that gives None."""

    def resolve(self) -> object:
        """The type, with every name in it looked up.

        Raises:
            NameError: a name does not exist (yet).
            TypeError, SyntaxError: it is no type expression.
        """
        written = SimpleNamespace(__annotations__={"hint": self.annotation})
        try:
            hint: object = get_type_hints(written, {}, self.names, include_extras=True)["hint"]
        except AttributeError as error:
            raise NameError(str(error), name=error.name) from error
        return _result_of(hint) if self.is_result else hint


UNTYPED = Hint(Any)
"""Nothing declared: any JSON value."""


@dataclass(frozen=True, slots=True)
class HandlerTypes:
    """`input` is None for a handler without one; a missing annotation is `UNTYPED`."""

    input: Hint | None
    output: Hint


def handler_types(
    handler: Callable[..., object],
    *,
    drop_first: bool,
    localns: Mapping[str, object],
    input: object = None,
    output: object = None,
) -> HandlerTypes:
    """The hints of a handler's input and output; no other annotation is looked at, and names are looked up only by `resolve`.

    `drop_first` leaves out the first parameter (a workflow's run). `localns` are the names where the handler is defined: the
    locals of the frame that decorates it. They may be kept until the names are found. `input` and `output`, where given, stand in
    for the annotations, and names in them are looked up in the same places.

    Raises:
        SettingsError: the handler takes anything but one positional input without a default, or none; or it takes none, and the
            type of one is given.
    """
    signature = _signature(handler)
    name = getattr(handler, "__qualname__", type(handler).__qualname__).rpartition("<locals>.")[2]
    inputs = list(signature.parameters.values())
    if drop_first:
        if not inputs or inputs[0].kind not in _POSITIONAL:
            raise SettingsError(f"{name} takes no run: the first parameter of a workflow's handler is its run")
        del inputs[0]
    if input is not None and not inputs:
        raise SettingsError(f"{name} takes no input, but its type is given: leave out input=, or add the parameter")
    names = _names_around(handler, localns)
    return HandlerTypes(
        input=_hint(_only_input(name, inputs).annotation if input is None else input, names) if inputs else None,
        output=_hint(signature.return_annotation, names, is_result=True) if output is None else Hint(output, names),
    )


def type_name(hint: object) -> str:
    """How a type is called in a message: `datetime`, `list[Order]`, `Order | None`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, list):
        return f"[{_type_names(hint)}]"
    if origin is Annotated:
        return type_name(arguments[0])
    if origin in (Union, UnionType):
        return _type_names(arguments, " | ")
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None and arguments:
        return f"{type_name(origin)}[{_type_names(arguments)}]"
    if hint is type(None) or hint is None:
        return "None"
    return "..." if hint is Ellipsis else str(getattr(hint, "__name__", hint))


def _type_names(hints: Iterable[object], separator: str = ", ") -> str:
    return separator.join(map(type_name, hints))


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _signature(handler: Callable[..., object]) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(handler, annotation_format=Format.FORWARDREF)
        return inspect.signature(handler)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{handler!r} cannot be a handler: Python cannot tell what it takes") from error


def _only_input(name: str, inputs: list[Parameter]) -> Parameter:
    for parameter in inputs:
        if parameter.kind not in _POSITIONAL:
            raise SettingsError(
                f"{name} takes {parameter.name!r} in a way that has no place for an input: make it a plain parameter"
            )
    if len(inputs) > 1:
        given = ", ".join(parameter.name for parameter in inputs)
        raise SettingsError(f"{name} takes {len(inputs)} inputs ({given}): put them into one model, dataclass or TypedDict")
    if inputs[0].default is not Parameter.empty:
        raise SettingsError(
            f"{name} has a default for {inputs[0].name!r}: an input is always given; put defaults into its fields"
        )
    return inputs[0]


def _hint(annotation: object, names: Mapping[str, object], *, is_result: bool = False) -> Hint:
    return UNTYPED if annotation is Parameter.empty else Hint(annotation, names, is_result)


def _names_around(handler: object, localns: Mapping[str, object]) -> Mapping[str, object]:
    while isinstance(handler, partial):
        handler = handler.func
    function = inspect.unwrap(cast(Callable[..., object], handler))
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    type_parameters = {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())}
    # Looked up only, never written to.
    around = cast(MutableMapping[str, object], localns)
    return ChainMap(type_parameters, around, getattr(function, "__globals__", {}))


def _result_of(hint: object) -> object:
    if hint in (NoReturn, Never):
        return type(None)
    if get_origin(hint) in (Awaitable, Coroutine):
        return get_args(hint)[-1]
    return hint
