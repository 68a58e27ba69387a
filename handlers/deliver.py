"""SQS calls it with hints that runs are due."""

from aiki_push.apps.build import deliver_handler

handler = deliver_handler()
