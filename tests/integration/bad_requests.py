"""Requests that are wrong, by what is wrong with them, and the fields at fault."""

import json
from collections.abc import Mapping
from dataclasses import replace

from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.domain.run import REFERENCE_PATTERN
from tests.unit.adapters.transport.sample_values import RUN_ID

CHECKPOINTS = f"/v1/runs/{RUN_ID}/checkpoints"
RUN_PATH = f"/v1/runs/{RUN_ID}"
GOOD_START = {"workflow": "order", "version": "1"}
GOOD_CHECKPOINT = {"token": "t", "checkpoint_id": "k", "position": 0, "records": []}
GOOD_CLAIMS = {"request_id": "r", "executor": "e", "workflows": [{"name": "w", "version": "1"}]}
IS_UNKNOWN = "is unknown"
TOO_SHORT = "String should have at least 1 character"
REFERENCE = f"String should match pattern '{REFERENCE_PATTERN}'"
NAME = "String should match pattern '^[A-Za-z0-9._:-]{1,128}$'"
RUN_ID_TEXT = "String should match pattern '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'"
NUMBER = "Input should be a valid integer"


def post(path: str, body: object) -> HttpRequest:
    return HttpRequest("POST", path, body=body if isinstance(body, bytes) else json.dumps(body).encode())


