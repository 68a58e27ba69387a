"""Randomness, as ids, jitter and nonces need it."""

from typing import Protocol


class Entropy(Protocol):
    """Where random bytes come from. Implementations are safe to call from any thread."""

    def token(self, size: int) -> bytes:
        """`size` bytes that nobody can guess."""
        ...

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
        ...
