"""Requests to control runs, to send events and to call other runs from a checkpoint, that are wrong; with the fields at fault."""

import json
from collections.abc import Mapping

from aiki_push.adapters.transport.http_messages import HttpRequest
from tests.integration.bad_requests import (
    CHECKPOINTS,
    GOOD_CHECKPOINT,
    IS_UNKNOWN,
    NAME,
    NUMBER,
    REFERENCE,
    RUN_ID_TEXT,
    RUN_PATH,
    TOO_SHORT,
    post,
)
from tests.unit.adapters.transport.sample_values import RUN_ID

EVENT = f"{RUN_PATH}/events/paid"
MULTICAST = "/v1/events/paid"
GOOD_TARGET = {"by": "run_id", "run_id": RUN_ID}
GOOD_CHILD = {"kind": "child", "key": "k", "ordinal": 0, "run_id": RUN_ID, "workflow": "w", "version": "1"}
GOOD_EVENT = {"kind": "send_event", "key": "k", "ordinal": 0, "run_id": RUN_ID, "event": "paid", "reference": "r"}
GOOD_CONTROL = {"kind": "cancel", "key": "k", "ordinal": 0, "run_id": RUN_ID, "operation_id": "o"}
NOT_NEGATIVE = "Input should be greater than or equal to 0"
OPERATION_ID = "String should match pattern '^[A-Za-z0-9_-]{1,64}$'"


def calling(*calls: object) -> HttpRequest:
    """A checkpoint with these calls on other runs."""
    return post(CHECKPOINTS, {**GOOD_CHECKPOINT, "calls": calls})


BAD_CONTROLS: Mapping[str, tuple[HttpRequest, dict[str, str]]] = {
    **{
        f"{name} without an operation id": (post(f"{RUN_PATH}/{name}", {}), {"operation_id": "is required"})
        for name in ("pause", "resume", "cancel", "wakeup", "requeue")
    },
    **{
        f"{name} with an operation id that is none": (
            post(f"{RUN_PATH}/{name}", {"operation_id": "a b", "reason": 1}),
            {"operation_id": OPERATION_ID, "reason": IS_UNKNOWN},
        )
        for name in ("pause", "resume", "cancel", "wakeup")
    },
    **{
        f"{name} of an id that is none": (post(f"/v1/runs/none/{name}", {"operation_id": "o"}), {"run_id": RUN_ID_TEXT})
        for name in ("pause", "resume", "cancel", "wakeup")
    },
    "operation id that is too long": (post(f"{RUN_PATH}/pause", {"operation_id": "o" * 65}), {"operation_id": OPERATION_ID}),
    "explanation of a pause": (
        post(f"{RUN_PATH}/pause", {"operation_id": "o", "explanation": "lunch"}),
        {"explanation": IS_UNKNOWN},
    ),
    "explanation of nothing": (post(f"{RUN_PATH}/cancel", {"operation_id": "o", "explanation": ""}), {"explanation": TOO_SHORT}),
    "explanation that is too long": (
        post(f"{RUN_PATH}/cancel", {"operation_id": "o", "explanation": "é" * 1_025}),
        {"explanation": "String should have at most 1024 characters"},
    ),
    "sleep that is no name": (post(f"{RUN_PATH}/wakeup", {"operation_id": "o", "sleep": "*"}), {"sleep": NAME}),
    "sleep with a number for a name": (
        post(f"{RUN_PATH}/wakeup", {"operation_id": "o", "sleep": 1}),
        {"sleep": "Input should be a valid string"},
    ),
}

