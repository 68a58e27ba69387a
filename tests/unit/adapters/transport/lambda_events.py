"""Events as AWS sends them."""

from typing import Any


def http_api_event(method: str, path: str, stage: str = "$default", **more: object) -> dict[str, Any]:
    """As API Gateway sends it to an integration of payload format 2.0, and a Function URL to its function."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "curl/8"}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"Accept": "*/*", "Host": "id.execute-api.eu-central-1.amazonaws.com"},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "id",
            "domainName": "id.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "id",
            "http": http,
            "requestId": "request-1",
            "routeKey": "$default",
            "stage": stage,
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000,
        },
        "isBase64Encoded": False,
        **more,
    }
