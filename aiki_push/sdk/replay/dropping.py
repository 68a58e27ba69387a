"""Closing what a dropped workflow leaves: Python runs its `finally` blocks, and nothing of it is heard of again."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from aiki_push.sdk.replay.branches import Branch

MAX_ROUNDS = 1000
"""How often a branch is told to end. Each await in a `finally` block or in the exit of a context manager takes one round."""


def close_branch(branch: Branch[Any], step: Callable[[], object]) -> None:
    """Raise `Dropped` in a branch, by steps of its task, until its coroutine ends; the task stays pending.

    So a branch above that awaits it, in a `finally` block too, still waits there, and can be told to end in its turn.
    """
    branch.body.drop()
    for _ in range(MAX_ROUNDS):
        if branch.body.has_ended or branch.done():
            return
        step()
    _keep_for_ever(branch.body.coroutine)
    branch.body.finish()


def _keep_for_ever(coroutine: object) -> None:
    """Never let Python free a coroutine that swallows every `Dropped`: it would complain aloud, and at exit it may crash."""
    import ctypes  # here, because it is hardly ever needed and takes milliseconds

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))


async def close_generator(generator: AsyncGenerator[Any, Any]) -> None:
    """Run the clean-up of an async generator; to be stepped as a branch of its own."""
    await generator.aclose()
