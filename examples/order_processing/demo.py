"""The main job, shown and checked: orders are processed while one endpoint is killed and another one frozen.

Run it with `make demo`. It starts a server and endpoints of its own on free ports, and ends them. The exit code is 0 only if every order
completed and every completed task had its effect exactly once, apart from executions that were cut off, which it names.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from aiki_push import Client, Completed, Handle
from aiki_push.apps.cli.timeline import timeline, timeline_table
from aiki_push.domain.log_records import AnyRecord, Transition
from aiki_push.errors import AikiError
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from examples.order_processing.audit import Audit, audit
from examples.order_processing.demo_processes import Process, Processes, find_in_log, free_port, is_listening, until
from examples.order_processing.ledger import Execution, Ledger
from examples.order_processing.orders import ORDERS_FILE, Outcome, read_orders
from examples.order_processing.place_orders import place_orders, summary
from examples.order_processing.workflow import order_v1

IDLE_TIMEOUT_MS = 3_000
REFRESH_MS = 1_000
WORK_MS = 150
ALL_DONE_TIMEOUT_S = 90
INTERRUPTED = 130

SERVER_SETTINGS = {
    "AIKI_DAEMONS__RECOVER_OVERDUE_OUTBOX_ENTRIES__CLAIM_IDLE_TIMEOUT_MS": str(IDLE_TIMEOUT_MS),
    "AIKI_LOG_LEVEL": "WARNING",
}


class Demo:
    """One run of the demo, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.console = Console(width=None if sys.stdout.isatty() else 130)
        self.folder = folder
        self.processes = Processes(folder)
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.began_s = time.monotonic()

    def say(self, text: str) -> None:
        """One line of the story."""
        self.console.print(f"[dim]{time.monotonic() - self.began_s:6.1f} s[/dim]  {text}", soft_wrap=True)

    def start_server(self) -> tuple[str, str]:
        """A development server; its URL and its public key."""
        home = str(self.folder / "server")
        server = self.processes.start(
            "server", ["-m", "aiki_push.apps.cli", "dev", "--port", "0", "--home", home], SERVER_SETTINGS
        )
        return find_in_log(server, r"http://127\.0\.0\.1:\d+"), find_in_log(server, r"whpk_\S+")

    async def start_endpoint(self, name: str, url: str, public_key: str, client: Client) -> Process:
        """An endpoint in a process of its own, registered."""
        port = free_port()
        environment = {
            "ORDERS_SERVER_URL": url,
            "ORDERS_PUBLIC_KEYS": public_key,
            "ORDERS_NAME": name,
            "ORDERS_PORT": str(port),
            "ORDERS_FOLDER": str(self.folder),
            "ORDERS_WORK_MS": str(WORK_MS),
            "ORDERS_CLAIM_REFRESH_INTERVAL_MS": str(REFRESH_MS),
        }
        process = self.processes.start(name, ["-m", "examples.order_processing.endpoint"], environment)
        until(lambda: is_listening(port), f"endpoint {name} listening")
        workflows = (WorkflowVersionField(name=order_v1.name, version=order_v1.version),)
        await client.api.call(PutEndpoint(endpoint_id=name, url=f"http://127.0.0.1:{port}/", workflows=workflows))
        return process

    def in_the_middle_of_a_task(self, process: Process) -> Execution:
        """An execution of this process that has begun and not ended."""
        found: list[Execution] = []

        def is_working() -> bool:
            found[:] = [one for one in self.ledger.executions() if one.pid == process.pid and one.end is None]
            return bool(found)

        until(is_working, f"{process.name} in the middle of a task")
        return found[-1]


async def main(demo: Demo) -> int:
    """Tell the story; the exit code."""
    demo.say(
        f"claims go stale after {IDLE_TIMEOUT_MS} ms of silence and are refreshed every {REFRESH_MS} ms (90 s and 30 s by default)"
    )
    url, public_key = demo.start_server()
    demo.say(f"the server is up: {url}, on a simulated DynamoDB")
    client = Client(url=url)
    try:
        return await play(demo, url, public_key, client)
    finally:
        await client.close()


