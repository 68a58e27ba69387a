"""API Gateway calls it with every request."""

from aiki_push.apps.build import api_handler

handler = api_handler()
