"""What a database or its driver refuses: one clear error, and nothing secret in it."""

import traceback
from subprocess import CalledProcessError

import pytest
from pyspark.errors import SparkRuntimeException
from support.declared.sources import NOW
from support.servers.databases import in_postgres
from support.servers.postgresserver import PASSWORD, USER

from snaploom.errors import SourceError
from snaploom.sources.databases.connection import Login
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark

SECRET = "n0t to be seen"
BY_VARIABLES = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_PASSWORD"}}


def refusal(source):
    """The error of a source, which has no secret in anything that can be printed of it."""
    with pytest.raises(SourceError) as caught:
        source.read(NOW)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert not [secret for secret in (SECRET, PASSWORD, USER) if secret in shown]
    return caught.value


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        pytest.param({"tableReference": "Nowhere"}, "SourceNotReadable", "tableReference",
                     id="no such table"),
        pytest.param({"tableReference": "nowhere.t"}, "SourceNotReadable", "tableReference",
                     id="no such schema"),
        pytest.param({"database": "nowhere"}, "SourceNotReadable", "database", id="no database"),
        pytest.param({"port": 1}, "SourceNotReadable", "host", id="nobody listens"),
        pytest.param({"host": "nowhere.invalid"}, "SourceNotReadable", "host", id="no such host"),
        pytest.param({"credentials": {"fromPlaintext": {"user": USER, "password": SECRET}}},
                     "CredentialsRefused", "credentials", id="wrong password"),
        pytest.param({"credentials": {"fromPlaintext": {"user": "reader", "password": SECRET}}},
                     "CredentialsRefused", "credentials", id="may not read"),
        pytest.param({"credentials": BY_VARIABLES}, "CredentialsRefused",
                     "credentials.fromEnvironment", id="no variables"),
        pytest.param({"driverClass": "org.example.Driver"}, "DriverMissing", "driverClass",
                     id="no driver"),
        pytest.param({"driverClass": "org.h2.Driver"}, "DriverMissing", "driverClass",
                     id="driver of another database"),
        pytest.param({"tablePredicates": ["nothing = 1"]}, "SourceSchemaInvalid",
                     "tablePredicates", id="no such column"),
        pytest.param({"url": f"jdbc:postgresql://{SECRET}", "host": None, "port": None,
                      "database": None}, "UrlNotAllowed", "url", id="whole URL"),
    ],
)  # fmt: skip
def test_each_has_a_reason_and_a_place(postgres, opened, changes, reason, field):
    postgres.run(
        f"""CREATE TABLE IF NOT EXISTS there (id int);
            DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD '{SECRET}'"""
    )
    error = refusal(opened(in_postgres(postgres, "there", **changes)))
    assert (error.reason, error.path) == (reason, f"spec.jdbc.{field}")


def test_table_that_vanishes_under_a_run_is_an_error(postgres, opened):
    postgres.run("CREATE TABLE vanishing AS SELECT 1 AS id")
    source = opened(in_postgres(postgres, "vanishing", isolationLevel="READ_COMMITTED"))
    source.listing()
    postgres.run("DROP TABLE vanishing")
    assert refusal(source).reason == "SourceNotReadable"


def test_table_cannot_vanish_while_its_moment_is_held(postgres, opened):
    postgres.run("CREATE TABLE held AS SELECT 1 AS id")
    source = opened(in_postgres(postgres, "held"))
    source.listing()
    change = "SET LOCAL lock_timeout = '50ms'; ALTER TABLE held ALTER id TYPE text"
    with pytest.raises(CalledProcessError):
        postgres.run(f"BEGIN; {change}; COMMIT")
    assert source.read(NOW).frame.schema.simpleString() == "struct<id:int>"


@pytest.mark.parametrize(
    ("data_type", "found"),
    [
        ({"date": {}}, "v: int, declared as date"),
        ({"array": {"elementType": {"integer": {}}}}, "v: int, declared as array<int>"),
    ],
)
def test_column_of_another_kind_than_declared_is_an_error(postgres, opened, data_type, found):
    postgres.run("CREATE TABLE IF NOT EXISTS changed (v int)")
    fields = [{"name": "v", "dataType": data_type}, {"name": "gone", "dataType": {"string": {}}}]
    error = refusal(opened(in_postgres(postgres, "changed", schemaFields=fields)))
    assert error.found == f"{found}; gone: no such column, declared as string"


def test_value_that_does_not_fit_its_declared_type_is_an_error(postgres, opened):
    postgres.run(
        """CREATE TABLE whole AS SELECT * FROM (VALUES (1.0), (2), (NULL)) t (v);
           CREATE TABLE broken AS SELECT * FROM (VALUES (1.5)) t (v)"""
    )

    def values(table, data_type):
        declared = [{"name": "v", "dataType": data_type}]
        frame = opened(in_postgres(postgres, table, schemaFields=declared)).read(NOW).frame
        return [row.v for row in frame.collect()]

    assert values("whole", {"integer": {}}) == [1, 2, None]
    assert values("broken", {"double": {}}) == [1.5]
    with pytest.raises(SparkRuntimeException, match=r"column v does not fit int: 1\.5"):
        values("broken", {"integer": {}})


def test_credentials_come_from_variables(postgres, opened, monkeypatch):
    monkeypatch.setenv("DB_USER", USER)
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    postgres.run("CREATE TABLE IF NOT EXISTS there (id int)")
    assert opened(in_postgres(postgres, "there", credentials=BY_VARIABLES)).listing().at_read_time


def test_url_is_read_where_it_is_allowed(postgres, opened, monkeypatch):
    monkeypatch.setenv("SNAPLOOM_ALLOW_JDBC_URL", "true")
    postgres.run("CREATE TABLE IF NOT EXISTS there (id int)")
    url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?sslmode=disable"
    source = in_postgres(postgres, "there", url=url, host=None, port=None, database=None)
    assert opened(source).listing().at_read_time


@pytest.mark.parametrize(
    "message",
    [
        "org.postgresql.util.PSQLException: ERROR: invalid snapshot identifier: 3-5-1",
        "java.sql.SQLTransientConnectionException: connection reset",
        "org.h2.jdbc.JdbcSQLSyntaxErrorException: Table not found",
    ],
)
def test_read_that_breaks_off_is_retryable(message):
    error = translate(RuntimeError(f"Job aborted due to stage failure: task 1: {message}"))
    assert (error.reason, error.retryable) == ("SourceNotReadable", True)


def test_login_hides_itself():
    login = Login("sa", "p.w")
    assert "p.w" not in repr(login)
    assert login.hide("user 'sa' sent p.w, alas") == "user '***' sent ***, alas"
