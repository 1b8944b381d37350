"""What is wrong with sources: prefixes, snapshot fields, credentials, queries, circles."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    found,
    parsed,
    simple,
    spoilt,
)

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.findings import Finding
from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlForm, SqlText, judge
from snaploom.validate.validator import validate

DAY = {"fieldName": "day", "timeFormat": "ISO8601_DATE"}
HDFS = "spec.hdfsLike"


def snapshot(**changes: str) -> Raw:
    return {"fromFieldValue": DAY | changes}


def column(name: str, kind: Raw) -> Raw:
    return {"name": name, "dataType": kind}


DAY_COLUMN = column("day", {"date": {}})
"""The column that holds the snapshot."""


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        pytest.param(
            {"sourceUriPrefix": "/data/a/{day}/"}, "SL140", "sourceUriPrefix", id="grammar"
        ),
        pytest.param(
            {"sourceUriPrefix": "/data/a/{day:STRING}"}, "SL140", "sourceUriPrefix", id="no-end"
        ),
        pytest.param(
            {
                "sourceUriPrefix": "/data/a/{x:STRING}/",
                "schemaFields": [column("X", {"string": {}}), DAY_COLUMN],
            },
            "SL140",
            "sourceUriPrefix",
            id="captured-and-column",
        ),
        pytest.param(
            {"sourceUriPrefix": "/other/{day:STRING}/", "sourceUriGlobs": ["/other/*", "/data/*"]},
            "SL141",
            "sourceUriGlobs[1]",
            id="glob-elsewhere",
        ),
        pytest.param(
            {"sourceUriPrefix": "/data/a/{Day:LONG}/"},
            "SL142",
            "snapshot.fromFieldValue.timeFormat",
            id="capture-type",
        ),
        pytest.param(
            {"schemaFields": [column("DAY", {"integer": {}})]},
            "SL142",
            "snapshot.fromFieldValue.timeFormat",
            id="column-type",
        ),
        pytest.param(
            {
                "snapshot": snapshot(timeFormat="UNIX_SECONDS"),
                "schemaFields": [column("day", {"decimal": {"precision": 9, "scale": 2}})],
            },
            "SL142",
            "snapshot.fromFieldValue.timeFormat",
            id="decimal-with-fraction",
        ),
        pytest.param(
            {"snapshot": snapshot(defaultTimezone="Australia/Melborne")},
            "SL132",
            "snapshot.fromFieldValue.defaultTimezone",
            id="zone",
        ),
        pytest.param(
            {"schemaFields": [column("a", {"string": {}}), column("A", {"long": {}}), DAY_COLUMN]},
            "SL135",
            "schemaFields[1].name",
            id="columns-equal-but-for-case",
        ),
        pytest.param(
            {
                "schemaFields": [
                    column("s", {"array": {"elementType": {"struct": {"fields": [
                        column("x", {"string": {}}), column("X", {"string": {}})]}}}}),
                    DAY_COLUMN,
                ]
            },
            "SL135",
            "schemaFields[0].dataType.array.elementType.struct.fields[1].name",
            id="inner-fields-equal-but-for-case",
        ),
        pytest.param(
            {"metadataApplicators": ["absent"]}, "SL130", "metadataApplicators[0]", id="applicator"
        ),
        pytest.param(
            {"fieldTransformers": ["absent"]}, "SL130", "fieldTransformers[0]", id="transformer"
        ),
    ],
)  # fmt: skip
def test_faults_of_file_sources(changes: Raw, code: str, path: str) -> None:
    faults = found([files("a", **changes)])
    assert faults == [(code, "DataSource/a", f"{HDFS}.{path}")]


@pytest.mark.parametrize(
    ("time_format", "kind"),
    [
        ("ISO8601_DATE", {"date": {}}),
        ("ISO8601_DATE", {"string": {}}),
        ("ISO8601_DATE_TIME", {"string": {}}),
        ("TIMESTAMP", {"timestamp": {}}),
        ("TIMESTAMP", {"date": {}}),
        ("UNIX_SECONDS", {"byte": {}}),
        ("UNIX_MILLISECONDS", {"decimal": {"precision": 20, "scale": 0}}),
    ],
)
def test_sound_snapshot_fields_are_accepted(time_format: str, kind: Raw) -> None:
    source = files(
        "a", snapshot=snapshot(timeFormat=time_format), schemaFields=[column("Day", kind)]
    )
    assert found([source]) == []


def test_a_zone_is_answered_with_the_one_that_was_meant() -> None:
    source = files("a", snapshot=snapshot(defaultTimezone="Australia/Melborne"))
    (finding,) = validate(parsed([source]))
    assert finding.hint == "did you mean `Australia/Melbourne`?"


JDBC = document(
    "DataSource",
    "db",
    {
        "jdbc": {
            "driver": "POSTGRESQL",
            "host": "db",
            "database": "shop",
            "credentials": {"fromPlaintext": {"user": "u", "password": "hunter2"}},
            "tableReference": "t",
            "snapshot": {"fromReadTime": {}},
        }
    },
)


def test_passwords_and_urls_in_a_spec_are_warnings_that_show_neither() -> None:
    raw = spoilt(JDBC, "spec.jdbc.url", "jdbc:postgresql:hunter2")
    del raw["spec"]["jdbc"]["host"], raw["spec"]["jdbc"]["database"]
    findings = validate(parsed([raw]))
    assert [(f.code, f.severity, f.path) for f in findings] == [
        ("SL143", "WARNING", "spec.jdbc.credentials.fromPlaintext"),
        ("SL144", "WARNING", "spec.jdbc.url"),
    ]
    assert "hunter2" not in str(findings)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM c",
        "select C.a, upper(b) as x from C where a in (1, 2) and exists(arr, x -> x > 1)",
        "SELECT a, count(*) FROM c t WHERE t.b > 1 GROUP BY a HAVING count(*) > 1;",
        "SELECT DISTINCT a.b.c, CAST(`d e` AS INT) FROM c -- the end",
        "SELECT a FROM c GROUP BY ALL",
    ],
)
def test_simple_queries_are_accepted(query: str) -> None:
    assert found([files("customer"), simple("v", query)]) == []


@pytest.mark.parametrize(
    ("query", "code", "named"),
    [
        ("SELECT", "SL150", "nothing after SELECT"),
        ("SELECT a FROM", "SL150", "Spark SQL"),
        ("SELECT a, FROM c", "SL150", "comma too many"),
        ("SELECT a FROM c; SELECT b FROM c", "SL150", "found another"),
        ("SELECT 'a FROM c", "SL150", "Spark SQL"),
        ("SELECT a FROM c JOIN c d ON 1=1", "SL151", "JOIN"),
        ("SELECT a FROM c, c d", "SL151", "JOIN"),
        ("SELECT a FROM c UNION ALL SELECT a FROM c", "SL151", "UNION"),
        ("WITH c AS (SELECT 1) SELECT a FROM c", "SL151", "WITH"),
        ("SELECT a FROM (SELECT a FROM c)", "SL151", "a subquery"),
        ("SELECT a FROM c WHERE b IN (SELECT b FROM c)", "SL151", "a subquery"),
        ("SELECT (SELECT max(a) FROM c) FROM c", "SL151", "a subquery"),
        ("SELECT rank() OVER (ORDER BY a) FROM c", "SL151", "a window function"),
        ("SELECT explode(a) FROM c", "SL151", "a generator"),
        ("SELECT json_tuple(a, 'b') FROM c", "SL151", "a generator"),
        ("SELECT a FROM c LATERAL VIEW explode(b) t AS x", "SL151", "LATERAL VIEW"),
        ("SELECT a FROM c ORDER BY a", "SL151", "ORDER BY"),
        ("SELECT a FROM c LIMIT 1", "SL151", "LIMIT"),
        ("SELECT a FROM c TABLESAMPLE (10 PERCENT)", "SL151", "TABLESAMPLE"),
        ("SELECT * FROM c PIVOT (sum(a) FOR b IN (1))", "SL151", "PIVOT"),
        ("SELECT reflect('java.lang.System', 'exit') FROM c", "SL151", "reflect"),
        ("DROP TABLE c", "SL151", "DROP"),
        ("VALUES (1)", "SL151", "VALUES"),
        ("SELECT a FROM d", "SL152", "reads d"),
        ("SELECT a FROM parquet.`/etc`", "SL152", "parquet./etc"),
        ("SELECT a FROM db.c", "SL152", "db.c"),
        ("SELECT * FROM range(3)", "SL152", "RANGE(3)"),
        ("SELECT 1", "SL152", "does not read its source"),
        ("SELECT {{ SNAPSHOT | UNIX_SECONDS }} FROM c", "SL153", "no placeholders"),
    ],
)
def test_queries_beyond_simple_are_refused(query: str, code: str, named: str) -> None:
    findings = validate(parsed([files("customer"), simple("v", query)]))
    assert (findings[0].code, findings[0].path) == (code, "spec.simpleVirtual.dataQuery")
    assert named in findings[0].message


def test_a_simple_source_may_not_read_a_virtual_one() -> None:
    raws = [files("customer"), simple("v", "SELECT a FROM c"), simple("w", "SELECT a FROM c", "v")]
    (finding,) = validate(parsed(raws))
    assert (finding.code, finding.resource) == ("SL154", "DataSource/w")
    assert "read customer directly" in finding.hint


PLACE = "{{ SNAPSHOT | UNIX_SECONDS }}"


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        pytest.param({"dataQuery": "SELECT 1 FROM c0"}, "SL153", "dataQuery", id="no-placeholder"),
        pytest.param(
            {"dataQuery": "SELECT {{ SNAPSHOT }} FROM c0"}, "SL153", "dataQuery", id="no-format"
        ),
        pytest.param(
            {"dataQuery": "SELECT {{ SNAPSHOT | SECONDS }} FROM c0"}, "SL153", "dataQuery",
            id="unknown-format",
        ),
        pytest.param(
            {"dataQuery": f"SELECT {PLACE}, {{{{ x }}}} FROM c0"}, "SL153", "dataQuery",
            id="unknown-placeholder",
        ),
        pytest.param(
            {"snapshotQuery": f"SELECT {PLACE} AS interval_start, 1 AS interval_end FROM c0"},
            "SL153", "snapshotQuery", id="placeholder-in-snapshotQuery",
        ),
        pytest.param(
            {"snapshotQuery": "SELECT a, b FROM c0"}, "SL151", "snapshotQuery", id="columns"
        ),
        pytest.param(
            {"dataQuery": f"SELECT {PLACE} FROM c0 JOIN other"}, "SL152", "dataQuery", id="table"
        ),
        pytest.param(
            {"dataQuery": f"INSERT INTO x SELECT {PLACE} FROM c0"}, "SL151", "dataQuery",
            id="insert",
        ),
        pytest.param({"dataQuery": f"SELECT {PLACE} FROM ("}, "SL150", "dataQuery", id="syntax"),
        pytest.param(
            {"dataSources": [{"dataSource": "a", "alias": alias} for alias in ("c0", "C0")]},
            "SL135", "dataSources[1]", id="alias-twice",
        ),
        pytest.param(
            {"dataSources": [{"dataSource": "b", "alias": "c0"}]}, "SL130",
            "dataSources[0].dataSource", id="reference",
        ),
    ],
)  # fmt: skip
def test_faults_of_complex_virtual_sources(changes: Raw, code: str, path: str) -> None:
    raw = complex_("v", f"SELECT * FROM c0 WHERE t <= {PLACE}", "a", **changes)
    faults = found([files("a"), raw])
    assert faults == [(code, "DataSource/v", f"spec.complexVirtual.{path}")]


def test_complex_queries_may_join_and_nest() -> None:
    query = f"""
        WITH latest AS (SELECT a, max(t) AS t FROM c0 WHERE t <= {PLACE} GROUP BY a)
        SELECT l.a, rank() OVER (ORDER BY d.b) FROM latest l LEFT JOIN c1 d USING (a)
        UNION SELECT 1, 2 FROM (SELECT * FROM C1)
    """
    faults = found([files("a"), files("b"), complex_("v", query, "a", "b")])
    assert faults == []


def test_circles_of_virtual_sources_are_named_as_a_path() -> None:
    query = f"SELECT {PLACE} FROM c0"
    raws = [
        complex_("b", query, "c"), complex_("c", query, "a"), complex_("a", query, "b"),
        complex_("self", query, "self"), complex_("sound", query, "a"),
    ]  # fmt: skip
    circles = [f for f in validate(parsed(raws)) if f.code == "SL155"]
    assert [(f.resource, f.path, f.found) for f in circles] == [
        (
            "DataSource/a",
            "spec.complexVirtual",
            "DataSource/a -> DataSource/b -> DataSource/c -> DataSource/a",
        ),
        ("DataSource/self", "spec.complexVirtual", "DataSource/self -> DataSource/self"),
    ]


words = st.sampled_from(
    ["SELECT", "FROM", "c", "a", ",", "(", ")", "*", "WHERE", "GROUP BY", "JOIN", "ON", "=", "1",
     "'x'", "`q`", "AS", "OVER", "WITH", "CASE", "WHEN", "END", "EXISTS", "IN", "-", "->", ".",
     "[", "]", "{", "}", "CAST", "INTERVAL", "EXPLODE", "LATERAL VIEW", ";", "--", "/*", "@", ":",
     "VALUES", "SET", "SHOW", "UNION", "ORDER BY", "BETWEEN", "NOT", "::", "$1", "?", "\\", "é"]
)  # fmt: skip


@given(st.lists(words, max_size=12).map(" ".join) | st.text(max_size=40))
@settings(deadline=None)
def test_no_text_breaks_the_judgement_of_sql(text: str) -> None:
    for form in SqlForm:
        assert isinstance(judge(SqlText(text, form)), SqlFacts | SqlFault)


@pytest.mark.parametrize("glob", ["data/*.csv", "./data/*", "../data/*", "s3:data/*"])
def test_files_are_given_by_absolute_places(glob: str) -> None:
    (finding,) = validate(parsed([spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", [glob])]))
    assert (finding.code, finding.path) == ("SL173", "spec.hdfsLike.sourceUriGlobs[0]")
    assert "scheme://bucket/data/" in finding.expected


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
def test_what_leaves_its_place_is_refused(changes, code, field):
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
