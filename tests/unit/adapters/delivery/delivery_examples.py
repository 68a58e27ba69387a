"""A run on offer and an endpoint that serves it."""

from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.publisher import ReadyRun

RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
READY_AT = TimestampMs(1_800_000_000_000)


def ready_run(
    revision: int = 4, pool: str | None = None, workflow: str = "order", namespace: str = "shop", offer: int = 2
) -> ReadyRun:
    return ReadyRun(
        namespace=namespace,
        run_id=RUN_ID,
        workflow=workflow,
        version="1.0.0",
        pool=pool,
        priority=5,
        revision=revision,
        ready_at=READY_AT,
        offer=offer,
    )


def endpoint_at(
    url: str,
    endpoint_id: str = "orders",
    *,
    pools: tuple[str, ...] = (),
    audience: str | None = None,
    secret: str | None = None,
    namespace: str = "shop",
) -> Endpoint:
    return Endpoint(
        namespace=namespace,
        id=endpoint_id,
        url=url,
        workflows=(WorkflowVersionName(name="order", version="1.0.0"),),
        pools=pools,
        audience=audience,
        secret=secret,
        created_at=READY_AT,
        updated_at=READY_AT,
    )
