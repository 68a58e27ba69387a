import json

import pytest

from aiki_push.adapters.transport.encoding import Encoded, encode
from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.calls import Call, SendEventTo, StartChild
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.controls import RequeueRun
from aiki_push.ports.api.endpoints import GetEndpoint
from aiki_push.ports.api.runs import GetHistory, StartRun, WaitRun
from tests.unit.adapters.transport.sample_values import OTHER_RUN_ID, RUN_ID


def test_fields_travel_in_path_query_and_body() -> None:
    assert [
        encode(WaitRun(run_id=RUN_ID, timeout_ms=DurationMs(5))),
        encode(GetHistory(run_id=RUN_ID, cursor=None)),
        encode(RequeueRun(run_id=RUN_ID, operation_id="o")),
    ] == [
        Encoded(f"/v1/runs/{RUN_ID}/wait?timeout_ms=5", None),
        Encoded(f"/v1/runs/{RUN_ID}/history", None),
        Encoded(f"/v1/runs/{RUN_ID}/requeue", b'{"operation_id":"o"}'),
    ]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (StartRun(workflow="w", version="1"), b'{"workflow":"w","version":"1"}'),
        (StartRun(workflow="w", version="1", input=None), b'{"workflow":"w","version":"1","input":null}'),
        (StartRun(workflow="w", version="1", input=1.0), b'{"workflow":"w","version":"1","input":1.0}'),
        (StartRun(workflow="w", version="1", input=float("nan")), b'{"workflow":"w","version":"1","input":NaN}'),
    ],
)
def test_what_was_not_set_is_left_out_and_nothing_is_rewritten(operation: StartRun, body: bytes) -> None:
    assert encode(operation) == Encoded("/v1/runs", body)


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (StartChild(key="k", ordinal=0, run_id=OTHER_RUN_ID, workflow="w", version="1"), set()),
        (StartChild(key="k", ordinal=0, run_id=OTHER_RUN_ID, workflow="w", version="1", input=None), {"input"}),
        (SendEventTo(key="k", ordinal=0, run_id=OTHER_RUN_ID, event="paid", reference="r"), set()),
        (SendEventTo(key="k", ordinal=0, run_id=OTHER_RUN_ID, event="paid", reference="r", data=None), {"data"}),
    ],
)
def test_a_call_on_another_run_carries_a_value_only_where_it_was_given_one(call: Call, sent: set[str]) -> None:
    body = encode(AppendCheckpoint(run_id=RUN_ID, token="t", checkpoint_id="c", position=0, records=(), calls=(call,))).body
    assert body is not None
    (encoded,) = json.loads(body)["calls"]
    assert {name for name in encoded if name in ("input", "data")} == sent


@pytest.mark.parametrize(("name", "part"), [("a:b", "a%3Ab"), (".", "%2E"), ("..", "%2E%2E"), ("a.b", "a.b")])
def test_a_name_stays_one_part_of_the_path(name: str, part: str) -> None:
    assert encode(GetEndpoint(endpoint_id=name)) == Encoded(f"/v1/endpoints/{part}", None)
