"""Classes with named fields, as types and as values: pydantic models, dataclasses, TypedDicts and NamedTuples."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Generic, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel
from typing_extensions import get_original_bases, is_typeddict


def record_class(hint: object) -> type | None:
    """The class behind a record type, parametrised or not; None for every other type."""
    cls = get_origin(hint) or hint
    if not isinstance(cls, type):
        return None
    if issubclass(cls, BaseModel) or is_dataclass(cls) or is_typeddict(cls) or _is_named_tuple(cls):
        return cls
    return None


def field_types(hint: object, names: Mapping[str, object]) -> Mapping[str, object]:
    """The types of a record type's fields, by their path step (`.name`), type variables replaced by what they stand for.

    `names` serve a class whose own module does not have a name it uses, as with classes made inside functions.

    Raises:
        NameError: a field's type uses a name that does not exist (yet).
    """
    cls = cast(type, get_origin(hint) or hint)
    if issubclass(cls, BaseModel):
        return _model_field_types(cls, names)
    hints = _class_hints(cls, names)
    if is_dataclass(cls):
        hints = {field.name: hints[field.name] for field in fields(cls)}
    meanings = _meanings(hint)
    return {f".{name}": substituted(field, meanings) for name, field in hints.items()}


def substituted(hint: object, meanings: Mapping[object, object]) -> object:
    """The type with its type variables replaced by what they stand for; those without a meaning stay."""
    if isinstance(hint, TypeVar):
        return meanings.get(hint, hint)
    parameters: tuple[object, ...] = getattr(hint, "__parameters__", ())
    if isinstance(hint, type) or not parameters:
        return hint
    return hint[tuple(meanings.get(parameter, parameter) for parameter in parameters)]  # type: ignore[index]  # a generic alias


def parts(value: object) -> Mapping[str, object] | None:
    """What a value is made of, by path step (`.name`, `[0]`); None if it is a whole, like a str or a datetime.

    Of a dataclass, only the fields that count when two are compared; of a model, also its private attributes.
    """
    if isinstance(value, BaseModel):
        return _model_parts(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name, None) for field in fields(value) if field.compare}
    if isinstance(value, dict):
        return {_step(key): member for key, member in value.items()}
    if isinstance(value, tuple) and _is_named_tuple(type(value)):
        return {f".{name}": item for name, item in zip(_field_names(type(value)), value, strict=True)}
    if isinstance(value, list | tuple):
        return {f"[{index}]": item for index, item in enumerate(value)}
    return None


def _model_field_types(cls: type[BaseModel], names: Mapping[str, object]) -> Mapping[str, object]:
    if not cls.__pydantic_complete__:
        cls.model_rebuild(_types_namespace=names)
    step = "" if issubclass(cls, RootModel) else "."
    return {step and f".{name}": field.annotation for name, field in cls.model_fields.items()}


def _model_parts(model: BaseModel) -> Mapping[str, object]:
    if isinstance(model, RootModel):
        return {"": model.root}
    declared = {f".{name}": model.__dict__[name] for name in type(model).model_fields if name in model.__dict__}
    others = {**(model.model_extra or {}), **(model.__pydantic_private__ or {})}
    return declared | {f".{name}": member for name, member in others.items()}


def _class_hints(cls: type, names: Mapping[str, object]) -> Mapping[str, object]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:
        return get_type_hints(cls, localns={**names, cls.__name__: cls}, include_extras=True)


def _meanings(hint: object) -> dict[object, object]:
    """What the type variables of a generic class and of its bases stand for."""
    cls = cast(type, get_origin(hint) or hint)
    own: dict[object, object] = dict(zip(getattr(cls, "__parameters__", ()), get_args(hint), strict=False))
    inherited: dict[object, object] = {}
    for base in get_original_bases(cls):
        if get_origin(base) not in (None, Generic, Protocol):
            inherited |= _meanings(substituted(base, own))
    return inherited | own


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _field_names(cls: type) -> tuple[str, ...]:
    return cast(tuple[str, ...], cls._fields)  # type: ignore[attr-defined]  # a NamedTuple's own list


def _step(key: object) -> str:
    if type(key) is not str:
        return f"[{type(key).__name__} key {key!r}]"
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
