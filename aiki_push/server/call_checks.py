"""What makes calls on other runs impossible, all of them together: nothing is carried out then."""

from collections.abc import Iterator, Sequence

from aiki_push.domain.canonical_json import check_json, compact_json
from aiki_push.domain.errors import InvalidRequest, NotSerializable, PayloadTooLarge
from aiki_push.domain.values import MAX_VALUE_BYTES, Json, RunId
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, MAX_OPERATIONS, Call, SendEventTo, StartChild
from aiki_push.server.calls import Outcome


def check_calls(calls: Sequence[Call]) -> None:
    """Raises InvalidRequest for calls that one transaction cannot hold (too many, or two on one run or reference) and for values
    that are no plain JSON; PayloadTooLarge.
    """
    faults: list[Json] = [*_surplus(calls), *_doubles(calls), *_unfit_values(calls)]
    if faults:
        raise InvalidRequest("these calls cannot be carried out together", errors=faults)
    for field, value in _values(calls):
        _check_size(field, value)


def _surplus(calls: Sequence[Call]) -> Iterator[Json]:
    # Each takes up to four items of the transaction, whichever it is.
    if len(calls) > MAX_CHILD_STARTS:
        yield {"field": "calls", "message": f"more than {MAX_CHILD_STARTS} calls; send them in parts"}
    if sum(not isinstance(call, StartChild) for call in calls) > MAX_OPERATIONS:
        yield {"field": "calls", "message": f"more than {MAX_OPERATIONS} calls that start no child; send them in parts"}


def _doubles(calls: Sequence[Call]) -> Iterator[Json]:
    seen: set[object] = set()
    for index, call in enumerate(calls):
        if seen & set(call.targets):
            yield _double(index)
        seen |= set(call.targets)


def _double(index: int) -> Json:
    message = "an earlier call of this checkpoint has the same run or reference; send this one in a later checkpoint"
    return {"field": f"calls[{index}]", "message": message}


def _values(calls: Sequence[Call]) -> Iterator[tuple[str, Json]]:
    """Inputs and data, with where they stand."""
    for index, call in enumerate(calls):
        match call:
            case StartChild(input=value):
                yield f"calls[{index}].input", value
            case SendEventTo(data=value):
                yield f"calls[{index}].data", value
            case _:
                pass


def _unfit_values(calls: Sequence[Call]) -> Iterator[Json]:
    for field, value in _values(calls):
        try:
            check_json(value, at=field)
        except NotSerializable as error:
            yield {"field": field, "message": str(error)}


def _check_size(field: str, value: Json) -> None:
    size = len(compact_json(value).encode())
    if size > MAX_VALUE_BYTES:
        raise PayloadTooLarge(
            f"{field} has {size} bytes of JSON; the limit is {MAX_VALUE_BYTES}. "
            "Keep large data in a store of your own and pass where it is",
            field=field,
            size=size,
            limit=MAX_VALUE_BYTES,
        )


def check_distinct(outcomes: Sequence[Outcome | None]) -> None:
    """Raises InvalidRequest where a reference turns out to name a run that an earlier call is about: a transaction writes it once."""
    written: set[RunId] = set()
    for index, outcome in enumerate(outcomes):
        if outcome is None or not outcome.changes:
            continue
        if outcome.run_id in written:
            raise InvalidRequest("these calls cannot be carried out together", errors=[_double(index)])
        written.add(outcome.run_id)
