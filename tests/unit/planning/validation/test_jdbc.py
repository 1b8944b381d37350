"""Sources in databases: what no address, option or condition may be."""

from typing import Any

import pytest
from support.declared.declarations import document, parsed

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.findings import Finding
from snaploom.validate.validator import validate

SOUND = {
    "driver": "POSTGRESQL",
    "host": "db.example.org",
    "database": "shop",
    "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
    "tableReference": "public.orders",
    "snapshot": {"fromReadTime": {}},
}


FILE = {"driver": "H2", "host": None, "database": "/data/shop", "credentials": None}
H2 = Allowances(formats=("h2",))


def findings_of(allow: Allowances = H2, **changes: Any) -> tuple[Finding, ...]:
    declared = {name: value for name, value in (SOUND | changes).items() if value is not None}
    resources = parsed([document("DataSource", "db", {"jdbc": declared})])
    return tuple(validate(resources, allow=allow))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"options": {"sslmode": "verify-full", "connectTimeout": "5"}},
        {"isolationLevel": "READ_COMMITTED"},
        {"tablePredicates": ["mod(id, 2) = 0", "a IN (1, ')') OR b = '--'", "c = 'it''s;'"]},
        {"tableReference": 'sales."a.b"'},
        FILE,
        {"driverClass": "org.postgresql.Driver"},
        {"host": "127.0.0.1"},
        {"host": "metadata"},
        {"driver": "DUCKDB", "host": None, "database": "/data/shop.db", "credentials": None},
    ],
)
def test_sound_source_has_no_findings(changes: dict[str, Any]) -> None:
    assert findings_of(**changes) == ()


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"host": None}, "SL145", "host"),
        ({"host": "db/shop?socketFactory=x"}, "SL145", "host"),
        ({"host": "db:1,other"}, "SL145", "host"),
        ({"host": "169.254.169.254"}, "SL145", "host"),
        ({"host": "::ffff:169.254.169.254"}, "SL145", "host"),
        ({"credentials": None}, "SL145", "credentials"),
        ({"driver": "DUCKDB", "database": "/shop.db"}, "SL145", "host"),
        ({"driver": "H2", "host": None, "database": "/x;INIT=RUNSCRIPT"}, "SL145", "database"),
        ({"driver": "H2", "host": None, "database": "mem:x"}, "SL145", "database"),
        ({"driver": "DUCKDB", "host": None, "database": "md:x"}, "SL145", "database"),
        ({"driver": "DUCKDB", "host": None, "database": "shop.db"}, "SL145", "database"),
        ({"driver": "DUCKDB", "host": None, "database": "/a/../../x"}, "SL145", "database"),
        ({"driver": "DUCKDB", "host": None, "database": "/a/.."}, "SL145", "database"),
        (FILE | {"database": "~/shop"}, "SL145", "database"),
        (FILE | {"options": {"ACCESS_MODE_DATA": "rw"}}, "SL146", "options.ACCESS_MODE_DATA"),
        ({"driverClass": "java.lang.ProcessBuilder"}, "SL136", "driverClass"),
        ({"driver": "ORACLE", "database": "x?y"}, "SL145", "database"),
        ({"driver": "MARIADB", "database": "x?allowLocalInfile=true"}, "SL145", "database"),
        (
            {"driver": "MYSQL", "options": {"connectionTimeZone": "LOCAL"}},
            "SL146",
            "options.connectionTimeZone",
        ),
        ({"driver": "SQLITE", "host": None, "database": "/x"}, "SL145", "driver"),
        ({"tableReference": "(SELECT 1) t"}, None, ""),
        ({"tableReference": "a..b"}, "SL145", "tableReference"),
        ({"isolationLevel": "SNAPSHOT"}, "SL145", "isolationLevel"),
        ({"options": {"socketFactory": "x"}}, "SL146", "options.socketFactory"),
        ({"options": {"user": "x"}}, "SL146", "options.user"),
        ({"options": {"SSLMODE": "x"}}, "SL146", "options.SSLMODE"),
        ({"tablePredicates": ["a = 1", "a = 2) OR (a = 3"]}, "SL147", "tablePredicates[1]"),
        ({"tablePredicates": ["a = 1 -- all"]}, "SL147", "tablePredicates[0]"),
        ({"tablePredicates": ["a = 1 /* all */"]}, "SL147", "tablePredicates[0]"),
        ({"tablePredicates": ["a = 1; DROP TABLE t"]}, "SL147", "tablePredicates[0]"),
        ({"tablePredicates": ["a = 'x"]}, "SL147", "tablePredicates[0]"),
        ({"tablePredicates": ["(a = 1"]}, "SL147", "tablePredicates[0]"),
        ({"tablePredicates": [" "]}, "SL147", "tablePredicates[0]"),
    ],
)
def test_what_leaves_its_place_is_refused(
    changes: dict[str, Any], code: str | None, field: str
) -> None:
    found = [(finding.code, finding.path) for finding in findings_of(**changes)]
    # Parentheses may stand in a name: it is quoted, and means no query.
    assert found == ([(code, f"spec.jdbc.{field}")] if code else [])


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db/shop?user=scott",
        "jdbc:postgresql://db/shop?ssl=true&password=hunter2",
        "jdbc:postgresql://scott:hunter2@db/shop",
        "jdbc:postgresql://scott:hun/ter2@db/shop?sslpassword=hunter2",
        "jdbc:postgresql://db/shop?sslmode=require&sslpassword=hunter2",
        "jdbc:h2:file:shop",
    ],
)
def test_url_with_a_login_or_of_another_database_is_refused(url: str) -> None:
    found = findings_of(url=url, host=None, database=None)
    assert [(f.code, f.path) for f in found] == [
        ("SL144", "spec.jdbc.url"),
        ("SL145", "spec.jdbc.url"),
    ]
    assert "hunter2" not in str(found)
    assert "scott" not in str(found)


def test_url_of_the_database_is_a_warning() -> None:
    (found,) = findings_of(url="jdbc:postgresql://db:5/shop?ssl=true", host=None, database=None)
    assert (found.code, found.severity) == ("SL144", "WARNING")


def test_file_of_h2_is_opened_only_where_that_is_allowed() -> None:
    (found,) = findings_of(NO_ALLOWANCES, **FILE)
    assert (found.code, found.path) == ("SL136", "spec.jdbc.database")
    assert "--allow formats=h2" in found.hint
    assert findings_of(**FILE) == ()


def test_class_of_a_driver_can_be_added() -> None:
    changes = {"driverClass": "com.example.Driver"}
    assert [finding.code for finding in findings_of(**changes)] == ["SL136"]
    assert findings_of(Allowances(formats=("com.example.Driver",)), **changes) == ()
