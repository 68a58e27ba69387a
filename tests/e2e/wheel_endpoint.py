"""An endpoint for the Python of an environment that has the wheel and what it asks for, and nothing else.

It reads {"server_url", "public_keys", "events", "vector"} from its standard input, answers the events as a Lambda would, verifies
the vector, and prints {"answers", "verified"}.
"""

import json
import sys

import aiki_push
import aiki_push.errors
from aiki_push import Client, Run, endpoint, task, workflow
from aiki_push.adapters.signing.standard_webhooks import StandardVerifier


@task("double")
async def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@workflow("doubling").v("1.0.0")
async def doubling(run: Run, number: int) -> int:
    """Four times the number."""
    return await double.start(run, await double.start(run, number))


def main() -> None:
    """Answer the events, one after the other."""
    given = json.load(sys.stdin)
    for module in (aiki_push, aiki_push.errors):
        for name in module.__all__:
            getattr(module, name)
    answers = endpoint(
        workflows=[doubling], client=Client(url=given["server_url"]), public_keys=given["public_keys"], name="wheel"
    )
    vector = given["vector"]
    verified = StandardVerifier([vector["public_key"]], 1).verify(vector["headers"], vector["body"].encode(), vector["at_ms"])
    print(json.dumps({"answers": [answers.lambda_handler(event, None) for event in given["events"]], "verified": verified.at_s}))


if __name__ == "__main__":
    main()
