"""Reading a claimed run whole: the pages of its log and inbox, and the values that are too large for them."""

from collections.abc import Iterable

from aiki_push.domain.errors import InternalError
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import TaskCompleted
from aiki_push.domain.values import StoredValue
from aiki_push.ports.api.claims import Claimed, GetInbox, GetLog
from aiki_push.ports.api.operation import Api
from aiki_push.sdk.replay.journal import Journal
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.values import Values


async def read_whole(api: Api, claimed: Claimed) -> Claimed:
    """The claimed run with its whole log and inbox. Raises ServerUnreachable, ApiError."""
    slots, messages = list(claimed.slots), list(claimed.messages)
    is_complete = claimed.log_is_complete
    while not is_complete:
        page = await api.call(GetLog(run_id=claimed.run.id, after=slots[-1].position if slots else -1))
        # From the claim's own position on, others have written: the run was taken from it, and it must not act on what they did.
        slots += [slot for slot in page.slots if slot.position < claimed.position]
        is_complete = page.is_last or page.slots[-1].position >= claimed.position - 1
    while (seen := messages[-1].seq if messages else 0) < claimed.inbox_seq:
        more = (await api.call(GetInbox(run_id=claimed.run.id, after=seen))).messages
        if not more:
            raise InternalError(f"the inbox of run {claimed.run.id} ends at message {seen} of {claimed.inbox_seq}")
        messages += more
    return claimed.model_copy(update={"slots": tuple(slots), "messages": tuple(messages), "log_is_complete": True})


async def read_memory(journal: Journal, claimed: Claimed) -> tuple[Memory, Values]:
    """What the whole log says, and the values in it and in the inbox. Raises LostRun, AbandonedSegment."""
    records = [*(record for slot in claimed.slots for record in slot.records), *claimed.tail.records]
    memory = Memory.of(records)
    values = Values(journal, claimed.run.id)
    outputs = (record.output for record in records if isinstance(record, TaskCompleted))
    await values.fetch([memory.input, *outputs, *values_in(claimed.messages)])
    return memory, values


def values_in(messages: Iterable[Message]) -> Iterable[StoredValue | None]:
    """The values that come with `messages`."""
    for message in messages:
        yield message.data
        yield message.ending.output if message.ending is not None else None
