"""Randomness that is the same in every test."""

from itertools import count

_GOLDEN = 0.6180339887498949


class SequentialEntropy:
    """An Entropy that counts: tokens are numbers from `first` as big-endian bytes, fractions are spread evenly over [0, 1).

    Two of them that write to one store must not give the same tokens: start them far apart.
    """

    def __init__(self, first: int = 1) -> None:
        self._tokens = count(first)
        self._fractions = count(1)

    def token(self, size: int) -> bytes:
        """The next number in `size` bytes, the lowest ones where it does not fit."""
        return (next(self._tokens) % (1 << 8 * size)).to_bytes(size, "big")

    def fraction(self) -> float:
        """The next multiple of the golden ratio, without its whole part."""
        return next(self._fractions) * _GOLDEN % 1.0
