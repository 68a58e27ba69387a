"""Runs, slots and messages as they are written in real life."""

from aiki_push.domain.inbox import Message, RunEnding, Watcher
from aiki_push.domain.log_records import InputRecord, LogSlot, Tail, TaskCompleted, TaskStarted, Transition
from aiki_push.domain.run import Claim, Run, RunOptions
from aiki_push.domain.run_states import Completed, Queued, Running
from aiki_push.domain.values import Inline, Json, RunId, TimestampMs
from aiki_push.testing import FAKE_NOW

CLAIM_ID = "01J00000000000000000009001"
INPUT_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def run_id(number: int) -> RunId:
    """The `number`-th run id, in order of creation."""
    return RunId(f"01J{number:023d}")


def queued_run(number: int = 1, *, namespace: str = "default", at: TimestampMs = FAKE_NOW, value: Json = None) -> Run:
    """A run of `orders` version `1.0.0` as it is started: queued and due at `at`, all of its log in the tail."""
    state = Queued(reason="new")
    return Run(
        namespace=namespace,
        id=run_id(number),
        workflow="orders",
        version="1.0.0",
        input_hash=INPUT_HASH,
        options=RunOptions(),
        created_at=at,
        revision=0,
        state=state,
        tail=Tail(
            position=0,
            records=(
                InputRecord(at=at, value=Inline(value=value), hash=INPUT_HASH),
                Transition(at=at, state=state, revision=0, attempts=1),
            ),
        ),
        ready_at=at,
        due_at=at,
    )


def claimed(run: Run, *, at: TimestampMs = FAKE_NOW) -> Run:
    """`run` as a claim leaves it: running, its log one transition longer."""
    transition = Transition(at=at, origin="queued", state=Running(), revision=1, attempts=1, executor="worker-1")
    changes = {
        "state": Running(),
        "revision": 1,
        "claim": Claim(claim_id=CLAIM_ID, executor="worker-1", claimed_at=at, refreshed_at=at),
        "tail": Tail(position=run.tail.position, records=(*run.tail.records, transition)),
        "ready_at": None,
        "due_at": TimestampMs(at + 60_000),
    }
    return run.model_copy(update=changes)


def pulled_run(number: int, request_id: str) -> Run:
    """A run that a request pulled out of its queue."""
    run = queued_run(number)
    owned = claimed(run)
    assert owned.claim is not None
    return owned.model_copy(update={"claim": owned.claim.model_copy(update={"request_id": request_id}), "ready_at": run.ready_at})


def task_started(number: int, *, at: TimestampMs = FAKE_NOW) -> TaskStarted:
    """The record before the `number`-th of sequential tasks."""
    return TaskStarted(
        at=at,
        task_id=f"{number:024d}",
        name="charge_card",
        input_hash=INPUT_HASH,
        ordinal=number,
        attempt=1,
        input=Inline(value={"order": number}),
    )


def first_slot(run: Run) -> LogSlot:
    """What a claimed run's first checkpoint appends: the tail, and the start of the first task."""
    return LogSlot(
        position=0,
        records=(*run.tail.records, task_started(0)),
        revision=1,
        at=FAKE_NOW,
        claim_id=CLAIM_ID,
        checkpoint_id=run_id(0),
    )


def event(seq: int, *, data: Json = None) -> Message:
    """The `seq`-th message of a run, an event."""
    return Message(seq=seq, at=FAKE_NOW, kind="event", key="paid", data=Inline(value=data))


def child_ended(seq: int, child: RunId) -> Message:
    """The `seq`-th message of a run, the end of a child that completed."""
    ending = RunEnding(state=Completed(), output=Inline(value={"charged": True}))
    return Message(seq=seq, at=FAKE_NOW, kind="child", key=child, ending=ending)


def watcher(number: int, *, etag: str = "") -> Watcher:
    """The run `run_id(number)` as one that is to be told."""
    return Watcher(run_id=run_id(number), etag=etag)


def task_slot(position: int, *, at: TimestampMs = FAKE_NOW, output: Json = None) -> LogSlot:
    """The slot that a run of sequential tasks appends at `position`: one task's outcome and the next one's start."""
    return LogSlot(
        position=position,
        records=(
            TaskCompleted(at=at, task_id=f"{position:024d}", attempt=1, output=Inline(value=output)),
            task_started(position + 1, at=at),
        ),
        revision=1,
        at=at,
        claim_id=CLAIM_ID,
        checkpoint_id=run_id(position),
    )
