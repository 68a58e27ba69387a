"""Settings from the environment: which variables a process knows, and one readable line about those that are wrong."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from aiki_push.domain.errors import SettingsError

PREFIX = "AIKI_"
DELIMITER = "__"
EXIT_CODE = 2
MAX_QUOTED = 60
"""Characters of a wrong value that a message quotes."""

SettingsT = TypeVar("SettingsT", bound="EnvironmentSettings")


@dataclass(frozen=True, slots=True)
class Expected:
    """Put it in a field's annotation to say what would be right, where type and bounds do not. Completes "should be …"."""

    text: str


class EnvironmentSettings(BaseSettings):
    """Base of all settings. Takes values from `load_settings` or from keyword arguments, and from nowhere else."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=DELIMITER, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings passes these by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in."""
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable. `default` is None where there is none; `expected` completes "should be …".

    Only a number, a switch or a choice `is_quoted` in messages: in any other, someone may have put a secret.
    """

    name: str
    meaning: str
    expected: str
    default: str | None
    is_required: bool
    is_quoted: bool


def settings_of(model: type[BaseModel], prefix: str = PREFIX) -> Mapping[str, Setting]:
    """Every variable that `model` is read from, by name, in the order of its fields."""
    found: dict[str, Setting] = {}
    for field_name, field in model.model_fields.items():
        name = prefix + field_name.upper()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= settings_of(field.annotation, name + DELIMITER)
        else:
            found[name] = _setting(name, field)
    return found


def load_settings(model: type[SettingsT], environ: Mapping[str, str]) -> SettingsT:
    """`model` from the variables of `environ` that begin with `AIKI_`; others are not looked at.

    Raises SettingsError: one line that names every variable which is unknown, missing or wrong, and says what would be right. It
    quotes nothing that might be a secret.
    """
    settings = settings_of(model)
    given = {name: value for name, value in environ.items() if name.upper().startswith(PREFIX)}
    faults = [_unknown(name, settings) for name in sorted(given.keys() - settings.keys())]
    source = EnvSettingsSource(model)
    source.env_vars = {name.lower(): value for name, value in given.items() if name in settings}
    try:
        loaded = model(**source())
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        faults += [_fault(PREFIX + DELIMITER.join(map(str, one["loc"])).upper(), one["msg"], settings, given) for one in details]
    else:
        if not faults:
            return loaded
    raise SettingsError("; ".join(faults))


@contextmanager
def fail_readably() -> Iterator[None]:
    """End the process with exit code 2 and one line on stderr where settings are wrong, without a traceback."""
    try:
        yield
    except SettingsError as error:
        print(f"aiki-push: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(EXIT_CODE) from None


def _setting(name: str, field: FieldInfo) -> Setting:
    mark = next((mark for mark in field.metadata if isinstance(mark, Expected)), None)
    return Setting(
        name=name,
        meaning=field.description or "",
        expected=mark.text if mark else _expected(field),
        default=None if field.is_required() or field.default is None else json.dumps(field.default).strip('"'),
        is_required=field.is_required(),
        is_quoted=mark is None,
    )


def _expected(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "true or false"
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(get_args(field.annotation))
    least = next(bound.ge for bound in field.metadata if hasattr(bound, "ge"))
    most = next(bound.le for bound in field.metadata if hasattr(bound, "le"))
    return f"a whole number from {least} to {most}"


def _unknown(name: str, settings: Mapping[str, Setting]) -> str:
    last_part = DELIMITER + name.upper().removeprefix(PREFIX)
    (alike,) = get_close_matches(name.upper(), settings, n=1, cutoff=0)
    nearest = next((known for known in settings if known.endswith(last_part)), alike)
    return f"{name} is not a setting; the nearest is {nearest}"


def _fault(name: str, message: str, settings: Mapping[str, Setting], given: Mapping[str, str]) -> str:
    setting = settings.get(name)
    if setting is None:
        # About several settings together: the message names them.
        return message.removeprefix("Value error, ")
    return f"{name} {_failing(setting, given.get(name))} and should be {setting.expected}"


def _failing(setting: Setting, value: str | None) -> str:
    if value is None:
        return "is missing"
    if not value:
        return "is empty"
    if not setting.is_quoted:
        return "is not valid"
    return f"is {value if len(value) <= MAX_QUOTED else value[:MAX_QUOTED] + '…'!r}"
