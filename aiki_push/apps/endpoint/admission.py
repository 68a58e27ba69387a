"""The checks that a push must pass before anything is executed, in this order; the first that fails decides the answer."""

import logging

from aiki_push.apps.endpoint.messages import MAX_BODY_BYTES, PushAnswer, PushRequest, invalid_answer
from aiki_push.domain.errors import InvalidRequest, SignatureRejected
from aiki_push.domain.push_message import PushData, parse_push
from aiki_push.ports.clock import Clock
from aiki_push.ports.signing import Verifier
from aiki_push.sdk.registry import Registry

_METHOD_NOT_ALLOWED = PushAnswer(405, {"code": "method_not_allowed"}, {"allow": "POST"})
_TOO_LARGE = PushAnswer(413, {"code": "payload_too_large"})
_NOT_AUTHENTICATED = PushAnswer(401, {"code": "unauthenticated"})
_NOT_REGISTERED = PushAnswer(404, {"code": "version_not_registered"})

_log = logging.getLogger(__name__)


class Admission:
    """Lets pushes in that `verifier` vouches for, that are meant for `audience` and whose workflow version `registry` has.

    Without a verifier signatures are not checked; without an audience any is accepted.
    """

    def __init__(self, verifier: Verifier | None, audience: str | None, registry: Registry, clock: Clock) -> None:
        self._verifier = verifier
        self._audience = audience
        self._registry = registry
        self._clock = clock

    def admit(self, request: PushRequest) -> PushData | PushAnswer:
        """The run on offer, or the refusal. A 401 is explained in the log alone; what else is wrong is told to the sender."""
        if request.method != "POST":
            return _METHOD_NOT_ALLOWED
        if len(request.body) > MAX_BODY_BYTES:
            return _TOO_LARGE
        if not self._is_signed(request):
            return _NOT_AUTHENTICATED
        try:
            data = parse_push(request.body).data
        except InvalidRequest as error:
            return invalid_answer(error)
        if self._audience is not None and data.audience != self._audience:
            _log.warning("push refused: audience: it is meant for %r, and this endpoint is %r", data.audience, self._audience)
            return _NOT_AUTHENTICATED
        if self._registry.find(data.workflow, data.version) is None:
            return _NOT_REGISTERED
        return data

    def _is_signed(self, request: PushRequest) -> bool:
        if self._verifier is None:
            return True
        try:
            self._verifier.verify(request.headers, request.body, self._clock.now())
        except SignatureRejected as error:
            # Slow networks and clocks make genuine pushes expire; the server offers the run again.
            level = logging.INFO if error.check == "expired" else logging.WARNING
            _log.log(level, "push refused: %s: %s", error.check, error)
            return False
        return True
