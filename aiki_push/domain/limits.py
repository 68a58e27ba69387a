"""The numbers that decisions depend on. Each is a setting of the server; the defaults are those of `docs/settings.md`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in milliseconds.

    claim_idle_timeout_ms: a claim not refreshed for so long is taken away.
    max_age_ms: a queued run that nobody claimed for so long is stalled.
    max_recoveries: so many recoveries in a row without progress of the log are a crash loop.
    offer_base_ms, offer_max_ms: the wait before the next offer is the time since the run became ready, within these bounds.
    declined_ms: the wait before a run that every endpoint declined is offered again.
    offer_lease_ms: how long an offer in progress keeps other deliverers away.
    max_log_slots: a run whose log would grow beyond this fails.
    """

    claim_idle_timeout_ms: int = 90_000
    max_age_ms: int = 86_400_000
    max_recoveries: int = 10
    offer_base_ms: int = 5_000
    offer_max_ms: int = 300_000
    declined_ms: int = 30_000
    offer_lease_ms: int = 10_000
    max_log_slots: int = 50_000
