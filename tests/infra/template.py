"""`template.yaml`, read: its functions, its resources, and what its policies allow."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from cfnlint.decode import decode_str  # type: ignore[import-untyped]  # it has no stubs

from tests.architecture.source_files import ROOT

Resource: TypeAlias = Mapping[str, Any]

TEMPLATE, _ = decode_str((ROOT / "template.yaml").read_text("utf-8"))

RESOURCES: Mapping[str, Resource] = TEMPLATE["Resources"]

FUNCTIONS = {name: one["Properties"] for name, one in RESOURCES.items() if one["Type"] == "AWS::Serverless::Function"}

VARIABLES: Mapping[str, Any] = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]


def only(kind: str) -> Resource:
    (found,) = [one["Properties"] for one in RESOURCES.values() if one["Type"] == kind]
    return dict(found)


def statements() -> Iterator[Mapping[str, Any]]:
    """Every statement of every policy."""
    yield from only("AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"]
    for function in FUNCTIONS.values():
        for policy in function["Policies"]:
            yield from policy.get("Statement", [])


def as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def permissions(function: Resource) -> set[tuple[str, str]]:
    """Action and resource of all that the template allows a function, beside what its events need."""
    shared, *own = function["Policies"]
    assert shared == {"Ref": "ServerPolicy"}
    allowed = [
        *only("AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"],
        *(one for policy in own for one in policy["Statement"]),
    ]
    return {
        (str(action), json.dumps(resource))
        for statement in allowed
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }
