"""EventBridge calls it every minute."""

from aiki_push.apps.build import recover_handler

handler = recover_handler()
