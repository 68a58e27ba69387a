"""The endpoint as an AWS Lambda. Its handler is `examples.order_processing.aws_lambda.handler`; its settings are the endpoint's.

A Lambda can only write below /tmp, and what it writes there goes with it: set ORDERS_FOLDER to /tmp/orders, and in your own tasks
keep effects in services and tables.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from aiki_push.apps.endpoint.endpoint import Endpoint
from examples.order_processing.endpoint import order_endpoint


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Answers one push."""
    return _endpoint().lambda_handler(event, context)


@cache
def _endpoint() -> Endpoint:
    return order_endpoint()
