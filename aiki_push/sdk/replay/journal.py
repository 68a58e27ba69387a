"""Writing down what the run does, through its claim: one checkpoint at a time, each under one id however often it is sent."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from aiki_push.domain.errors import (
    AikiError,
    ApiError,
    InternalError,
    InvalidToken,
    NotFound,
    RateLimited,
    RevisionConflict,
    ServerUnreachable,
    StorageUnavailable,
)
from aiki_push.domain.ids import token_text
from aiki_push.domain.log_records import OUTCOMES, CallEnded, KnownRecord
from aiki_push.domain.values import RunId
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, MAX_OPERATIONS, Call, StartChild
from aiki_push.ports.api.checkpoints import (
    MAX_CHECKPOINT_BYTES,
    AppendCheckpoint,
    Appended,
    CheckpointAnswer,
    Ended,
    HandBack,
    InboxMoved,
    Overtaken,
    SegmentEnd,
)
from aiki_push.ports.api.claims import Claimed, GetInbox, Inbox
from aiki_push.ports.api.operation import Api, Operation
from aiki_push.ports.entropy import Entropy

MAX_CHECKPOINT_JSON_BYTES = MAX_CHECKPOINT_BYTES - 40 * 1024
"""Records in one checkpoint, so that an output of the largest size, a token and the envelope still fit. A larger record goes alone."""

MAX_CALLS_JSON_BYTES = 1024 * 1024
"""Calls in one checkpoint: a request body may have 3 MB, and holds records too. A larger call goes alone."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0

_LOST = (RevisionConflict, InvalidToken, NotFound)
"""What the server says to somebody who does not own the run."""

_PASSING = (ServerUnreachable, StorageUnavailable, RateLimited)
"""What is worth asking again for."""

R = TypeVar("R")

_log = logging.getLogger(__name__)


class LostRun(AikiError):
    """The claim is no longer ours. Nothing more is written; whatever is running stops."""


class AbandonedSegment(AikiError):
    """The server gave no answer for as long as the claim can have lived, or cannot give one. What was written last is unknown here."""


class HandedBack(AikiError):
    """An append stayed without an answer; its slot was taken and the run is queued again. Nothing that it was to start began."""


