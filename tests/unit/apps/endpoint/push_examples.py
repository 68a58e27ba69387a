"""A signed push, an endpoint's parts, and an Execute that does what it is told."""

from dataclasses import dataclass, field

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey
from aiki_push.adapters.signing.standard_webhooks import StandardSigner, StandardVerifier
from aiki_push.apps.endpoint.admission import Admission
from aiki_push.apps.endpoint.messages import PushRequest
from aiki_push.apps.endpoint.push_handling import PushHandler
from aiki_push.domain.push_message import PushData, encode_push
from aiki_push.domain.values import RunId
from aiki_push.ports.signing import signed_headers
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.run import Run
from aiki_push.sdk.workflow import workflow
from aiki_push.testing import FAKE_NOW, FakeClock

SECRET = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PUBLIC = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
OTHER_SECRET = "whsk_HhwdHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
AUDIENCE = "orders-eu"
TOLERANCE_MS = 30_000
RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
DATA = PushData(run_id=RUN_ID, workflow="order", version="1.0.0", pool=None, revision=7, namespace="shop", audience=AUDIENCE)
BODY = encode_push(DATA, FAKE_NOW)

orders = workflow("order")


@orders.v("1.0.0")
async def order_v1(run: Run) -> str:
    return run.id


@dataclass(frozen=True)
class Ended:
    outcome: str


@dataclass
class Executions:
    """An Execute that notes what it is asked for and ends as told, by an outcome or an error."""

    end: str | BaseException = "completed"
    asked: list[tuple[str, int | None]] = field(default_factory=list)
    left_ms: float | None = None

    async def execute(self, run_id: RunId, *, revision: int | None, left_ms: float) -> Ended:
        self.left_ms = left_ms
        self.asked.append((run_id, revision))
        if isinstance(self.end, BaseException):
            raise self.end
        return Ended(self.end)


def signed(body: bytes = BODY, *, secret: str = SECRET, at_s: int = FAKE_NOW // 1_000) -> dict[str, str]:
    return signed_headers(StandardSigner([Ed25519SecretKey(secret)]), "msg_1", at_s, body)


def push(body: bytes = BODY, *, method: str = "POST", headers: dict[str, str] | None = None) -> PushRequest:
    """A push that passes every check, but for what is said."""
    return PushRequest(method, signed(body) if headers is None else headers, body)


def handler(
    executions: Executions, *, is_signed: bool = True, audience: str | None = AUDIENCE, deadline_margin_ms: int = 0
) -> PushHandler:
    verifier = StandardVerifier([PUBLIC], TOLERANCE_MS) if is_signed else None
    admission = Admission(verifier, audience, Registry([order_v1]), FakeClock())
    return PushHandler(admission, executions.execute, deadline_margin_ms=deadline_margin_ms)
