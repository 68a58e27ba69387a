"""Events as Lambda gets them: the fields of the developer guides' examples, around a push of ours."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

Event = dict[str, Any]


def _carried(body: bytes, is_base64: bool) -> Event:
    return {"body": b64encode(body).decode() if is_base64 else body.decode(), "isBase64Encoded": is_base64}


def http_api(headers: Mapping[str, str], body: bytes, *, is_base64: bool = False, stage: str = "$default") -> Event:
    """API Gateway HTTP API, payload format 2.0. A named stage is the first part of the path."""
    path = "/push" if stage == "$default" else f"/{stage}/push"
    return {
        "version": "2.0",
        "routeKey": "POST /push",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {**headers, "x-forwarded-proto": "https"},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api-id",
            "domainName": "api-id.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "api-id",
            "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "aiki-push"},
            "requestId": "id",
            "routeKey": "POST /push",
            "stage": stage,
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000,
        },
        **_carried(body, is_base64),
    }


def function_url(headers: Mapping[str, str], body: bytes, *, is_base64: bool = False) -> Event:
    """Lambda Function URL: payload format 2.0 without a route of its own."""
    event = http_api(headers, body, is_base64=is_base64)
    context = {**event["requestContext"], "accountId": "anonymous", "authentication": None, "authorizer": None}
    context["domainName"] = "url-id.lambda-url.eu-central-1.on.aws"
    return {
        **event,
        "routeKey": "$default",
        "rawPath": "/",
        "requestContext": context,
        "cookies": ["a=b"],
        "pathParameters": None,
    }


def rest_api(headers: Mapping[str, str], body: bytes, *, is_base64: bool = False, stage: str = "prod") -> Event:
    """API Gateway REST API, payload format 1.0; a base path of a custom domain shows in the path."""
    return {
        "resource": "/push",
        "path": "/base/push",
        "httpMethod": "POST",
        "headers": {**headers, "X-Forwarded-Proto": "https"},
        "multiValueHeaders": {name: [value] for name, value in {**headers, "X-Forwarded-Proto": "https"}.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "resourceId": "abc",
            "resourcePath": "/push",
            "httpMethod": "POST",
            "path": f"/{stage}/base/push",
            "protocol": "HTTP/1.1",
            "stage": stage,
            "identity": {"sourceIp": "192.0.2.1"},
            "apiId": "api-id",
        },
        **_carried(body, is_base64),
    }


def http_api_in_format_1(headers: Mapping[str, str], body: bytes, *, is_base64: bool = False) -> Event:
    """API Gateway HTTP API, payload format 1.0."""
    return {"version": "1.0", **rest_api(headers, body, is_base64=is_base64, stage="$default")}
