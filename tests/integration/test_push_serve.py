"""An endpoint in a process of its own, as `serve` runs it."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aiki_push.ports.publisher import Declined, Published
from tests.architecture.source_files import ROOT
from tests.integration.pushing import PUBLIC, only, publisher
from tests.unit.adapters.delivery.delivery_examples import endpoint_at, ready_run

SCRIPT = """
import sys
from aiki_push.apps.endpoint.endpoint import endpoint
from aiki_push.apps.endpoint.serve import serve
from tests.integration.test_push_rotation import order_v1
from tests.local_system import LocalSystem

system = LocalSystem()
serve(endpoint(workflows=[order_v1], client=system.client(), public_keys=[sys.argv[2]]), port=int(sys.argv[1]))
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def served(port: int) -> Iterator[subprocess.Popen[str]]:
    """The process, once it takes connections."""
    command = [sys.executable, "-c", SCRIPT, str(port), PUBLIC]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_served_endpoint_answers_pushes_at_any_path_and_ends_quietly_when_told_to() -> None:
    port = free_port()
    with served(port) as process:
        with publisher(endpoint_at(f"http://127.0.0.1:{port}/any/path")) as pushing:
            # Signed, known, and of a run that this server has never heard of.
            unknown_run = only(pushing.publish([ready_run()]))
        process.send_signal(signal.SIGTERM)
        shown, errors = process.communicate(timeout=30)

    assert unknown_run not in (Published(), Declined())
    assert (process.returncode, shown) == (-signal.SIGTERM, "")
    assert errors.startswith("run 01ARZ3NDEKTSV4RRFFQ69G5FAV was not executed: ")
    assert len(errors.splitlines()) == 1


def test_a_port_that_is_taken_ends_the_process_with_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "-c", SCRIPT, str(port), PUBLIC]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    assert ended.returncode != 0
    assert str(port) in ended.stderr
