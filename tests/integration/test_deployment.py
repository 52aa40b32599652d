"""The migrate function: what it does to the database, and what it tells CloudFormation."""

import json
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import boto3
import pymysql
import pytest
from moto import mock_aws

from functions import migrate as function
from infra import deployment, migrate
from infra.local import mysql
from infra.migrate import MigrationRefused
from lockstep.db import connection
from tests.support.database import forget_settings
from tests.support.lambda_context import Context

READ_ONE = "SELECT COUNT(*) AS n FROM ims_sku_stock"
ANY_TABLE = "CREATE TABLE made_by_a_function (id INT)"


class CloudFormation(HTTPServer):
    """Keeps what was answered to it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers = []

    def request(self, kind):
        return {
            "RequestType": kind,
            "ResponseURL": f"http://127.0.0.1:{self.server_port}/signed",
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "Migrated",
            "ResourceProperties": {"Layers": ["layer:1"], "Settings": ["1800"]},
        }


class Answer(BaseHTTPRequestHandler):
    def do_PUT(self):
        assert isinstance(self.server, CloudFormation)
        # A signed URL is refused with any other content type than the one it was signed for.
        assert self.headers["Content-Type"] == ""
        size = int(self.headers["Content-Length"])
        self.server.answers.append(json.loads(self.rfile.read(size)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def cloudformation():
    server = CloudFormation()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def applied(database):
    """The schema was loaded whole; the records of the files that make it are not part of that."""
    database.execute(migrate.CREATE_RECORDS)
    for file in migrate._read(migrate.MIGRATIONS):
        database.execute(migrate.BEGIN_RECORD, (file.name, file.checksum))
        database.execute(migrate.FINISH_RECORD, (file.name,))
    yield database
    database.execute("DROP TABLE schema_migration")


def test_called_by_hand_it_answers_what_it_applied(applied):
    assert function.handler({}, Context()) == {"applied": []}


def test_cloudformation_is_told_of_success(applied, cloudformation):
    function.handler(cloudformation.request("Create"), Context())
    [answer] = cloudformation.answers
    assert answer == {
        "Status": "SUCCESS",
        "Reason": "",
        "Data": {"applied": "", "Release": deployment.release(cloudformation.request("Create"))},
        "PhysicalResourceId": "migrations",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Migrated",
    }


def test_a_release_is_another_one_when_any_setting_or_layer_is(cloudformation):
    request = cloudformation.request("Update")
    released = deployment.release(request)
    assert released == deployment.release(cloudformation.request("Create"))
    for changed in ({"Layers": ["layer:2"]}, {"Settings": ["1801"]}):
        properties = {**request["ResourceProperties"], **changed}
        assert deployment.release({**request, "ResourceProperties": properties}) != released


def test_cloudformation_is_told_what_failed(applied, cloudformation):
    [first, *_] = migrate._read(migrate.MIGRATIONS)
    applied.execute("UPDATE schema_migration SET checksum = 'x' WHERE name = %s", (first.name,))
    with pytest.raises(MigrationRefused):
        function.handler(cloudformation.request("Update"), Context())
    [answer] = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == f"MigrationRefused: {first.name} changed after it was applied"


def test_deleting_the_stack_touches_nothing(cloudformation):
    def never():
        raise AssertionError

    deployment.answered(cloudformation.request("Delete"), never)
    assert [answer["Status"] for answer in cloudformation.answers] == ["SUCCESS"]


def test_rolled_back_it_accepts_a_database_that_is_ahead(applied):
    applied.execute(migrate.BEGIN_RECORD, ("9999-pre-next-release.sql", "x"))
    assert function.handler({}, Context()) == {"applied": []}
    with (
        mysql.connect(applied.server, applied.name) as session,
        pytest.raises(MigrationRefused, match="its file is gone"),
    ):
        migrate.apply(session)


@pytest.fixture
def secrets(database, monkeypatch):
    """An owner's secret and one for an account that is not there yet."""
    account = f"app_{database.name}"[-32:]
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        client = boto3.client("secretsmanager")
        for name, variable, login in (
            (
                "owner",
                "DATABASE_OWNER_SECRET_ARN",
                (database.server.user, database.server.password),
            ),
            ("account", "DATABASE_SECRET_ARN", (account, 'it\'s "new" %s')),
        ):
            text = json.dumps(dict(zip(("username", "password"), login, strict=True)))
            monkeypatch.setenv(variable, client.create_secret(Name=name, SecretString=text)["ARN"])
        forget_settings()
        yield account
    database.execute("DROP USER IF EXISTS %s@'%%'", (account,))


def test_the_functions_account_is_let_in_and_may_not_change_a_table(applied, secrets):
    for _ in range(2):
        assert function.handler({}, Context()) == {"applied": []}
    session = connection.current()
    assert session.one(READ_ONE) == {"n": 0}
    with pytest.raises(pymysql.MySQLError, match="CREATE command denied"):
        session.execute(ANY_TABLE)


def test_a_password_that_was_changed_in_the_secret_is_taken_over(applied, secrets):
    function.handler({}, Context())
    changed = json.dumps({"username": secrets, "password": "changed"})
    boto3.client("secretsmanager").put_secret_value(SecretId="account", SecretString=changed)
    function.handler({}, Context())
    assert connection.current().one(READ_ONE) == {"n": 0}


def test_an_underscore_in_a_databases_name_is_no_wildcard(applied, secrets):
    other = applied.name.replace("_", "x")
    applied.execute(f"CREATE DATABASE {other}")
    try:
        function.handler({}, Context())
        with (
            closing(connection.current()) as session,
            pytest.raises(pymysql.MySQLError, match="denied"),
        ):
            session.execute(f"USE {other}")
    finally:
        connection.discard()
        applied.execute(f"DROP DATABASE {other}")


def test_called_with_a_catalogue_it_loads_it(database):
    text = "sku_id,title,price,stock,hot,on_sale\n1001,Lamp,9.90,7,false,true\n"
    event = {"catalogue": text, "actor": "operator:alice"}
    report = function.handler(event, Context())
    assert (report["loaded"], report["errors"]) == (1, ())
    assert database.stock(1001) == (7, 0)
    assert database.value("SELECT actor FROM ims_stock_entry") == "operator:alice"
    assert function.handler(event, Context())["repeated"]


def test_a_bad_catalogue_is_answered_by_line_and_changes_nothing(database):
    text = "sku_id,title,price,stock,hot,on_sale\n1001,Lamp,1e1,7,false,true\n"
    report = function.handler({"catalogue": text, "actor": "operator:alice"}, Context())
    assert [error["line"] for error in report["errors"]] == [2]
    assert database.count("ims_sku_stock") == 0
