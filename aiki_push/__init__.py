"""aiki_push: durable workflows on AWS serverless, in plain Python.

Names are loaded when they are first used, so importing the package costs a Lambda nothing that it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiki_push.apps.connect import Client
    from aiki_push.apps.endpoint.endpoint import endpoint
    from aiki_push.domain.durations import Duration
    from aiki_push.domain.retry import exponential, fixed, jittered, never
    from aiki_push.sdk.blocking import run_blocking
    from aiki_push.sdk.child import ChildHandle
    from aiki_push.sdk.event import Event, Referenced, Sent, event
    from aiki_push.sdk.peer import Peer
    from aiki_push.sdk.results import Cancelled, Completed, Failed, Finished, Received, Slept, TimedOut
    from aiki_push.sdk.run import Run, RunInfo
    from aiki_push.sdk.run_handle import Handle
    from aiki_push.sdk.task import Task, TaskInfo, task, task_info
    from aiki_push.sdk.workflow import Workflow, workflow
    from aiki_push.sdk.workflow_version import AnyWorkflowVersion, SingleStart, WorkflowVersion

__all__ = [
    "AnyWorkflowVersion",
    "Cancelled",
    "ChildHandle",
    "Client",
    "Completed",
    "Duration",
    "Event",
    "Failed",
    "Finished",
    "Handle",
    "Peer",
    "Received",
    "Referenced",
    "Run",
    "RunInfo",
    "Sent",
    "SingleStart",
    "Slept",
    "Task",
    "TaskInfo",
    "TimedOut",
    "Workflow",
    "WorkflowVersion",
    "endpoint",
    "event",
    "exponential",
    "fixed",
    "jittered",
    "never",
    "run_blocking",
    "task",
    "task_info",
    "workflow",
]

_HOMES = {
    "aiki_push.apps.connect": ("Client",),
    "aiki_push.apps.endpoint.endpoint": ("endpoint",),
    "aiki_push.domain.durations": ("Duration",),
    "aiki_push.domain.retry": ("exponential", "fixed", "jittered", "never"),
    "aiki_push.sdk.blocking": ("run_blocking",),
    "aiki_push.sdk.child": ("ChildHandle",),
    "aiki_push.sdk.event": ("Event", "Referenced", "Sent", "event"),
    "aiki_push.sdk.peer": ("Peer",),
    "aiki_push.sdk.results": ("Cancelled", "Completed", "Failed", "Finished", "Received", "Slept", "TimedOut"),
    "aiki_push.sdk.run": ("Run", "RunInfo"),
    "aiki_push.sdk.run_handle": ("Handle",),
    "aiki_push.sdk.task": ("Task", "TaskInfo", "task", "task_info"),
    "aiki_push.sdk.workflow": ("Workflow", "workflow"),
    "aiki_push.sdk.workflow_version": ("AnyWorkflowVersion", "SingleStart", "WorkflowVersion"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