BAD_EVENTS: Mapping[str, tuple[HttpRequest, dict[str, str]]] = {
    "event that is no name": (post(f"{RUN_PATH}/events/a%20b", {}), {"event": NAME}),
    "event with a name that is too long": (post(f"/v1/events/{'a' * 129}", {"targets": [GOOD_TARGET]}), {"event": NAME}),
    "event to an id that is none": (post("/v1/runs/none/events/paid", {}), {"run_id": RUN_ID_TEXT}),
    "event with an unknown field": (post(EVENT, {"datum": 1}), {"datum": IS_UNKNOWN}),
    "event with a reference of nothing": (post(EVENT, {"reference": ""}), {"reference": TOO_SHORT}),
    "event with a reference that is too long": (
        post(MULTICAST, {"targets": [GOOD_TARGET], "reference": "é" * 257}),
        {"reference": "String should have at most 256 characters"},
    ),
    "event with control characters in its reference": (post(EVENT, {"reference": "a\x00b"}), {"reference": REFERENCE}),
    "event with NaN": (post(EVENT, b'{"data": {"price": NaN}}'), {"body": "body is not JSON: it has no number NaN"}),
    "event with a number that a double cannot hold": (
        post(EVENT, {"data": {"amount": [2**53 + 1]}}),
        {"body": "body.data.amount[0] is an integer beyond ±2^53: use str"},
    ),
    "event to many with an infinity": (
        post(MULTICAST, b'{"targets": [{"by": "run_id", "run_id": "%s"}], "data": 1e999}' % RUN_ID.encode()),
        {"body": "body.data is inf"},
    ),
    "event to nobody": (
        post(MULTICAST, {"targets": []}),
        {"targets": "Tuple should have at least 1 item after validation, not 0"},
    ),
    "event to too many": (
        post(MULTICAST, {"targets": [GOOD_TARGET] * 101}),
        {"targets": "Tuple should have at most 100 items after validation, not 101"},
    ),
    "targets that are wrong in many ways": (
        post(
            MULTICAST,
            {
                "targets": [
                    GOOD_TARGET,
                    {"run_id": RUN_ID},
                    {"by": "run_id", "run_id": "none"},
                    {"by": "reference", "workflow": "a b", "reference": "a"},
                    {**GOOD_TARGET, "reference": "a"},
                ]
            },
        ),
        {
            "targets[1]": "Unable to extract tag using discriminator 'by'",
            "targets[2].run_id": RUN_ID_TEXT,
            "targets[3].workflow": NAME,
            "targets[3].version": "is required",
            "targets[4].reference": IS_UNKNOWN,
        },
    ),
}

BAD_CALLS: Mapping[str, tuple[HttpRequest, dict[str, str]]] = {
    "call of no kind": (
        calling({**GOOD_CHILD, "kind": "requeue"}, {}),
        {
            "calls[0]": "'kind' should be one of 'child', 'send_event', 'cancel', 'pause', 'resume', 'wakeup'",
            "calls[1]": "Unable to extract tag using discriminator 'kind'",
        },
    ),
    "call with a wrong key, ordinal, and id": (
        calling({**GOOD_CHILD, "key": "", "ordinal": -1, "run_id": "none"}),
        {"calls[0].key": TOO_SHORT, "calls[0].ordinal": NOT_NEGATIVE, "calls[0].run_id": RUN_ID_TEXT},
    ),
    "call with a key that is too long and no ordinal": (
        calling({**GOOD_EVENT, "key": "k" * 2_049, "ordinal": True}),
        {"calls[0].key": "String should have at most 2048 characters", "calls[0].ordinal": NUMBER},
    ),
    "child of no workflow": (
        calling(GOOD_EVENT, {**GOOD_CHILD, "workflow": "a b", "options": {"priority": 10}, "reference": {"id": ""}, "wait": 1}),
        {
            "calls[1].workflow": NAME,
            "calls[1].options.priority": "Input should be less than or equal to 9",
            "calls[1].reference.id": TOO_SHORT,
            "calls[1].wait": IS_UNKNOWN,
        },
    ),
    "sent event without a reference": (
        calling({**GOOD_EVENT, "reference": None, "event": "a b"}),
        {"calls[0].event": NAME, "calls[0].reference": "Input should be a valid string"},
    ),
    "sent event with NaN": (
        post(CHECKPOINTS, json.dumps({**GOOD_CHECKPOINT, "calls": [{**GOOD_EVENT, "data": float("nan")}]}).encode()),
        {"body": "body is not JSON: it has no number NaN"},
    ),
    "child with a number that a double cannot hold": (
        calling({**GOOD_CHILD, "input": {"a": -(2**60)}}),
        {"body": "body.calls[0].input.a is an integer beyond ±2^53: use str"},
    ),
    "control with a wrong operation id, explanation and sleep": (
        calling(
            {"kind": "cancel", "key": "k", "ordinal": 0, "run_id": RUN_ID, "operation_id": "", "explanation": "", "sleep": ""}
        ),
        {"calls[0].operation_id": OPERATION_ID, "calls[0].explanation": TOO_SHORT, "calls[0].sleep": NAME},
    ),
    "yield with an explanation that is too long": (
        post(CHECKPOINTS, {**GOOD_CHECKPOINT, "end": {"to": "yielded", "explanation": "a" * 1_025}}),
        {"end.explanation": "String should have at most 1024 characters"},
    ),
}

BAD_COMMANDS = {**BAD_CONTROLS, **BAD_EVENTS, **BAD_CALLS}
