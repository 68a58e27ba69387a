"""The system that most tests run on."""

from aiki_push.testing.local_system import NAMESPACE, LocalSystem

__all__ = ["NAMESPACE", "LocalSystem"]
