import re
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

from aiki_push.adapters.transport.field_faults import MAX_FAULTS, QUOTE_NO_INPUT, Fault, faults_of, invalid_request
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import StartRun
from tests.unit.adapters.transport.sample_values import RUN_ID


def faults_in(operation: type[Operation[Any]], sent: dict[str, Any]) -> list[Fault]:
    with pytest.raises(ValidationError) as caught:
        operation.model_validate(sent)
    return faults_of(caught.value, sent)


def test_a_place_is_named_as_the_sender_wrote_it() -> None:
    sent = {
        "run_id": RUN_ID,
        "token": "t",
        "checkpoint_id": "c",
        "position": 0,
        "records": [
            {
                "type": "task_completed",
                "at": 1,
                "task_id": "a",
                "attempt": 1,
                "output": {"kind": "payload", "sha256": "", "size": 1},
            },
            {"type": "task_completed", "at": 1, "task_id": "a", "attempt": 1, "output": {"kind": "SECRET"}},
            {"type": "SECRET"},
            {},
        ],
        "calls": [
            {"kind": "child", "key": "k", "ordinal": 0, "run_id": RUN_ID, "version": "1", "options": {"delay_ms": 0}},
            {"kind": "wakeup", "key": "k", "ordinal": -1, "run_id": RUN_ID, "operation_id": "a b", "event": "SECRET"},
            {"kind": "SECRET"},
        ],
        "end": {"to": "failed", "cause": {"type": "task"}, "error": {"name": "E", "message": 1, "failed": 2}, "completed": 3},
    }
    assert faults_in(AppendCheckpoint, sent) == [
        Fault("records[0].output.run_id", "is required"),
        Fault("records[1].output", "'kind' should be one of 'inline', 'payload'"),
        Fault(
            "records[2]",
            "'type' should be one of 'input', 'transition', 'task_started', 'task_completed', 'task_failed', 'task_backing_off', "
            "'task_cancelled', 'wait_started', 'wait_ended', 'received', 'call_ended'",
        ),
        Fault("records[3]", "Unable to extract tag using discriminator 'type'"),
        Fault("calls[0].workflow", "is required"),
        Fault("calls[0].options.delay_ms", "Input should be greater than 0"),
        Fault("calls[1].ordinal", "Input should be greater than or equal to 0"),
        Fault("calls[1].operation_id", "String should match pattern '^[A-Za-z0-9_-]{1,64}$'"),
        Fault("calls[1].event", "is unknown"),
        Fault("calls[2]", "'kind' should be one of 'child', 'send_event', 'cancel', 'pause', 'resume', 'wakeup'"),
        Fault("end.cause.task_id", "is required"),
        Fault("end.error.message", "Input should be a valid string"),
        Fault("end.completed", "is unknown"),
    ]


def test_each_field_is_named_once_in_the_sentence_and_only_the_first_five() -> None:
    error = invalid_request([Fault(field, "is wrong") for field in ("a", "a", "b", "c", "d", "e", "f")])
    assert error.detail == "6 fields are wrong: a, b, c, d, e, …"


def test_a_list_of_faults_and_a_name_of_a_field_end_somewhere() -> None:
    error = invalid_request([Fault("x" * 1_000 + str(index), "is unknown") for index in range(MAX_FAULTS + 1)])
    assert error.fields["errors"] == [{"field": "x" * 200 + "…", "message": "is unknown"}] * MAX_FAULTS


def test_a_message_that_is_not_known_to_be_safe_is_replaced() -> None:
    with pytest.raises(ValidationError) as caught:
        raise ValidationError.from_exception_data(
            "x", [{"type": "uuid_parsing", "loc": ("a",), "input": "SECRET", "ctx": {"error": "SECRET"}}]
        )
    assert faults_of(caught.value, {}) == [Fault("a", "is not valid")]


def placeholders(kind: Any) -> set[str]:
    """The parts of an error's message that are filled in."""
    numbers = dict.fromkeys(("gt", "ge", "lt", "le", "min_length", "max_length", "actual_length"), 1)
    texts = dict.fromkeys(("expected", "pattern", "class_name", "field_type", "discriminator", "tag", "expected_tags"), "x")
    return set(re.findall(r"{(\w+)}", PydanticKnownError(kind, {**numbers, **texts}).message_template))


def test_messages_taken_over_from_pydantic_say_what_is_expected_and_nothing_of_what_was_sent() -> None:
    assert set(get_args(ErrorType)) >= QUOTE_NO_INPUT
    filled_in = set[str]().union(*(placeholders(kind) for kind in QUOTE_NO_INPUT))
    limits = {"gt", "ge", "lt", "le", "min_length", "max_length", "actual_length"}
    assert filled_in == limits | {"expected", "expected_plural", "pattern", "class_name", "field_type", "discriminator"}


def test_a_field_of_a_nested_model_has_its_path() -> None:
    assert faults_in(StartRun, {"workflow": "order", "version": "1", "options": {"pool": ""}}) == [
        Fault("options.pool", "String should match pattern '^[A-Za-z0-9._:-]{1,128}$'")
    ]
