"""The mistakes of `docs/mistakes.md`, by section and by what they are called there: each a function that makes it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from aiki_push import Client, Duration, endpoint, event, exponential, run_blocking, task, workflow
from tests.docs import mistaken_waits as waits
from tests.docs.mistaken_code import (
    ORDER,
    Clock,
    Colour,
    Mistake,
    Order,
    Rush,
    Stamped,
    a_default,
    a_keyword,
    a_run,
    another_input,
    another_version,
    asks_for_task_info,
    blocking_itself,
    blocks,
    client,
    defined,
    defined_twice,
    doing,
    gives_something_else,
    names_the_input,
    no_input,
    no_run,
    opens_a_connection,
    order_v1,
    plain_handler,
    served,
    ship,
    ship_gives,
    started,
    task_of,
    timeout_in_seconds,
    two_inputs,
    unknown_name,
    untyped_ship,
    uses_a_thread,
    v1,
    v2,
    value_of_a_failed_run,
    waits_for_nothing,
)
from tests.integration.replays import Replaying

TYPES: Mapping[str, object] = {
    "`datetime`": datetime,
    "`date`": date,
    "`timedelta`": timedelta,
    "`Decimal`": Decimal,
    "`UUID`": UUID,
    "`Path`": Path,
    "`bytes`": bytes,
    "`set[str]`": set[str],
    "a plain `Enum`": Colour,
    "`tuple[int, ...]`": tuple[int, ...],
    "`Sequence[int]`": Sequence[int],
    "`Mapping[str, int]`": Mapping[str, int],
    "`Iterator[int]`": Iterator[int],
    "`dict[int, str]`": dict[int, str],
    "`complex`": complex,
    "`Callable[[int], str]`": Callable[[int], str],
    "a class of your own": Clock,
    "a model with such a field": Stamped,
}


MISTAKES: Mapping[str, Mapping[str, Mistake]] = {
    "Defining": {
        '`workflow("order processing")`': lambda: workflow("order processing"),
        '`task("")`': lambda: task(""),
        "two handlers for one version": defined_twice,
        "a workflow that is a plain `def`": lambda: defined(plain_handler),
        "a workflow without its run": lambda: defined(no_run),
        "a task of two inputs": lambda: task_of(two_inputs),
        "an input with a default": lambda: task_of(a_default),
        "an input by keyword": lambda: task_of(a_keyword),
        "`input=` for a handler that takes none": lambda: task_of(no_input, input=Order),
        "a hint with a misspelt name (said when the endpoint is made)": lambda: served(defined(unknown_name)),
        '`retry={"max_attempts": 3}`': lambda: task_of(no_input, retry={"max_attempts": 3}),
        "`exponential(max_attempts=0, …)`": lambda: exponential(max_attempts=0, base_delay_ms=500),
        "`priority=10`": lambda: defined(a_run, priority=10),
        '`pool="tenant acme"`': lambda: defined(a_run, pool="tenant acme"),
        '`event("paid", datetime)`': lambda: event("paid", datetime),
        '`event("payment received")`': lambda: event("payment received"),
        "`expected_duration=120`": lambda: task_of(no_input, expected_duration=120),
        "`Duration()`": Duration,
        "`Duration(seconds=-1)`": lambda: Duration(seconds=-1),
    },
    "Types": {name: ship_gives(declared) for name, declared in TYPES.items()},
    "Setting options": {
        '`order_v1.with_("reference.di", "order-123")`': lambda: v1.with_("reference.di", "order-123"),
        '`order_v1.with_("reference.id", 123)`': lambda: v1.with_("reference.id", 123),
        '`order_v1.with_("reference", "order-123")`': lambda: v1.with_("reference", "order-123"),
        '`order_v1.with_("reference.conflict_policy", "replace")`': lambda: v1.with_("reference.conflict_policy", "replace"),
        '`order_v1.with_("priority", 10)`': lambda: v1.with_("priority", 10),
        '`order_v1.with_("pool", None)`': lambda: v1.with_("pool", None),
        '`order_v1.with_("delay", 30)`': lambda: v1.with_("delay", 30),
        '`order_v1.with_("delay", timedelta(0))`': lambda: v1.with_("delay", timedelta(0)),
        '`order_v1.with_("retry", 3)`': lambda: v1.with_("retry", 3),
        '`ship.with_("pool", "tenant-acme")`, of a task': lambda: untyped_ship.with_("pool", "tenant-acme"),
        '`paid.with_("delay", timedelta(1))`, of an event': lambda: waits.paid.with_("delay", timedelta(1)),
        "a conflict policy without a reference id (said by `start`)": lambda: started(
            v1.with_("reference.conflict_policy", "error"), ORDER
        ),
    },
    "Making an endpoint": {
        "no version": served,
        "one version twice": lambda: served(v1, v1.with_("priority", 1)),
        "a single start": lambda: served(v1.with_("reference.id", "order-123")),
        "a workflow instead of its versions": lambda: served(workflow("orders")),
        "no key": lambda: endpoint(workflows=[order_v1], client=client),
    },
    "Starting and waiting": {
        "an input that does not fit its type": lambda: started(v1, {"order_id": 123, "amount": "5"}),
        "an input that breaks the rules of its type": lambda: started(v1, Order.model_construct(order_id="123", amount=0)),
        "a dict where a model is declared": lambda: started(v1, {"order_id": "123", "amount": 5}),
        "an instance of a subclass, which would lose fields": lambda: started(v1, Rush(order_id="123", amount=5)),
        "no input": lambda: started(v1),
        "NaN": lambda: started(v2, {"weights": [1.5, math.nan]}),
        "an integer that JSON readers round": lambda: started(v2, {"id": 2**60}),
        "a set, where nothing is declared": lambda: started(v2, {"tags": {"new"}}),
        "a key that is no str": lambda: started(v2, {"amounts": {5: "five"}}),
        "too much": lambda: started(v2, "a" * 300_000),
        "another input under one reference": another_input,
        "a reference that no run has": lambda: order_v1.get_by_reference(Replaying(order_v1).client, "order-123"),
        "a run of another version": another_version,
        "`handle.wait(timeout=5)`": timeout_in_seconds,
        "the value of a run that failed": value_of_a_failed_run,
        "`run_blocking` by what it runs": lambda: run_blocking(blocking_itself()),
        "`Client()`": Client,
    },
    "Sending events and controlling runs": {
        "no data": waits.to_run(lambda handle: waits.paid.send(handle)),
        "data for an event without any": waits.to_run(lambda handle: waits.stopped.send(handle, waits.PAYMENT)),
        "data that does not fit": waits.to_run(lambda handle: waits.paid.send(handle, waits.WRONG_PAYMENT)),
        "a dict for a model": waits.to_run(lambda handle: waits.paid.send(handle, {"transaction_id": "t-1"})),
        "an id where `send` wants a handle": waits.to_run(lambda handle: waits.stopped.send(handle.id)),
        "a reference where `multicast` wants an id": waits.to_run(
            lambda handle: waits.stopped.multicast(handle.client, ["order-123"])
        ),
        '`handle.cancel("")`': waits.to_run(lambda handle: handle.cancel("")),
        "resuming a run that is not paused": waits.to_run(lambda handle: handle.resume()),
        "waking up a run that does not sleep": waits.to_run(lambda handle: handle.wakeup("packing")),
    },
    "Executing": {
        "a task that fails, and nobody catches `TaskFailed`": doing(
            lambda run: ship.start(run, Order(order_id="unknown", amount=1))
        ),
        "a task whose output does not come back as it was": doing(lambda run: ship.start(run, ORDER)),
        "a task's input by keyword": doing(names_the_input),
        "an output that does not fit its type": doing(gives_something_else),
        "a connection in a workflow": doing(opens_a_connection),
        "a thread in a workflow": doing(uses_a_thread),
        "`run_blocking` in a workflow": doing(blocks),
        "`task_info()` outside of a task": doing(asks_for_task_info),
        "waiting for what nothing can bring": doing(waits_for_nothing),
        '`run.sleep("a nap", …)`': waits.doing(lambda run: run.sleep("a nap", waits.HOUR)),
        '`run.sleep("nap", 60)`': waits.doing(lambda run: run.sleep("nap", waits.a_minute)),
        "`paid.wait(run, timeout=5)`": waits.doing(lambda run: waits.paid.wait(run, timeout=5)),
        "`.data` of a wait that timed out": waits.doing(waits.data_of_a_timeout),
        "`asyncio.wait` on coroutines": waits.doing(waits.waits_for_coroutines),
        "`asyncio.as_completed` on coroutines": waits.doing(waits.completes_coroutines),
        "a child without its input": waits.doing(lambda run: waits.untyped_parcels.start_as_child(run)),
        "another input for a child's reference": waits.doing(waits.child_with_another_input),
        "the value of a child that failed": waits.doing(waits.value_of_a_failed_child),
        "`child.wait(timeout=5)`": waits.doing(waits.child_for_five_seconds),
        '`run.peer("order-123")`': waits.doing(lambda run: run.peer("order-123").pause()),
        "`run.peer(run.id).cancel()`": waits.doing(lambda run: run.peer(run.id).cancel()),
        "a peer that does not exist": waits.doing(lambda run: run.peer(waits.RUN_ID).pause()),
        "waking up a child that is not in such a sleep": waits.doing(waits.wakes_nobody),
        "`order_v1.start(client, …)` in a workflow": waits.doing(waits.a_client_in_a_workflow),
    },
    "Stalling": {
        "`datetime.now()` in the input of a task": waits.doing(waits.asks_the_machine_for_the_time),
        "an event that another sender filled in otherwise": waits.doing(
            waits.waits_for_payment, lambda handle: waits.another_paid.send(handle, "t-1")
        ),
        "a child whose output has another type by now": waits.doing(waits.output_of_changed_child),
    },
}


SILENT: Mapping[str, tuple[Mistake, str]] = {
    "`except TimeoutError` around `paid.wait(run, timeout=…)`": (waits.doing(waits.catches_timeout_error), "TimedOut()"),
    "`if not await paid.wait(run, timeout=…)`": (waits.doing(waits.asks_whether_it_is_true), "paid"),
    "the same event sent again without a `reference.id`": (waits.doing(waits.receives_two, waits.sends_twice), "t-1, t-1"),
    "a wait that lost a race and was not cancelled": (
        waits.doing(waits.leaves_the_loser_alone, waits.pays_after_a_while),
        "True, TimedOut()",
    ),
}
"""Mistakes that nobody mentions: what a workflow with them returns."""
