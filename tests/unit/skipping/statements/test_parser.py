"""Statements in Flint's early form and in today's: their meaning, and where they are wrong."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.errors import StatementInvalid
from snaploom.models.skippingindex import Index
from snaploom.skipping.core.hashes import BloomFilter
from snaploom.skipping.statements.columns import name_text
from snaploom.skipping.statements.syntax import (
    AlterIndex,
    CreateIndex,
    PathName,
    PlainStatement,
    RefreshIndex,
    ShowIndexes,
    Statement,
    TableName,
    parse,
)

T = TableName(("t",))
TYPES = ("BLOOM_FILTER", "GEO_BOX", "MIN_MAX", "PARTITION", "VALUE_SET")


def index_of(item: str, seed: bool = False) -> Index:
    form = "FOR COLUMNS " if seed else ""
    statement = parse(f"CREATE SKIPPING INDEX ON t {form}({item})", TYPES)
    assert isinstance(statement, CreateIndex)
    return statement.indexes[0]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("year PARTITION", Index(type="PARTITION", column="year")),
        ("c value_list", Index(type="VALUE_SET", column="c")),
        ("a.b.c MIN_MAX", Index(type="MIN_MAX", column="a.b.c")),
        ("`a.b`.c MIN_MAX", Index(type="MIN_MAX", column="`a.b`.c")),
        ("`simple` MIN_MAX", Index(type="MIN_MAX", column="simple")),
        ("c MIN_MAX()", Index(type="MIN_MAX", column="c")),
        ("lower( c ) VALUE_SET", Index(type="VALUE_SET", expression="lower( c )")),
        ("f(a, b) MIN_MAX", Index(type="MIN_MAX", expression="f(a, b)")),
        ("a + 1 MIN_MAX", Index(type="MIN_MAX", expression="a + 1")),
        ("(lat, lon) GEO_BOX", Index(type="GEO_BOX", columns=("lat", "lon"))),
        ("min_max MIN_MAX", Index(type="MIN_MAX", column="min_max")),
        ("c VALUE_SET(5)", Index(type="VALUE_SET", column="c", parameters={"limit": "5"})),
        ("c VALUE_SET(limit = 5)", Index(type="VALUE_SET", column="c", parameters={"limit": "5"})),
        ("c MIN_MAX(key_label = 'k')", Index(type="MIN_MAX", column="c", key_label="k")),
    ],
)
def test_an_item_of_the_list_is_a_subject_and_a_type(item: str, expected: Index) -> None:
    assert index_of(item) == expected


@pytest.mark.parametrize(
    ("parameters", "seed", "expected"),
    [
        ("(1024, 3)", True, {"ndv": "236", "fpp": "0.125"}),
        ("(1024)", True, {"ndv": "101", "fpp": "0.0078125"}),
        ("", True, {}),
        ("", False, {}),
        ("(20)", False, {"num_candidates": "20"}),
        ("(20, 0.05)", False, {"num_candidates": "20", "fpp": "0.05"}),
        ("(true, 20)", False, {"num_candidates": "20"}),
        ("(FALSE)", False, {"ndv": "10000"}),
        ("(false, 500, 1e-3)", False, {"ndv": "500", "fpp": "1e-3"}),
        ("(ndv = 500, fpp = -1)", False, {"ndv": "500", "fpp": "-1"}),
    ],
)
def test_parameters_of_a_bloom_filter_depend_on_the_form(parameters, seed, expected):
    assert dict(index_of(f"c BLOOM_FILTER{parameters}", seed).parameters) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REFRESH SKIPPING INDEX ON t", RefreshIndex(T)),
        ("refresh skipping index on t full;", RefreshIndex(T, "FULL")),
        ("DESC SKIPPING INDEX ON t", PlainStatement("DESCRIBE", T)),
        ("DESCRIBE SKIPPING INDEX ON t", PlainStatement("DESCRIBE", T)),
        ("DROP SKIPPING INDEX ON t", PlainStatement("DROP", T)),
        ("VACUUM SKIPPING INDEX ON t", PlainStatement("VACUUM", T)),
        ("ANALYZE SKIPPING INDEX ON t", PlainStatement("ANALYZE", T)),
        ("RECOVER SKIPPING INDEX ON t", PlainStatement("RECOVER", T)),
        (
            "ALTER SKIPPING INDEX ON t WITH (enabled = false)",
            AlterIndex(T, (("enabled", "false"),)),
        ),
        ("SHOW FLINT INDEXES IN c", ShowIndexes(("c",))),
        ("SHOW FLINT INDEXES IN c.d", ShowIndexes(("c", "d"))),
        ("show flint index in c", ShowIndexes(("c",))),
        ("SHOW FLINT INDEX EXTENDED IN c", ShowIndexes(("c",), is_extended=True)),
        ("SHOW FLINT INDEXES EXTENDED IN c.d;", ShowIndexes(("c", "d"), is_extended=True)),
        ("DROP /* a /* b */ */ SKIPPING -- c\n INDEX ON t", PlainStatement("DROP", T)),
        ("DROP SKIPPING INDEX ON a.b.c", PlainStatement("DROP", TableName(("a", "b", "c")))),
        ("DROP SKIPPING INDEX ON a.`b.c`", PlainStatement("DROP", TableName(("a", "b.c")))),
        ("DROP SKIPPING INDEX ON a.`b``c`", PlainStatement("DROP", TableName(("a", "b`c")))),
        (
            "DROP SKIPPING INDEX ON Parquet.`/data/x`",
            PlainStatement("DROP", PathName("parquet", "/data/x")),
        ),
    ],
)
def test_statements_about_an_index(text: str, expected: object) -> None:
    assert parse(text) == expected


def test_the_size_of_a_filter_is_that_which_the_seed_asks_for() -> None:
    parameters = index_of("c BLOOM_FILTER(65536, 5)", seed=True).parameters
    bloom = BloomFilter.sized(int(parameters["ndv"]), float(parameters["fpp"]))
    assert (len(bloom.bits), bloom.functions) == (65536, 5)


def test_a_creation_names_its_target_and_properties() -> None:
    statement = parse(
        "CREATE SKIPPING INDEX IF NOT EXISTS ON t (c MIN_MAX, d VALUE_SET)\n"
        "WHERE day > '2020; WITH (' AND (x IN (1, 2))\n"
        "WITH (location = 's3://b/''i''', 'Auto_Refresh' = TRUE, refresh_interval = -1.5);"
    )
    assert statement == CreateIndex(
        T,
        (Index(type="MIN_MAX", column="c"), Index(type="VALUE_SET", column="d")),
        "day > '2020; WITH (' AND (x IN (1, 2))",
        (("auto_refresh", "true"), ("location", "s3://b/'i'"), ("refresh_interval", "-1.5")),
        if_not_exists=True,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT 1",
        "SELECT skipping index FROM t",
        "CREATE TABLE skipping (index INT)",
        "CREATE INDEX i ON t (c)",
        "CREATE OR REPLACE TEMP VIEW skipping AS SELECT 1",
        "REFRESH TABLE t",
        "REFRESH skipping",
        "REFRESH skipping.index",
        "DESC skipping",
        "DESC skipping index",
        "DESCRIBE skipping index;",
        "DESC shipping",
        "VACUUM skipping RETAIN 7 HOURS",
        "SHOW TABLES IN c",
        "SHOW INDEXES IN c",
        "ANALYZE TABLE skipping COMPUTE STATISTICS",
        "DROP TABLE skipping",
        "SELECT 'never ends",
        "DESC `skipping` `index` on",
    ],
)
def test_what_spark_can_read_is_left_to_spark(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("CREATE SKIPING INDEX ON t (c MIN_MAX)", "SKIPING", "SKIPPING"),
        ("CREATE SKIPPING INDX ON t (c MIN_MAX)", "INDX", "INDEX"),
        ("CREATE OR REPLACE SKIPPING INDEX ON t (c MIN_MAX)", "OR", "SKIPPING"),
        ("CREATE SKIPPING INDEX t (c MIN_MAX)", "t", "ON"),
        ("CREATE SKIPPING INDEX ON t", "the end of the statement", "( or FOR COLUMNS ("),
        ("CREATE SKIPPING INDEX ON t FOR (c MIN_MAX)", "(", "COLUMNS"),
        ("CREATE SKIPPING INDEX IF EXISTS ON t (c MIN_MAX)", "EXISTS", "NOT"),
        ("CREATE SKIPPING INDEX ON t ()", ")", "a column"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX,)", ")", "a column"),
        ("CREATE SKIPPING INDEX ON t (c)", "c", "the type"),
        ("CREATE SKIPPING INDEX ON t (lower(c))", "lower", "type"),
        ("CREATE SKIPPING INDEX ON t ((a))", "(", "type"),
        ("CREATE SKIPPING INDEX ON t (c ÄÖ)", "ÄÖ", "VALUE_SET"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX(key_label = ''))", "c", "a column"),
        ("CREATE SKIPPING INDEX ON t (c BLOOM_FILTER(1, 0.1, 2))", "2", "num_candidates"),
        ("CREATE SKIPPING INDEX ON t FOR COLUMNS (c BLOOM_FILTER(0))", "0", "whole number"),
        ("CREATE SKIPPING INDEX ON t FOR COLUMNS (c BLOOM_FILTER(9, 0.1))", "0.1", "1 to 64"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_ST)", "VALUE_ST", "VALUE_SET"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX", "the end of the statement", ")"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX(3))", "3", "only MIN_MAX"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(1, 2))", "2", "(limit)"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(1,))", ",", "value"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(1 2))", "2", "number"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(-))", "-", "number"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(limit = 1, limit = 2))", "limit", "once"),
        ("CREATE SKIPPING INDEX ON t (c VALUE_SET(1, limit = 2))", "1", "name = value"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WHERE", "the end of the statement", "condition"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WHERE (a", "the end of the statement", ")"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WHERE a)", ")", "("),
        (
            "CREATE SKIPPING INDEX ON t (c MIN_MAX) WITH (form = NATIVE, FORM = NATIVE)",
            "FORM",
            "once",
        ),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WITH (form 1)", "1", "NATIVE or"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WITH (form)", ")", "a value of form"),
        ("ALTER SKIPPING INDEX ON t WITH (enabled true = 1)", "=", ") or ,"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WITH (locaton = 'x')", "locaton", "location"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WITH (form = 'CSV')", "'CSV'", "NATIVE or"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WHIT (a = 1)", "WHIT", "WITH"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX); SELECT 1", "SELECT", "the end"),
        ("CREATE SKIPPING INDEX ON t (c MIN_MAX) WHERE a = 'x", "'x", "closing"),
        ("CREAT SKIPPING INDEX ON t (c MIN_MAX)", "CREAT", "CREATE"),
        ("MERGE SKIPPING INDEX ON t", "MERGE", "ALTER or ANALYZE"),
        ("REFRESH SKIPPING INDX ON t", "INDX", "INDEX"),
        ("REFRESH SKPIPING INDEX ON t", "SKPIPING", "SKIPPING"),
        ("REFRESH SKIPPING ON t", "ON", "INDEX"),
        ("REFRESH SKIPPING INDEX ON t NOW", "NOW", "FULL, INCREMENTAL, AUTO"),
        ("DESCRIBE SKIPPING INDEX t", "t", "ON"),
        ("DROP SKIPPING INDEX ON", "the end of the statement", "a table"),
        ("DROP SKIPPING INDEX ON a.b.c.d", "d", "catalog.database.table"),
        ("DROP SKIPPING INDEX ON a.", "the end of the statement", "name"),
        ("DROP SKIPPING INDEX ON ``", "``", "name"),
        ("DROP SKIPPING INDEX", "the end of the statement", "ON"),
        ("ALTER SKIPPING INDEX ON t", "the end of the statement", "WITH"),
        ("ALTER SKIPPING INDEX ON t WITH ()", ")", "name"),
        ("ALTER SKIPPING INDEX ON t WITH (form = 'NATIVE')", "form", "enabled"),
        ("SHOW FLINT INDEXES", "the end of the statement", "IN or EXTENDED"),
        ("SHOW FLINT INDEX EXTENDED", "the end of the statement", "IN"),
        ("SHOW FLINT INDXES IN c", "INDXES", "INDEXES or INDEX"),
        ("SHOW FLNT INDEXES IN c", "FLNT", "FLINT"),
        ("SHOW FLINT INDEXES IN a.b.c", "c", "catalog.database"),
    ],
)
def test_a_wrong_statement_is_refused_at_its_token(text: str, found: str, expected: str) -> None:
    with pytest.raises(StatementInvalid) as caught:
        parse(text, TYPES)
    assert caught.value.found == found
    assert caught.value.expected is not None
    assert expected in caught.value.expected
    line, marks = caught.value.message.splitlines()[1:]
    if found != "the end of the statement":
        assert line[len(marks) - len(marks.strip()) :].startswith(found)
        assert marks.strip() == "^" * len(found)


def test_the_caret_points_into_the_right_line() -> None:
    with pytest.raises(StatementInvalid) as caught:
        parse("CREATE SKIPPING INDEX ON t (\n\tc VALUE_ST\n)", TYPES)
    assert caught.value.message == (
        "there is no index type of this name, at line 2, column 4\n     c VALUE_ST\n       ^^^^^^^^"
    )
    assert caught.value.hint == "write VALUE_SET"


words = st.text(string.ascii_lowercase + "_", min_size=1, max_size=6)
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
paths = st.builds(PathName, words, names.map(lambda name: f"/{name}"))
tables = st.builds(
    TableName,
    st.lists(names.filter(lambda name: "/" not in name), min_size=1, max_size=3).map(tuple),
)
subjects = st.one_of(paths, tables)
columns = st.lists(names.map(name_text), min_size=1, max_size=3).map(".".join)
expressions = st.sampled_from(["lower(c)", "a + 1", "f(a, `b,)`) || ')'", "date(ts) -- no\n + 1"])
pairs = st.dictionaries(words.filter(lambda word: word != "key_label"), texts, max_size=3)
properties = st.dictionaries(
    st.sampled_from(["location", "checkpoint_location", "index_settings"]), texts, max_size=3
).map(lambda found: tuple(sorted(found.items())))
types = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("VALUE_LIST", "WITH", "WHERE")
)
labels = st.one_of(st.none(), texts.filter(bool))
of_column = st.builds(Index, type=types, column=columns, parameters=pairs, key_label=labels)
of_columns = st.builds(
    Index,
    type=types,
    columns=st.lists(columns, min_size=2, max_size=3, unique=True).map(tuple),
    parameters=pairs,
    key_label=labels,
)
of_expression = st.builds(
    Index, type=types, expression=expressions, parameters=pairs, key_label=labels
)
conditions = st.sampled_from(["", "day > '2020'", 'a IN (1, 2) AND (`with` = "WITH (")'])
creations = st.builds(
    CreateIndex,
    subjects,
    st.lists(st.one_of(of_column, of_columns, of_expression), min_size=1, max_size=4).map(tuple),
    conditions,
    properties,
    st.booleans(),
)
verbs = st.sampled_from(["DESCRIBE", "DROP", "VACUUM", "ANALYZE", "RECOVER"])
statements = st.one_of(
    creations,
    st.builds(PlainStatement, verbs, subjects),
    st.builds(RefreshIndex, subjects, st.sampled_from(["", "FULL", "INCREMENTAL", "AUTO"])),
    st.builds(AlterIndex, subjects, st.just((("enabled", "false"), ("refresh_mode", "FULL")))),
    st.builds(ShowIndexes, st.lists(names, min_size=1, max_size=2).map(tuple), st.booleans()),
)


VERBS = {RefreshIndex: "REFRESH", AlterIndex: "ALTER"}


def render(statement: Statement) -> str:
    """The statement as SQL, every parameter by its name."""
    if isinstance(statement, ShowIndexes):
        names = ".".join(map(name_text, statement.namespace))
        return f"SHOW FLINT INDEXES {'EXTENDED ' * statement.is_extended}IN {names}"
    match statement.subject:
        case PathName(form, path):
            subject = f"{name_text(form)}.`{path.replace('`', '``')}`"
        case TableName(parts):
            subject = ".".join(map(name_text, parts))
    properties = getattr(statement, "properties", ())
    given_properties = f"WITH ({', '.join(f'{q(k)} = {q(v)}' for k, v in properties)})"
    if isinstance(statement, CreateIndex):
        exists = "IF NOT EXISTS " * statement.if_not_exists
        indexes = ", ".join(map(render_index, statement.indexes))
        where = f"WHERE {statement.where}\n" * bool(statement.where)
        head = f"CREATE SKIPPING INDEX {exists}ON {subject} ({indexes})\n"
        return head + where + given_properties * bool(properties)
    verb = VERBS.get(type(statement)) or statement.verb
    text = f"{verb} SKIPPING INDEX ON {subject} {getattr(statement, 'mode', '')}"
    return text + given_properties * bool(properties)


def render_index(index: Index) -> str:
    subject = index.column or index.expression or f"({', '.join(index.columns or ())})"
    parameters = {**index.parameters, "key_label": index.key_label}
    found = [f"{name} = {q(value)}" for name, value in parameters.items() if value is not None]
    return f"{subject} {index.type}({', '.join(found)})"


def q(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@given(statements)
def test_what_is_rendered_parses_to_the_same_statement(statement: Statement) -> None:
    assert parse(render(statement)) == statement


@given(st.text(max_size=40))
def test_no_text_at_all_breaks_the_recognition(text: str) -> None:
    assert parse(f"SELECT {text}") is None
