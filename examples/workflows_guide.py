"""A guide to defining and starting workflows: each part of it is a piece of code that a test runs."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, Field

from aiki_push import (
    Client,
    Completed,
    Duration,
    Handle,
    Run,
    SingleStart,
    TimedOut,
    endpoint,
    exponential,
    fixed,
    run_blocking,
    task,
    workflow,
)
from aiki_push.apps.endpoint.endpoint import Endpoint
from aiki_push.errors import InvalidValue, NotSerializable, ReferenceConflict, SettingsError

# Defining a workflow: a name, then versions with an implementation.


class Order(BaseModel):
    """What is ordered."""

    order_id: str
    amount: int


class Receipt(BaseModel):
    """What comes of an order."""

    success: bool
    order_id: str


@task("validate-order")
async def validate_order(order: Order) -> str:
    return order.order_id


@task("process-payment", retry=fixed(max_attempts=3, delay_ms=100))
def process_payment(order: Order) -> int:
    return order.amount


orders = workflow("order-processing")


@orders.v("1.0.0")
async def order_v1(run: Run, order: Order) -> Receipt:
    order_id = await validate_order.start(run, order)
    await process_payment.start(run, Order(order_id=order_id, amount=order.amount))
    return Receipt(success=True, order_id=order_id)


# What goes in and comes out is JSON; anything else is refused when the decorator runs, and the error names the field.


def define_what_json_cannot_hold() -> str:
    class Fetched(BaseModel):
        order_id: str
        placed_at: datetime

    try:

        @task("fetch-order")
        async def fetch_order(order_id: str) -> Fetched:
            return Fetched(order_id=order_id, placed_at=datetime(2024, 1, 2))  # noqa: DTZ001 - never called

    except NotSerializable as error:
        return str(error)
    return "defined"


# Versions: runs that exist go on with the version that they were started with.


class User(BaseModel):
    """Who is welcomed."""

    user_id: str


@task("send-welcome-email")
async def send_welcome_email(user: User) -> None: ...


@task("create-user-profile")
async def create_user_profile(user: User) -> None: ...


onboarding = workflow("user-onboarding")


@onboarding.v("1.0.0")
async def onboarding_v1(run: Run, user: User) -> None:
    await send_welcome_email.start(run, user)


@onboarding.v("2.0.0")
async def onboarding_v2(run: Run, user: User) -> None:
    await send_welcome_email.start(run, user)
    await create_user_profile.start(run, user)


def serve(client: Client, public_keys: list[str]) -> Endpoint:
    """An endpoint executes only the versions that it is given: list each one that still has runs."""
    return endpoint(workflows=[onboarding_v1, onboarding_v2, order_v1], client=client, public_keys=public_keys)


# Retries are an option of the runs.


@orders.v("1.1.0", retry=exponential(max_attempts=3, base_delay_ms=5_000))
async def order_with_retries(run: Run, order: Order) -> str:
    return await validate_order.start(run, order)


# Schemas: any type that pydantic knows, with its constraints. The caller is told what the input's refuses, before anything is sent.
# What the output's refuses fails the run.


class Basket(BaseModel):
    """What is to be added up: an order with an id, and a hundred articles at most."""

    order_id: Annotated[str, Field(min_length=1)]
    items: Annotated[list[str], Field(max_length=100)]


class Total(BaseModel):
    """A sum that is not negative."""

    success: bool
    total: Annotated[int, Field(ge=0)]


@orders.v("1.2.0", input=Basket, output=Total)
async def basket_total(run: Run, basket: Basket) -> Total:
    run.logger.info("adding up %d articles", len(basket.items))
    return Total.model_construct(success=True, total=100 if basket.items else -1)


async def start_with_a_wrong_input(client: Client) -> str:
    try:
        await basket_total.start(client, Basket.model_construct(order_id="", items=["a"] * 101))
    except InvalidValue as error:
        return str(error)
    return "started"


# Options: with_() sets one and returns a copy. These fit any run, so the copy is a version like the original.

configured = order_v1.with_("pool", "tenant-acme").with_("retry", exponential(max_attempts=3, base_delay_ms=1_000))

urgent = order_v1.with_("priority", 2)  # 0 goes first, 9 last, among runs due in the same millisecond

# These are about one particular run: a single start can be started, and that is all.

one_off: SingleStart[[Order], Receipt] = order_v1.with_("reference.id", "order-123")

delayed = order_v1.with_("delay", timedelta(seconds=30))

long_delayed = order_v1.with_("delay", Duration(hours=1, minutes=30))


def wrong_uses(client: Client) -> list[str]:
    """What type checkers report, and what is said at run time."""
    sentences: list[str] = []
    try:
        order_v1.with_("reference.di", "order-123")  # type: ignore[call-overload]  # no such option
    except SettingsError as error:
        sentences.append(str(error))
    try:
        order_v1.with_("reference.id", 123)  # type: ignore[call-overload]  # a reference id is a str
    except SettingsError as error:
        sentences.append(str(error))
    try:
        endpoint(workflows=[one_off], client=client, insecure=True)  # type: ignore[list-item]  # about one run only
    except TypeError as error:
        sentences.append(str(error))
    return sentences


# Starting, and waiting for the end.


async def start_and_wait(client: Client) -> str:
    handle = await order_v1.start(client, Order(order_id="123", amount=5))
    print("started:", handle.run.id, handle.run.state.status)
    result = await handle.wait()
    match result.state:
        case Completed(output=receipt):
            return f"completed: {receipt.order_id}"
        case other:
            return f"ended with: {other.status}"


async def wait_with_a_timeout(handle: Handle[Receipt], timeout: timedelta) -> str:
    result = await handle.wait(timeout=timeout)
    if isinstance(result, TimedOut):
        return "timed out waiting for the run"
    return f"ended with: {result.state.status}"


def start_in_a_script(client: Client) -> str:
    handle = run_blocking(order_v1.start(client, Order(order_id="123", amount=5)))
    return run_blocking(handle.wait()).value().order_id


# Reference ids: starting again with the same input gives the run that exists.


async def start_twice(client: Client) -> bool:
    first = await one_off.start(client, Order(order_id="123", amount=5))
    second = await one_off.start(client, Order(order_id="123", amount=5))
    found = await order_v1.get_by_reference(client, "order-123")
    return first.id == second.id == found.id


async def start_again_with_another_input(client: Client) -> str:
    first = await one_off.start(client, Order(order_id="123", amount=5))
    try:
        await one_off.start(client, Order(order_id="123", amount=6))
    except ReferenceConflict:
        existing = order_v1.with_("reference", {"id": "order-123", "conflict_policy": "return_existing"})
        second = await existing.start(client, Order(order_id="123", amount=6))
        return "the run that exists" if first.id == second.id else "another run"
    return "no conflict"
