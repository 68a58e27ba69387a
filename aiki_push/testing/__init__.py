"""Fakes for tests: implementations of the ports and of the storage table that do what they are told.

Nothing here needs AWS, a network or a clock.
"""

from aiki_push.testing.clocks import FAKE_NOW, FakeClock
from aiki_push.testing.entropy import SequentialEntropy
from aiki_push.testing.faulty_api import FaultyApi
from aiki_push.testing.local_system import LocalSystem
from aiki_push.testing.recorders import RecordingPublisher, RecordingWakeups
from aiki_push.testing.tables import CountingTable, Counts, FaultyTable

__all__ = [
    "FAKE_NOW",
    "Counts",
    "CountingTable",
    "FakeClock",
    "FaultyApi",
    "FaultyTable",
    "LocalSystem",
    "RecordingPublisher",
    "RecordingWakeups",
    "SequentialEntropy",
]
