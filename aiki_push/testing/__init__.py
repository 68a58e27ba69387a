"""For tests: a harness that runs workflows in virtual time, replays of histories, and fakes of the ports and of the storage table.

Nothing here needs AWS, a network or a clock.
"""

from aiki_push.testing.clocks import FAKE_NOW, FakeClock
from aiki_push.testing.entropy import SequentialEntropy
from aiki_push.testing.faulty_api import FaultyApi
from aiki_push.testing.harness import Harness, NotExecuting
from aiki_push.testing.local_system import LocalSystem
from aiki_push.testing.recorders import RecordingPublisher, RecordingWakeups
from aiki_push.testing.replaying import DoesNotFit, Replayed, replay
from aiki_push.testing.tables import CountingTable, Counts, FaultyTable
from aiki_push.testing.virtual_time import NothingHappens, VirtualLoop

__all__ = [
    "FAKE_NOW",
    "Counts",
    "CountingTable",
    "DoesNotFit",
    "FakeClock",
    "FaultyApi",
    "FaultyTable",
    "Harness",
    "LocalSystem",
    "NotExecuting",
    "NothingHappens",
    "RecordingPublisher",
    "RecordingWakeups",
    "Replayed",
    "SequentialEntropy",
    "VirtualLoop",
    "replay",
]
