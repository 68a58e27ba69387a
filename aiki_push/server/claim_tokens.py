"""The proof that an executor holds a claim, and the only position at which it may write next."""

from dataclasses import dataclass

from aiki_push.domain.claims import Owner
from aiki_push.domain.errors import InvalidToken
from aiki_push.domain.values import Json
from aiki_push.server.seals import Seals

_PURPOSE = "claim"


@dataclass(frozen=True, slots=True)
class ClaimToken:
    """What a token says. `is_first`: nothing was appended under the claim yet, so the run's tail goes before the next append."""

    owner: Owner
    position: int
    is_first: bool

    def after_append(self) -> "ClaimToken":
        """The token for the position after this one."""
        return ClaimToken(self.owner, self.position + 1, is_first=False)


def mint(seals: Seals, namespace: str, run_id: str, token: ClaimToken) -> str:
    """`token` as text, good for this run only."""
    payload: list[Json] = [1, token.owner.claim_id, token.owner.revision, token.position, token.is_first]
    return seals.seal(_PURPOSE, f"{namespace}#{run_id}", payload)


def read(seals: Seals, namespace: str, run_id: str, text: str) -> ClaimToken:
    """What `text` says. Raises InvalidToken where this server did not mint it for this run."""
    match seals.open(_PURPOSE, f"{namespace}#{run_id}", text):
        case [1, str(claim_id), int(revision), int(position), bool(is_first)]:
            return ClaimToken(Owner(claim_id, revision), position, is_first)
        case _:
            raise InvalidToken(
                f"the claim token was not issued for run {run_id}; claim the run and use the token of the latest answer",
                run_id=run_id,
            )
