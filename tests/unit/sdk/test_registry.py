"""What an executor takes, and what it refuses before it starts."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from aiki_push import Client, Run, WorkflowVersion, endpoint, task, workflow
from aiki_push.domain.errors import NotSerializable, SettingsError
from aiki_push.sdk.registry import Registry

orders = workflow("order-processing")


@orders.v("1.0.0")
async def order_v1(run: Run) -> str:
    return run.id


@orders.v("2.0.0")
async def order_v2(run: Run) -> str:
    return run.id


SINGLE = (
    "SingleStart(order-processing 1.0.0) is about one particular run, and an executor runs whatever comes: give it the version "
    "as it was before with_() set its delay or reference"
)
NO_VERSION = "is no version of a workflow: give what `@some_workflow.v(version)` makes of a handler"


def test_versions_side_by_side_are_found_each_by_its_own_name() -> None:
    registry = Registry([order_v1, order_v2.with_("priority", 1)])
    versions = [("1.0.0", order_v1.handler), ("2.0.0", order_v2.handler)]
    assert [(version.version, version.handler) for version in registry.all()] == versions
    found = [registry.find("order-processing", version) for version in ("1.0.0", "2.0.0", "3.0.0")]
    assert [version and version.handler for version in found] == [order_v1.handler, order_v2.handler, None]


def test_no_version_and_one_version_twice_are_refused() -> None:
    with pytest.raises(SettingsError, match="^an executor needs at least one workflow version$"):
        Registry([])
    with pytest.raises(SettingsError, match=r"^order-processing 1\.0\.0 is registered twice; one version has one handler$"):
        Registry([order_v1, order_v2, order_v1.with_("pool", "other")])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (order_v1.with_("reference.id", "order-123"), SINGLE),
        (order_v1.with_("delay", timedelta(seconds=30)).with_("pool", "other"), SINGLE),
        (orders, f"Workflow(order-processing) {NO_VERSION}"),
        ("order-processing", f"'order-processing' {NO_VERSION}"),
    ],
)
def test_what_is_no_version_is_a_type_error_that_says_why(given: Any, sentence: str) -> None:
    client = Client(url="http://127.0.0.1:9850")
    for register in (Registry, lambda workflows: endpoint(workflows=workflows, client=client, insecure=True)):
        with pytest.raises(TypeError) as refused:
            register([order_v2, given])
        assert str(refused.value) == sentence


def defined_too_early(names: str) -> WorkflowVersion[..., Any]:
    """A version whose types use a name that does not exist when the decorator runs."""
    places: dict[str, Any] = {}
    exec(  # a module of its own, whose last line may come after the definition
        f"from aiki_push import Run, workflow\n"
        f"@workflow('early').v('1.0.0')\nasync def early(run: Run, order: 'Later') -> str:\n    return run.id\n{names}",
        places,
    )
    early: WorkflowVersion[..., Any] = places["early"]
    return early


def test_types_that_could_not_be_checked_at_definition_are_checked_at_registration() -> None:
    Registry([defined_too_early("class Later(__import__('pydantic').BaseModel):\n    amount: int")])
    with pytest.raises(SettingsError) as missing:
        Registry([defined_too_early("")])
    assert str(missing.value) == (
        "early: input uses the name Later, which does not exist: define or import it where the type is declared, "
        "not only for type checkers"
    )
    with pytest.raises(NotSerializable) as refused:
        Registry([defined_too_early("from datetime import datetime as Later")])
    assert str(refused.value) == (
        'early: input is datetime: use str (ISO 8601) or int (milliseconds), or allow it with json="typed"'
    )


def test_explicit_types_see_the_names_where_they_are_written() -> None:
    class Line(BaseModel):
        placed_at: datetime

    line_type: Any = list["Line"]  # a text within a type, as for a class that is defined further down

    with pytest.raises(NotSerializable, match=r"^local: output\[\]\.placed_at is datetime: use str"):

        @workflow("local").v("1.0.0", output=line_type)
        async def local(run: Run) -> Any:
            return []

    with pytest.raises(NotSerializable, match=r"^count: input\[\]\.placed_at is datetime: use str"):

        @task("count", input=line_type)
        def count(lines: Any) -> int:
            return len(lines)


def test_the_type_of_an_input_that_a_handler_does_not_take_is_refused() -> None:
    with pytest.raises(SettingsError) as refused:

        @task("count", input=list[int])
        def count() -> int:
            return 0

    assert str(refused.value) == "count takes no input, but its type is given: leave out input=, or add the parameter"


def test_the_typed_rule_is_chosen_for_a_task_or_a_version() -> None:
    @task("clock", json="typed")
    def clock(order: dict[UUID, datetime]) -> Decimal:
        return Decimal(len(order))

    @workflow("typed").v("1.0.0", json="typed")
    async def typed(run: Run, order: dict[UUID, datetime]) -> Decimal:
        return await clock.start(run, order)

    Registry([typed])
    with pytest.raises(NotSerializable, match=r"^typed: output is Decimal: use str, or allow it with json=\"typed\"$"):

        @workflow("typed").v("2.0.0")
        async def strict(run: Run) -> Decimal:
            return Decimal(1)