async def play(demo: Demo, url: str, public_key: str, client: Client) -> int:
    """Start the orders, do harm, wait for the end, and check."""
    first = await demo.start_endpoint("A", url, public_key, client)
    second = await demo.start_endpoint("B", url, public_key, client)
    demo.say("endpoints A and B are registered; pushes to them are signed with Ed25519")
    orders = read_orders(ORDERS_FILE)
    handles = await place_orders(client, orders)
    demo.say(f"{len(handles)} orders are started")

    killed = demo.in_the_middle_of_a_task(first)
    first.kill()
    demo.say(f"[red]A is killed (SIGKILL)[/red] in the middle of {killed.task} of {killed.order_id}")
    third = await demo.start_endpoint("C", url, public_key, client)
    demo.say("endpoint C takes its place")

    frozen = demo.in_the_middle_of_a_task(second)
    second.freeze()
    demo.say(f"[red]B is frozen (SIGSTOP)[/red] in the middle of {frozen.task} of {frozen.order_id}; it does not notice")
    finished = await asyncio.wait_for(asyncio.gather(*(handle.wait() for handle in handles)), ALL_DONE_TIMEOUT_S)
    demo.say("every run has ended; what A and B held went stale, was released, and went on from its last checkpoint elsewhere")

    second.thaw()
    demo.say("B is thawed (SIGCONT) and goes on as if nothing had happened …")
    refusal = find_in_log(second, r"run \S+ is no longer ours: .*|the claim on run \S+ is lost: .*")
    demo.say(f"[green]… and is refused:[/green] {refusal}")
    await asyncio.sleep(2 * WORK_MS / 1_000)  # a thread cannot be stopped: what B was in the middle of may still have its effect

    histories: dict[str, list[AnyRecord]] = {handle.id: [entry.record async for entry in handle.history()] for handle in handles}
    report = audit(histories, demo.ledger.executions())
    show_timeline(demo, frozen, histories)
    show_orders(demo, [one.state for one in finished], handles, histories)
    return verdict(demo, report, [one.state for one in finished], healthy=[second, third])


def show_timeline(demo: Demo, frozen: Execution, histories: dict[str, list[AnyRecord]]) -> None:
    """The whole life of the run that B was frozen in."""
    title = f"\nThe timeline of {frozen.order_id} (run {frozen.run_id})"
    demo.console.print(timeline_table(title, timeline(histories[frozen.run_id])))


def show_orders(
    demo: Demo, states: Sequence[object], handles: Sequence[Handle[Outcome]], histories: dict[str, list[AnyRecord]]
) -> None:
    """One line for each order."""
    table = Table("order and outcome", "revision", "executors", title="\nAll orders", title_justify="left")
    for order, state, handle in zip(read_orders(ORDERS_FILE), states, handles, strict=True):
        outcome = summary(order, state.output) if isinstance(state, Completed) else f"{order.order_id}: {state}"
        executors = [
            record.executor
            for record in histories[handle.id]
            if isinstance(record, Transition) and record.state.status == "running" and record.executor
        ]
        table.add_row(outcome, str(handle.run.revision), " → ".join(executors))
    demo.console.print(table)


def verdict(demo: Demo, report: Audit, states: Sequence[object], healthy: Sequence[Process]) -> int:
    """Say what was checked and found; the exit code."""
    faults = list(report.faults)
    faults += [f"an order did not complete: {state}" for state in states if not isinstance(state, Completed)]
    faults += [f"endpoint {process.name} has ended" for process in healthy if not process.is_running]
    demo.console.print(f"\n{len(states)} orders; {report.effects} completed tasks have their effect in the ledger exactly once.")
    for one in report.interrupted:
        end = "its effect took place all the same" if one.end == "finished" else "whether its effect took place is unknown"
        demo.console.print(f"interrupted: {one.task} of {one.order_id}, started again elsewhere; {end}")
    for fault in faults:
        demo.console.print(f"[red]WRONG: {fault}[/red]")
    demo.console.print(
        "[red]The demo failed.[/red]" if faults else "[green]Nothing lost, nothing done twice, no zombie that acts.[/green]"
    )
    return 1 if faults else 0


def run() -> int:
    """Run the demo in a folder of its own; the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that every process ends with this one
    with TemporaryDirectory(prefix="aiki-push-demo-", ignore_cleanup_errors=True) as folder:
        demo = Demo(Path(folder))
        try:
            return asyncio.run(main(demo))
        except (AikiError, TimeoutError) as error:
            demo.console.print(f"[red]The demo failed:[/red] {str(error) or 'the orders did not end in time'}")
            return 1
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            demo.processes.end()


if __name__ == "__main__":
    sys.exit(run())
