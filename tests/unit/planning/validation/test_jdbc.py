"""Sources in databases: what no address, option or condition may be."""

from typing import Any

import pytest
from support.declarations import document, parsed

from snaploom.models.finding import Finding
from snaploom.planning.validation.validator import validate

SOUND = {
    "driver": "POSTGRESQL",
    "host": "db.example.org",
    "database": "shop",
    "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
    "tableReference": "public.orders",
    "snapshot": {"fromReadTime": {}},
}


def findings_of(**changes: Any) -> tuple[Finding, ...]:
    declared = {name: value for name, value in (SOUND | changes).items() if value is not None}
    return tuple(validate(parsed([document("DataSource", "db", {"jdbc": declared})])))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"options": {"sslmode": "verify-full", "connectTimeout": "5"}},
        {"isolationLevel": "READ_COMMITTED"},
        {"tablePredicates": ["mod(id, 2) = 0", "a IN (1, ')') OR b = '--'", "c = 'it''s;'"]},
        {"tableReference": 'sales."a.b"'},
        {"driver": "H2", "host": None, "database": "/data/shop", "credentials": None},
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
        ({"credentials": None}, "SL145", "credentials"),
        ({"driver": "DUCKDB"}, "SL145", "host"),
        ({"driver": "H2", "host": None, "database": "x;INIT=RUNSCRIPT"}, "SL145", "database"),
        ({"driver": "H2", "host": None, "database": "mem:x"}, "SL145", "database"),
        ({"driver": "DUCKDB", "host": None, "database": "md:x"}, "SL145", "database"),
        ({"driver": "ORACLE", "database": "x?y"}, "SL145", "database"),
        ({"driver": "MARIADB", "database": "x?allowLocalInfile=true"}, "SL145", "database"),
        (
            {"driver": "MYSQL", "options": {"connectionTimeZone": "LOCAL"}},
            "SL146",
            "options.connectionTimeZone",
        ),
        ({"driver": "SQLITE", "host": None}, "SL145", "driver"),
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