BAD_INPUT: Mapping[str, tuple[HttpRequest, dict[str, str]]] = {
    "unknown field": (post("/v1/runs", {**GOOD_START, "inputs": 1}), {"inputs": IS_UNKNOWN}),
    "unknown nested field": (post("/v1/runs", {**GOOD_START, "options": {"pooll": "a"}}), {"options.pooll": IS_UNKNOWN}),
    "unknown parameter": (HttpRequest("GET", RUN_PATH, "verbose=1"), {"verbose": IS_UNKNOWN}),
    "line break in the path": (HttpRequest("GET", "/v1/runs/a%0Ab"), {"run_id": RUN_ID_TEXT}),
    "parameter beside a body": (replace(post("/v1/runs", GOOD_START), query="run_id=1"), {"run_id": IS_UNKNOWN}),
    "missing fields": (post("/v1/runs", {}), {"workflow": "is required", "version": "is required"}),
    "no body": (HttpRequest("POST", "/v1/runs"), {"workflow": "is required", "version": "is required"}),
    "text for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": "0"}), {"position": NUMBER}),
    "bool for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": True}), {"position": NUMBER}),
    "float for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": 1.0}), {"position": NUMBER}),
    "number for a text": (post("/v1/runs", {**GOOD_START, "workflow": 7}), {"workflow": "Input should be a valid string"}),
    "null for a text": (post("/v1/runs", {**GOOD_START, "workflow": None}), {"workflow": "Input should be a valid string"}),
    "object for a list": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "records": {}}), {"records": "Input should be a valid array"}),
    "text for a number deep inside": (
        post(CHECKPOINTS, {**GOOD_CHECKPOINT, "records": [{"type": "task_cancelled", "at": "1", "task_id": "a"}]}),
        {"records[0].at": NUMBER},
    ),
    "several at once": (
        post("/v1/runs", {"workflow": "a#b", "version": "", "run_id": "x", "options": {"priority": 10}}),
        {
            "run_id": RUN_ID_TEXT,
            "workflow": NAME,
            "version": NAME,
            "options.priority": "Input should be less than or equal to 9",
        },
    ),
    "reference of nothing": (post("/v1/runs", {**GOOD_START, "reference": {"id": ""}}), {"reference.id": TOO_SHORT}),
    "reference without an id": (post("/v1/runs", {**GOOD_START, "reference": {}}), {"reference.id": "is required"}),
    "reference that is too long": (
        post("/v1/runs", {**GOOD_START, "reference": {"id": "é" * 257}}),
        {"reference.id": "String should have at most 256 characters"},
    ),
    "control characters in a reference": (
        HttpRequest("GET", "/v1/runs", "workflow=w&version=1&reference=a%0Ab"),
        {"reference": REFERENCE},
    ),
    "line separator in a reference": (
        post("/v1/runs", {**GOOD_START, "reference": {"id": "a\u2028b"}}),
        {"reference.id": REFERENCE},
    ),
    "policy that is none": (
        post("/v1/runs", {**GOOD_START, "reference": {"id": "a", "conflict_policy": "replace"}}),
        {"reference.conflict_policy": "Input should be 'error' or 'return_existing'"},
    ),
    "no delay": (
        post("/v1/runs", {**GOOD_START, "options": {"delay_ms": 0}}),
        {"options.delay_ms": "Input should be greater than 0"},
    ),
    "delay of more than ten years": (
        post("/v1/runs", {**GOOD_START, "options": {"delay_ms": 10 * 365 * 86_400_000 + 1}}),
        {"options.delay_ms": "Input should be less than or equal to 315360000000"},
    ),
    "strategy that is none": (
        post("/v1/runs", {**GOOD_START, "options": {"retry": {"type": "sometimes"}}}),
        {"options.retry": "'type' should be one of 'never', 'fixed', 'exponential', 'jittered'"},
    ),
    "strategy with a wrong and an unknown field": (
        post(
            "/v1/runs", {**GOOD_START, "options": {"retry": {"type": "fixed", "max_attempts": "3", "delay_ms": 5, "jitter": 1}}}
        ),
        {"options.retry.max_attempts": NUMBER, "options.retry.jitter": IS_UNKNOWN},
    ),
    "status that is none": (
        HttpRequest("GET", "/v1/runs", "status=done"),
        {
            "status": "Input should be 'scheduled', 'queued', 'running', 'paused', 'sleeping', 'awaiting_event', "
            "'awaiting_child_workflow', 'awaiting_task_retry', 'awaiting_retry', 'stalled', 'completed', 'failed' or 'cancelled'"
        },
    ),
    "page of no runs": (HttpRequest("GET", "/v1/runs", "limit=0"), {"limit": "Input should be greater than or equal to 1"}),
    "page that is too long": (
        HttpRequest("GET", "/v1/runs", "limit=101"),
        {"limit": "Input should be less than or equal to 100"},
    ),
    "claims of nothing": (
        post("/v1/claims", {"request_id": "r", "executor": "e", "workflows": []}),
        {"workflows": "Tuple should have at least 1 item after validation, not 0"},
    ),
    "claims without end": (
        post("/v1/claims", {**GOOD_CLAIMS, "limit": 101, "pools": ["a"] * 21}),
        {
            "pools": "Tuple should have at most 20 items after validation, not 21",
            "limit": "Input should be less than or equal to 100",
        },
    ),
    "separator in a name": (HttpRequest("GET", "/v1/endpoints/a%23b"), {"endpoint_id": NAME}),
    "slash in a name": (HttpRequest("GET", "/v1/endpoints/a%2Fb"), {"endpoint_id": NAME}),
    "line end in a name": (post("/v1/runs", {**GOOD_START, "workflow": "order\n"}), {"workflow": NAME}),
    "id that is none": (
        HttpRequest("GET", "/v1/runs/none"),
        {"run_id": "String should match pattern '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'"},
    ),
    "field of the path in the body": (
        post(CHECKPOINTS, {**GOOD_CHECKPOINT, "run_id": RUN_ID}),
        {"run_id": "belongs in the path alone"},
    ),
    "fault of every kind at once": (
        replace(post("/v1/endpoints/a", {"endpoint_id": "a", "url": "https://a", "colour": 1}), method="PUT", query="pools=eu"),
        {
            "pools": IS_UNKNOWN,
            "endpoint_id": "belongs in the path alone",
            "workflows": "is required",
            "colour": IS_UNKNOWN,
        },
    ),
    "field of the path in the query": (HttpRequest("GET", RUN_PATH, f"run_id={RUN_ID}"), {"run_id": "belongs in the path alone"}),
    "parameter given twice": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=1&timeout_ms=1"),
        {"timeout_ms": "is given more than once"},
    ),
    "parameter given twice, in different spellings": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=1&timeout%5Fms=1"),
        {"timeout_ms": "is given more than once"},
    ),
    "parameter that is no number": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=soon"),
        {"timeout_ms": "Input should be a valid integer, unable to parse string as an integer"},
    ),
    "parameter without a value": (
        HttpRequest("GET", f"{RUN_PATH}/history", "cursor"),
        {"cursor": "String should have at least 1 character"},
    ),
    "parameter out of range": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=60001"),
        {"timeout_ms": "Input should be less than or equal to 60000"},
    ),
    "parameter that is not UTF-8": (
        HttpRequest("GET", f"{RUN_PATH}/history", "cursor=%FF"),
        {"query": "is not percent-encoded UTF-8 of at most 100 parameters"},
    ),
    "too many parameters": (
        HttpRequest("GET", RUN_PATH, "&".join(f"a{index}=" for index in range(101))),
        {"query": "is not percent-encoded UTF-8 of at most 100 parameters"},
    ),
    "path that is not UTF-8": (HttpRequest("GET", "/v1/runs/%FF%FE"), {"path": "is not percent-encoded UTF-8"}),
    "body where none belongs": (
        HttpRequest("DELETE", "/v1/endpoints/a", body=b"{}"),
        {"body": "is not taken here: use query parameters"},
    ),
    "no JSON": (post("/v1/runs", b"workflow=order"), {"body": "body is not JSON: Expecting value: line 1 column 1 (char 0)"}),
    "half a body": (
        post("/v1/runs", b'{"workflow": "order"'),
        {"body": "body is not JSON: Expecting ',' delimiter: line 1 column 21 (char 20)"},
    ),
    "no object": (post("/v1/runs", [GOOD_START]), {"body": "should be a JSON object"}),
    "NaN": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": NaN}'),
        {"body": "body is not JSON: it has no number NaN"},
    ),
    "infinity": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": {"price": 1e999}}'),
        {"body": "body.input.price is inf"},
    ),
    "number that a double cannot hold": (
        post("/v1/runs", {**GOOD_START, "input": [2**53 + 1]}),
        {"body": "body.input[0] is an integer beyond ±2^53: use str"},
    ),
    "half a surrogate pair": (
        post("/v1/runs", {**GOOD_START, "input": "\ud83d"}),
        {"body": "body.input holds half of a surrogate pair, which is not Unicode text"},
    ),
    "bottomless body": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": ' + b"[" * 4_000 + b"]" * 4_000 + b"}"),
        {"body": "body is inside more than 100 lists and dicts, or in itself"},
    ),
    "wrong version": (
        HttpRequest("GET", "/health", headers={"aiki-version": "latest"}),
        {"Aiki-Version": "should be major.minor, like 1.4"},
    ),
}
