"""Where values go: small ones stay in the log, larger ones go to the payload store before the record that names them."""

from collections.abc import Sequence

from aiki_push.domain.canonical_json import compact_json, parse_json
from aiki_push.domain.errors import PayloadTooLarge
from aiki_push.domain.log_records import KnownRecord, TaskCompleted, TaskStarted
from aiki_push.domain.values import MAX_INLINE_BYTES, MAX_VALUE_BYTES, Inline, Json, PayloadReference, RunId, StoredValue
from aiki_push.ports.payloads import PayloadStore


class StoredValues:
    """Values of one run."""

    def __init__(self, payloads: PayloadStore, namespace: str, run_id: RunId) -> None:
        self._payloads = payloads
        self._namespace = namespace
        self._run_id = run_id

    def store(self, value: Json, *, field: str) -> StoredValue:
        """`value` as records hold it. Raises PayloadTooLarge, naming `field`, above MAX_VALUE_BYTES."""
        text = compact_json(value)
        # Four bytes is the most that UTF-8 takes for a character, so short text needs no encoding to be measured.
        if len(text) * 4 <= MAX_INLINE_BYTES or len(encoded := text.encode()) <= MAX_INLINE_BYTES:
            return Inline(value=value)
        if len(encoded) > MAX_VALUE_BYTES:
            raise PayloadTooLarge(
                f"{field} of run {self._run_id} has {len(encoded)} bytes of JSON; the limit is {MAX_VALUE_BYTES}. "
                "Keep large data in a store of your own and pass where it is",
                field=field,
                run_id=self._run_id,
                size=len(encoded),
                limit=MAX_VALUE_BYTES,
            )
        return self._payloads.put(self._namespace, self._run_id, encoded)

    def load(self, value: StoredValue) -> Json:
        """The value itself, wherever it is."""
        if isinstance(value, Inline):
            return value.value
        return parse_json(self._payloads.get(self._namespace, value.run_id, value.sha256))

    def inline(self, value: StoredValue | None) -> StoredValue | None:
        """`value` with its content in place of a reference."""
        return Inline(value=self.load(value)) if isinstance(value, PayloadReference) else value

    def store_records(self, records: Sequence[KnownRecord]) -> tuple[KnownRecord, ...]:
        """`records` with large inputs and outputs moved to the payload store."""
        return tuple(self._store_record(record, f"records[{index}]") for index, record in enumerate(records))

    def _store_record(self, record: KnownRecord, field: str) -> KnownRecord:
        match record:
            case TaskStarted(input=Inline(value=value)):
                after = self.store(value, field=f"{field}.input")
                return record if isinstance(after, Inline) else record.model_copy(update={"input": after})
            case TaskCompleted(output=Inline(value=value)):
                after = self.store(value, field=f"{field}.output")
                return record if isinstance(after, Inline) else record.model_copy(update={"output": after})
            case _:
                return record
