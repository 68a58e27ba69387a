"""The waits that the workflow is in, and what can end them: the messages of its inbox, and their deadlines."""

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from aiki_push.domain.inbox import Message
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import ANY_KEY
from aiki_push.sdk.replay.live_wait import LiveWait

_ChannelKey: TypeAlias = tuple[int, str, str]


@dataclass(slots=True)
class _Channel:
    """Waits for one thing, in the order of their calls, and the messages that each of them could be given, in theirs."""

    waits: dict[int, LiveWait] = field(default_factory=dict)
    messages: deque[Message] = field(default_factory=deque)


class OpenWaits:
    """Brings messages and waits together.

    An event goes to one wait only, the one called first, and so on in order. A child's end is given to every wait on that child. An
    early wake ends every sleep of its name that had begun when it was sent; one that begins after somebody was given it never had,
    whatever the clocks say. `received` are the numbers of events given before.
    """

    def __init__(self, received: Collection[int] = ()) -> None:
        self.seen_seq = 0
        self._received = received
        self._open: dict[int, LiveWait] = {}
        self._deadlines: list[tuple[TimestampMs, int]] = []
        self._channels: dict[_ChannelKey, _Channel] = {}
        self._matches: list[tuple[TimestampMs, int, _ChannelKey]] = []  # a heap: when, the message's number, where
        self._wakes: dict[int, Message] = {}
        self._ahead: dict[int, Message] = {}

    def __iter__(self) -> Iterator[LiveWait]:
        """The open waits in the order of their calls."""
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def add(self, wait: LiveWait) -> None:
        """A branch waits for something that the log does not have."""
        self._open[wait.number] = wait
        if wait.deadline_at is not None:
            heapq.heappush(self._deadlines, (wait.deadline_at, wait.number))
        key = _channel_of(wait)
        channel = self._channels.setdefault(key, _Channel())
        channel.waits[wait.number] = wait
        if wait.call.kind == "sleep":
            channel.messages.extend(wake for wake in self._wakes.values() if _wakes(wake, wait))
        self._match(key, channel)

    def discard(self, wait: LiveWait) -> None:
        """The branch waits no longer."""
        if self._open.pop(wait.number, None) is None:
            return
        key = _channel_of(wait)
        del self._channels[key].waits[wait.number]
        self._match(key, self._channels[key])

    def hear(self, messages: Iterable[Message]) -> None:
        """Take in messages; those that came before are left out, and those after a gap are kept until it closes."""
        self._ahead |= {message.seq: message for message in messages if message.seq > self.seen_seq}
        while (message := self._ahead.pop(self.seen_seq + 1, None)) is not None:
            self.seen_seq = message.seq
            if message.seq not in self._received:
                self._hear(message)

    def _hear(self, message: Message) -> None:
        if message.kind == "wakeup":
            self._wakes[message.seq] = message
            keys = [_channel_of(wait) for wait in self._open.values() if wait.call.kind == "sleep" and _wakes(message, wait)]
        else:
            keys = [(0, message.kind, message.key)]
        for key in keys:
            channel = self._channels.setdefault(key, _Channel())
            channel.messages.append(message)
            self._match(key, channel)

    def _match(self, key: _ChannelKey, channel: _Channel) -> None:
        if channel.waits and channel.messages:
            heapq.heappush(self._matches, (channel.messages[0].at, channel.messages[0].seq, key))

    def first_message(self) -> tuple[LiveWait, Message] | None:
        """The earliest message that a wait wants, and the wait that is to have it."""
        while self._matches:
            _, seq, key = self._matches[0]
            channel = self._channels[key]
            if channel.waits and channel.messages and channel.messages[0].seq == seq:
                return next(iter(channel.waits.values())), channel.messages[0]
            heapq.heappop(self._matches)
        return None

    def take(self, wait: LiveWait, message: Message) -> None:
        """`wait` is given `message`, its first one."""
        if message.kind == "event":
            self._channels[_channel_of(wait)].messages.popleft()
        self.discard(wait)

    def was_given(self, message: Message) -> None:
        """Somebody was given `message`, now or by the log."""
        self._wakes.pop(message.seq, None)

    def first_deadline(self) -> LiveWait | None:
        """The open wait whose deadline is the earliest; of several, the one called first."""
        while self._deadlines:
            wait = self._open.get(self._deadlines[0][1])
            if wait is not None:
                return wait
            heapq.heappop(self._deadlines)
        return None


def _channel_of(wait: LiveWait) -> _ChannelKey:
    return (wait.number if wait.call.kind == "sleep" else 0, wait.call.kind, wait.call.key)


def _wakes(wake: Message, sleep: LiveWait) -> bool:
    return wake.key in (sleep.call.key, ANY_KEY) and wake.at >= sleep.called_at
