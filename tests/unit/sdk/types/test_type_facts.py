import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from aiki_push.domain.errors import NotSerializable
from aiki_push.sdk.types.allowed import check_type


def test_an_email_address_is_a_str() -> None:
    from pydantic import EmailStr

    check_type(dict[EmailStr, EmailStr], at="send: input")


def test_tags_are_the_literal_fields_of_every_member_of_a_union_but_the_first() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"

    @dataclass
    class Dog:
        name: str
        kind: Literal["dog"] = "dog"
        size: Annotated[Literal[1, 2], Field()] = 1

    class Fish(BaseModel):
        kind: Literal["fish"] = "fish"

    pets = TypeAliasType("pets", Cat | Dog)
    assert check_type(dict[str, Dog | None], at="x").tags == {}
    assert check_type(dict[str, Annotated[pets | Fish, Field()] | None], at="x").tags == {
        Dog: (".kind", ".size"),
        Fish: (".kind",),
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_the_type_statement_and_type_parameters_are_understood() -> None:
    module = ModuleType("module_with_type_statements")
    sys.modules[module.__name__] = module
    try:
        exec(
            """
from dataclasses import dataclass
from uuid import UUID

type Tree[Leaf] = dict[str, Tree[Leaf] | Leaf]
type Late = list[Undefined]

@dataclass
class Pair[A, B]:
    left: A
    right: Tree[B]
""",
            vars(module),
        )
        check_type(module.Pair[int, str], at="fetch: output")
        with pytest.raises(NotSerializable, match=r"^fetch: output.right\[\] is UUID"):
            check_type(module.Pair[int, UUID], at="fetch: output")
        with pytest.raises(NameError):
            check_type(module.Late, at="fetch: output")
    finally:
        del sys.modules[module.__name__]
