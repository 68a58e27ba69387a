"""`template.yaml` deploys what the code is."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aiki_push.adapters.storage.table import INDEX_ATTRIBUTES
from aiki_push.apps.environment import settings_of
from aiki_push.apps.settings import ServerSettings, load_server_settings
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS
from infra.table import TABLE
from tests.architecture.source_files import ROOT
from tests.infra.template import FUNCTIONS, RESOURCES, TEMPLATE, VARIABLES, as_list, only, permissions, statements

RESOLVED = {
    "Table": "stack-Table-1A2B3C",
    "HintQueue": "https://sqs.eu-central-1.amazonaws.com/123456789012/stack-HintQueue-1A2B3C",
    "ClaimTokenSecret": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:ClaimTokenSecret-1A2B3C-AbCdEf",
    "SigningKeysSecretArn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:aiki-keys-AbCdEf",
}
"""What CloudFormation makes of each `Ref` to a resource, and what someone says for the parameter that has no default."""


def environment_of_functions() -> dict[str, str]:
    defaults = {name: one["Default"] for name, one in TEMPLATE["Parameters"].items() if "Default" in one}
    resolved = RESOLVED | defaults
    return {name: resolved[value["Ref"]] if isinstance(value, Mapping) else value for name, value in VARIABLES.items()}


def test_cloudformation_would_accept_it() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([linter, "template.yaml"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_the_table_is_the_one_that_the_store_is_written_for() -> None:
    assert only("AWS::DynamoDB::Table") == TABLE


def test_the_table_outlives_the_stack() -> None:
    table = RESOURCES["Table"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_environment_is_one_that_a_server_accepts() -> None:
    settings = load_server_settings(environment_of_functions())
    assert settings == ServerSettings(
        table_name=RESOLVED["Table"],
        hint_queue_url=RESOLVED["HintQueue"],
        claim_token_secret_arn=RESOLVED["ClaimTokenSecret"],
        signing_keys_secret_arn=RESOLVED["SigningKeysSecretArn"],
        due_shards=8,
        list_shards=8,
        max_wait_ms=1_000,
    )


def test_every_variable_is_a_setting_and_no_function_has_others() -> None:
    assert VARIABLES.keys() - settings_of(ServerSettings).keys() == set()
    assert [name for name, function in FUNCTIONS.items() if "Environment" in function] == []


def test_every_required_setting_is_there() -> None:
    required = {setting.name for setting in settings_of(ServerSettings).values() if setting.is_required}
    assert required - VARIABLES.keys() == set()


def test_no_secret_stands_in_the_environment() -> None:
    assert "AIKI_CLAIM_TOKEN_SECRET" not in VARIABLES
    assert "resolve:" not in json.dumps(VARIABLES)


def test_there_is_a_function_for_each_handler() -> None:
    files = {f"handlers.{path.stem}.handler" for path in (ROOT / "handlers").glob("*.py")}
    assert {function["Handler"] for function in FUNCTIONS.values()} == files


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_handler_is_something_that_lambda_can_call(name: str) -> None:
    module, _, attribute = FUNCTIONS[name]["Handler"].rpartition(".")
    program = f"import {module}\nprint(callable({module}.{attribute}))"
    environment = {"PATH": os.environ["PATH"], **environment_of_functions()}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_wrong_setting_stops_a_function_with_one_line() -> None:
    environment = {"PATH": os.environ["PATH"], **environment_of_functions(), "AIKI_DUE_SHARDS": "many"}
    command = [sys.executable, "-c", "import handlers.api"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    expected = "aiki-push: AIKI_DUE_SHARDS is 'many' and should be a whole number from 1 to 256\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", expected, 2)


def test_functions_run_on_the_tested_python_and_have_bounds() -> None:
    shared = TEMPLATE["Globals"]["Function"]
    assert (shared["Runtime"], shared["Architectures"]) == ("python3.13", ["arm64"])
    assert {name: (function["MemorySize"], function["Timeout"]) for name, function in FUNCTIONS.items()} == {
        "ApiFunction": (1_024, 29),
        "DeliverFunction": (512, 30),
        "RecoverFunction": (512, 60),
    }


def test_hints_are_delivered_by_message_and_end_in_the_dead_letter_queue() -> None:
    queue = RESOURCES["HintQueue"]["Properties"]
    event = FUNCTIONS["DeliverFunction"]["Events"]["Hints"]

    assert event == {
        "Type": "SQS",
        "Properties": {
            "Queue": {"Fn::GetAtt": ["HintQueue", "Arn"]},
            "BatchSize": 10,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
    }
    # AWS Lambda, developer guide: six times the function's timeout, so that a message is not handled twice at a time.
    assert queue["VisibilityTimeout"] >= 6 * FUNCTIONS["DeliverFunction"]["Timeout"]
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["HintDeadLetterQueue", "Arn"]},
        "maxReceiveCount": 3,
    }
    worked_on_s = queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"]
    assert queue["MessageRetentionPeriod"] > MAX_HINT_DELAY_MS / 1_000 + worked_on_s


def test_the_sweep_runs_every_minute_and_never_twice_for_one_event() -> None:
    function = FUNCTIONS["RecoverFunction"]
    assert function["Events"]["Sweep"]["Type"] == "Schedule"
    assert function["Events"]["Sweep"]["Properties"]["Schedule"] == "rate(1 minute)"
    assert function["EventInvokeConfig"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    assert function["Timeout"] <= 60


def test_no_policy_has_a_wildcard() -> None:
    found = [
        text for one in statements() for text in (*as_list(one["Action"]), *as_list(one["Resource"])) if "*" in json.dumps(text)
    ]
    assert found == []


def test_each_function_may_do_what_it_does_and_nothing_else() -> None:
    table, queue = '{"Fn::GetAtt": ["Table", "Arn"]}', '{"Fn::GetAtt": ["HintQueue", "Arn"]}'
    due, ready, by_workflow, by_state = (
        ("dynamodb:Query", f'{{"Fn::Sub": "${{Table.Arn}}/index/{index}"}}') for index in INDEX_ATTRIBUTES
    )
    shared = {
        ("dynamodb:GetItem", table),
        ("dynamodb:BatchGetItem", table),
        ("dynamodb:PutItem", table),
        ("dynamodb:DeleteItem", table),
        ("dynamodb:Query", table),
        ready,
        ("sqs:SendMessage", queue),
        ("secretsmanager:GetSecretValue", '{"Ref": "ClaimTokenSecret"}'),
        ("secretsmanager:GetSecretValue", '{"Ref": "SigningKeysSecretArn"}'),
    }
    assert {name: permissions(function) - shared for name, function in FUNCTIONS.items()} == {
        "ApiFunction": {by_workflow, by_state},
        "DeliverFunction": set(),
        "RecoverFunction": {due},
    }
    assert all(shared <= permissions(function) for function in FUNCTIONS.values())


def test_the_table_is_asked_for_nothing_that_no_function_may_do() -> None:
    text = (ROOT / "aiki_push/adapters/storage/dynamodb/table.py").read_text("utf-8")
    # A transaction needs the permissions of its parts, which are puts and deletes.
    operations = set(re.findall(r"self\._client\.(\w+)\(", text)) - {"transact_write_items"}
    actions = {f"dynamodb:{operation.title().replace('_', '')}" for operation in operations}
    allowed = {action for function in FUNCTIONS.values() for action, _ in permissions(function) if action.startswith("dynamodb:")}
    assert actions == allowed
    assert set(re.findall(r'"(Put|Delete|Update|ConditionCheck)":', text)) == {"Put", "Delete"}


def test_the_api_is_closed_but_for_what_needs_no_role() -> None:
    routes = [one["Properties"] for one in RESOURCES.values() if one["Type"] == "AWS::ApiGatewayV2::Route"]
    opened = {f"{operation.method} {operation.path}": "NONE" for operation in CATALOGUE if operation.role == "none"}
    assert {route["RouteKey"]: route["AuthorizationType"] for route in routes} == {
        "$default": {"Ref": "ApiAuthorizationType"},
        **opened,
    }
    assert TEMPLATE["Parameters"]["ApiAuthorizationType"]["Default"] == "AWS_IAM"


def test_the_api_sends_requests_in_the_format_that_the_handler_reads() -> None:
    integration = only("AWS::ApiGatewayV2::Integration")
    assert (integration["IntegrationType"], integration["PayloadFormatVersion"]) == ("AWS_PROXY", "2.0")
    assert integration["TimeoutInMillis"] >= FUNCTIONS["ApiFunction"]["Timeout"] * 1_000


def test_api_resources_are_native() -> None:
    # The emulator that end-to-end tests deploy to makes no routes of the short forms.
    assert [name for name, one in RESOURCES.items() if one["Type"] in ("AWS::Serverless::HttpApi", "AWS::Serverless::Api")] == []