class Journal:
    """The records of one segment, those not yet written and the way to write them."""

    def __init__(self, api: Api, claimed: Claimed, entropy: Entropy, is_claim_alive: Callable[[], bool]) -> None:
        self._api = api
        self._run_id: RunId = claimed.run.id
        self._token = claimed.token
        self._position = claimed.position
        self._entropy = entropy
        self._is_claim_alive = is_claim_alive
        self._pending: list[KnownRecord] = []

    @property
    def has_pending(self) -> bool:
        """Whether there are records that are not written yet."""
        return bool(self._pending)

    def add(self, *records: KnownRecord) -> None:
        """Keep `records` for the next checkpoint."""
        self._pending.extend(records)

    async def flush(self, calls: Sequence[Call] = ()) -> list[CallEnded]:
        """Write what is pending, and have `calls` carried out. Returns their outcomes, in order, once all is in the log.

        Raises LostRun, AbandonedSegment, and the ApiError of a request that can never succeed (LogFull, PayloadTooLarge, …).
        """
        parts = split(self._pending)
        self._pending = []
        first, *more = split_calls(calls) or [[]]
        *full, last = parts or [[]]
        for part in full:
            await self._append(part)
        ended = list(await self._append(last, first)) if last or first else []
        for group in more:
            ended += await self._append([], group)
        return ended

    async def end(self, end: SegmentEnd) -> Ended | InboxMoved:
        """Write what is pending and end the segment. After InboxMoved nothing was ended and the segment goes on.

        Raises as `flush`.
        """
        *full, last = split(self._pending) or [[]]
        self._pending = []
        for part in full:
            await self._append(part)
        answer = await self._send(self._checkpoint(last, end))
        if isinstance(answer, InboxMoved):
            self._pending = last
            return answer
        if isinstance(answer, Ended):
            return answer
        raise LostRun("another write of this claim stands where the segment was to end")

    async def _append(self, records: list[KnownRecord], calls: Sequence[Call] = ()) -> tuple[CallEnded, ...]:
        checkpoint = self._checkpoint(records, None, calls)
        try:
            answer = await self._send(checkpoint)
        except AbandonedSegment:
            answer = await self._give_up(checkpoint)
        if not isinstance(answer, Appended | Overtaken):
            raise LostRun("the server ended the segment")
        self._token, self._position = answer.token, answer.position
        return answer.ended

    def _checkpoint(
        self, records: Sequence[KnownRecord], end: SegmentEnd | HandBack | None, calls: Sequence[Call] = ()
    ) -> AppendCheckpoint:
        checkpoint_id = token_text(self._entropy.token(12))
        return AppendCheckpoint(
            run_id=self._run_id,
            token=self._token,
            checkpoint_id=checkpoint_id,
            position=self._position,
            records=tuple(records),
            calls=tuple(calls),
            end=end,
        )

    async def inbox(self, after: int) -> Inbox:
        """The messages numbered above `after`, as the server has them now. Raises LostRun, AbandonedSegment."""
        return await self.ask(GetInbox(run_id=self._run_id, after=after))

    async def ask(self, question: Operation[R]) -> R:
        """The answer, once the server gives one. Raises LostRun, AbandonedSegment (it never will, or the claim has died)."""
        try:
            return await self._send(question, _PASSING)
        except ApiError as error:
            raise AbandonedSegment(str(error)) from error

    async def _send(self, operation: Operation[R], passing: tuple[type[AikiError], ...] = (*_PASSING, InternalError)) -> R:
        """Repeat `operation` until there is a definite answer, as long as the claim lives."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await self._api.call(operation)
            except _LOST as error:
                raise self._lost(error) from error
            except passing as error:
                if not self._is_claim_alive():
                    raise AbandonedSegment(str(error)) from error
            await asyncio.sleep(pause_s * self._entropy.fraction())
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _give_up(self, checkpoint: AppendCheckpoint) -> CheckpointAnswer:
        """Hand the run back by taking the slot that the unanswered append wanted: it arrived before, or it never will.

        Only outcomes go along; nothing that was about to start did. Raises LostRun, AbandonedSegment.
        """
        outcomes = [record for record in checkpoint.records if isinstance(record, OUTCOMES)]
        try:
            answer = await self._api.call(self._checkpoint(outcomes, HandBack()))
        except _LOST as error:
            raise self._lost(error) from error
        except (ApiError, ServerUnreachable) as error:
            raise AbandonedSegment(str(error)) from error
        if isinstance(answer, Ended):
            raise HandedBack(f"run {self._run_id} is queued again")
        return answer

    def _lost(self, error: ApiError) -> LostRun:
        _log.info("run %s is no longer ours: %s", self._run_id, error, extra={"aiki.run_id": self._run_id})
        return LostRun(str(error))


def split_calls(calls: Sequence[Call]) -> list[list[Call]]:
    """`calls` in groups that a transaction can hold, in order: not too many, and none that may be about a run that another is about."""
    groups: list[list[Call]] = []
    size = MAX_CALLS_JSON_BYTES
    for call in calls:
        call_size = _size(call)
        limit = MAX_CHILD_STARTS if isinstance(call, StartChild) else MAX_OPERATIONS
        if size + call_size > MAX_CALLS_JSON_BYTES or len(groups[-1]) >= limit or any(_may_meet(call, one) for one in groups[-1]):
            groups.append([])
            size = 0
        groups[-1].append(call)
        size += call_size
    return groups


def _may_meet(call: Call, other: Call) -> bool:
    """Whether both may be about one run. What a reference names is not known here: it may be any run that the other speaks to."""
    names_one = any(isinstance(one, StartChild) and one.reference is not None for one in (call, other))
    speaks_to_one = not (isinstance(call, StartChild) and isinstance(other, StartChild))
    return names_one and speaks_to_one or not set(call.targets).isdisjoint(other.targets)


def _size(part: Call | KnownRecord) -> int:
    """In bytes of JSON."""
    return len(part.model_dump_json().encode())


def split(records: Sequence[KnownRecord]) -> list[list[KnownRecord]]:
    """`records` in parts that fit into a checkpoint each, in order."""
    parts: list[list[KnownRecord]] = []
    size = MAX_CHECKPOINT_JSON_BYTES
    for record in records:
        record_size = _size(record)
        if size + record_size > MAX_CHECKPOINT_JSON_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(record)
        size += record_size
    return parts
