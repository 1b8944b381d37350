"""Hostile SQL in a job: texts that pass the scan are judged by Spark's own trees.

The first tests show that Spark without the gate does what is refused here.
"""

import ast
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.hostile.listener import Listener, listening

import snaploom
from snaploom.engine.expectations import Expectations
from snaploom.engine.keys import KeyPart, check_keys
from snaploom.errors import SnaploomError, SourceSchemaInvalid, StatementInvalid
from snaploom.models.allowances import Allowances
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.outputdataset import Check
from snaploom.skipping.spark.relations.expressions import Literal
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetfiles import choose_files
from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.sources.queries.reader import SourceQuery
from snaploom.sources.transformers import Columns, transformed
from snaploom.spark.gate import (
    ALLOW_SETTING,
    SqlPlace,
    check_resolved,
    checked_expression,
    checked_statement,
)

STATEMENT = SqlPlace(None, None, StatementInvalid, "one SELECT, of listed functions")

EntryPoint = Callable[[str], object]


@dataclass(frozen=True)
class SqlEntries:
    """Every entry point, over a source `src` with the columns `value` and `id`."""

    spark: SparkSession
    target: SparkTarget
    """Files with these columns and the partition column `p`."""

    @property
    def of_expressions(self) -> dict[str, EntryPoint]:
        """Entry points of expressions, by their names in the table of attacks."""
        return {
            "transformer": self.transformer,
            "joinKey": self.join_key,
            "check": self.check,
            "indexExpression": self.target.expression,
            "indexWhere": self.index_where,
        }

    @property
    def of_queries(self) -> dict[str, EntryPoint]:
        """Entry points of queries, by their names in the table of attacks."""
        return {
            "dataQuery": self.data_query,
            "snapshotQuery": self.snapshot_query,
            "statement": self.statement,
        }

    @property
    def source(self) -> DataFrame:
        return self.spark.createDataFrame([("a", 1)], "value string, id int")

    def transformer(self, text: str) -> list[object]:
        change = {"selectors": [{"coordinateIncludeRegex": "^value$"}], "expression": {"sql": text}}
        transformer = FieldTransformer.parse(
            {
                "apiVersion": "snaploom.io/v1alpha1",
                "kind": "FieldTransformer",
                "metadata": {"name": "t"},
                "spec": {"transformers": [change]},
            }
        )
        shaped = transformed(Columns(self.source, ()), [transformer], 0, "DataSource/src")
        return [row[0] for row in shaped.frame.collect()]

    def join_key(self, text: str) -> list[object]:
        part, source = KeyPart(text, None, None), self.source
        made = source.select("*", part.column(self.spark, "r"))
        check_keys(made, source, {"r": [part]})
        return [row[-1] for row in made.collect()]

    def check(self, text: str) -> list[object]:
        check = Check.parse({"name": "c", "expression": f"({text}) IS NOT NULL", "mode": "FAIL"})
        model = SimpleNamespace(root_data_source=SimpleNamespace(root_key=()))
        spec = SimpleNamespace(checks=(check,), data_model=model)
        output = SimpleNamespace(spec=spec, identity="OutputDataset/o")
        rows = self.source.selectExpr("struct(*) AS data", "value", "id")
        return list(Expectations(output, rows).frame.collect())  # type: ignore[arg-type]

    def data_query(self, text: str) -> list[object]:
        path = "spec.simpleVirtual.dataQuery"
        query = SourceQuery(self.spark, "DataSource/v", path, ("src",))
        return [row[0] for row in query.over(text, {"src": self.source}).collect()]

    def snapshot_query(self, text: str) -> list[object]:
        path = "spec.complexVirtual.snapshotQuery"
        query = SourceQuery(self.spark, "DataSource/v", path, ("src", "other"))
        frames = {"src": self.source, "other": self.source}
        return [row[0] for row in query.over(text, frames).collect()]

    def statement(self, text: str) -> list[object]:
        self.source.createOrReplaceTempView("src")
        try:
            return [row[0] for row in checked_statement(self.spark, text, STATEMENT).collect()]
        finally:
            self.spark.catalog.dropTempView("src")

    def index_where(self, text: str) -> object:
        files = {"file:/a": (Literal("a", "string"), Literal(1, "int"))}
        columns = [("value", "string"), ("id", "int")]
        return choose_files(self.spark, f"({text}) IS NOT NULL", columns, files)


def sql_entries(spark: SparkSession, folder: Path) -> SqlEntries:
    place = str(folder / "indexed")
    rows = spark.createDataFrame([("a", 1, 1)], "value string, id int, p int")
    rows.write.partitionBy("p").parquet(place)
    return SqlEntries(spark, open_path(spark, place, "parquet"))


def refusal(entry: EntryPoint, text: str) -> Exception | None:
    """The error with which an entry point, or Spark, refuses a text; None when it passes."""
    try:
        entry(text)
    except (SnaploomError, AnalysisException) as error:
        return error
    return None


def through(entries: SqlEntries, entry: str, expression: str) -> Exception | None:
    if entry in entries.of_expressions:
        return refusal(entries.of_expressions[entry], expression)
    return refusal(entries.of_queries[entry], f"select {expression} as x from src")


def accepted(entries: SqlEntries, entry: str, texts: dict[str, str]) -> list[str]:
    """The names of expressions that an entry point does not refuse."""
    return [name for name, text in texts.items() if through(entries, entry, text) is None]


pytestmark = pytest.mark.spark

EXPRESSIONS = ("transformer", "joinKey", "check", "indexExpression", "indexWhere")
QUERIES = ("dataQuery", "snapshotQuery", "statement")
ENTRIES = (*EXPRESSIONS, *QUERIES)
PLACE = SqlPlace("Kind/name", "spec.field", SourceSchemaInvalid, "an expression")

XSD = "rowValidationXSDPath"
DOCTYPE = '<!DOCTYPE a SYSTEM "{url}"><a>1</a>'
UDT = '{{"type":"udt","pyClass":"{module}.Type","serializedClass":"","sqlType":"string"}}'
UDT_SCHEMA = (
    '{{"type":"struct","fields":[{{"name":"a","type":'
    + UDT
    + ',"nullable":true,"metadata":{{}}}}]}}'
)
SOURCES = Path(snaploom.__file__).parent


@pytest.fixture(scope="module")
def entry_points(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SqlEntries:
    return sql_entries(spark, tmp_path_factory.mktemp("entry_points"))


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


def computed(spark: SparkSession, text: str) -> object:
    row = spark.range(1).select(sf.expr(text)).first()
    return row[0]


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'getenv', 'HOME')",
        "'' /* /* */ || '' */ || reflect('java.lang.System', 'getenv', 'HOME')",
        "transform(array(1), x -> java_method('java.lang.System', 'getenv', 'HOME'))[0]",
    ],
)
def test_spark_without_the_gate_calls_java_for_an_expression(spark, text):
    assert computed(spark, text) == os.environ["HOME"]


def test_spark_without_the_gate_replaces_variables_even_in_quotes(spark):
    spark.conf.set("spark.sql.variable.substitute", "true")  # as Spark has it
    try:
        assert computed(spark, "'${env:HOME}'") == os.environ["HOME"]
    finally:
        spark.conf.set("spark.sql.variable.substitute", "false")
    assert computed(spark, "'${env:HOME}'") == "${env:HOME}"


@pytest.mark.parametrize(
    "text",
    [
        f"from_xml('<a><b>1</b></a>', 'b INT', map('{XSD}', '{{url}}'))",
        f"schema_of_xml('<a><b>1</b></a>', map('{XSD}', '{{url}}'))",
        f"xpath_string('{DOCTYPE}', 'a')",
        f"xpath_boolean('{DOCTYPE}', 'a')",
    ],
)
def test_spark_without_the_gate_fetches_what_an_expression_names(spark, listener, text):
    with suppress(PySparkException, Py4JError):  # nothing is found there
        computed(spark, text.format(url=listener.url))
    assert {first.split(b"\r\n")[0] for first in listener.heard} == {b"GET /canary HTTP/1.1"}


JAVA = {
    "plain": "reflect('java.lang.System', 'getenv', 'HOME')",
    "by another name": "java_method('java.lang.System', 'getenv', 'HOME')",
    "that may fail": "try_reflect('java.lang.System', 'getenv', 'HOME')",
    "in other letters": "Reflect('java.lang.System', 'getenv', 'HOME')",
    "in backticks": "`reflect`('java.lang.System', 'getenv', 'HOME')",
    "by its place": "system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "in a lambda": "transform(array(1), x -> reflect('java.lang.System', 'getenv', 'HOME'))[0]",
    "in a branch": "case when 1 = 2 then reflect('java.lang.System', 'getenv', 'HOME') end",
    "in a struct": "struct(1 as a, reflect('java.lang.System', 'getenv', 'HOME') as b).b",
    "in a schema": "from_json('{}', reflect('java.lang.System', 'getenv', 'HOME'))",
    "by a literal name": "identifier('reflect')('java.lang.System', 'getenv', 'HOME')",
    "by a computed name": "identifier('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')",
}
COMMENTS = {
    "nested": "1 /* /* */ + length(reflect('java.lang.System', 'getenv', 'HOME')) */",
    "going on": "1 -- \\\n + length(reflect('java.lang.System', 'getenv', 'HOME'))",
    "hint": "1 /*+ x */ + length(reflect('java.lang.System', 'getenv', 'HOME'))",
    "never ends": "1 /* reflect('java.lang.System', 'getenv', 'HOME')",
    "between the words": "reflect /* plain */ ('java.lang.System', 'getenv', 'HOME')",
}
REACH = {
    "descriptor": "from_protobuf(unbase64('AA=='), 'A', '/etc/passwd')",
    "document type": f"xpath_string('{DOCTYPE}', 'a')",
    "document types": f"size(xpath('{DOCTYPE}', 'a'))",
    "logs of workers": "python_worker_logs()",
    "files": "read_files('/etc')",
}
OPTIONS = {
    "schema by its path": f"from_xml('<a/>', 'b INT', map('{XSD}', '{{url}}'))",
    "in other letters": f"from_xml('<a/>', 'b INT', map('{XSD.upper()}', '{{url}}'))",
    "beside a good one": f"from_xml('<a/>', 'b INT', map('mode', 'FAILFAST', '{XSD}', '{{url}}'))",
    "of an inference": f"schema_of_xml('<a/>', map('{XSD}', '{{url}}'))",
    "as the schema": f"from_json('{{}}', schema_of_xml('<a/>', map('{XSD}', '{{url}}')))",
    "computed": "from_xml('<a/>', 'b INT', map(concat('rowValidation', 'XSDPath'), '{url}'))",
    "of arrays": f"from_xml('<a/>', 'b INT', map_from_arrays(array('{XSD}'), array('{{url}}')))",
    "of a text": f"from_xml('<a/>', 'b INT', str_to_map('{XSD}|{{url}}', ';', '|'))",
    "of Avro": """from_avro(unbase64('AA=='), '"int"', map('avroSchemaUrl', '{url}'))""",
    "of files": "from_csv('a', 'b STRING', map('path', '{url}'))",
    "to XML": f"to_xml(struct(1 as a), map('{XSD}', '{{url}}'))",
}
RELATIONS = {
    "a table": "(select max(id) from secret)",
    "in a list": "(1 in (select id from secret))",
    "exists": "exists(select 1 from secret)",
    "a file": "(select max(value) from text.`/etc/passwd`)",
    "by a computed name": "(select max(id) from identifier('sec' || 'ret'))",
    "a variable": "system.session.variable",
}
VARIABLES = {
    "environment": "'${env:HOME}'",
    "system": "'${system:user.home}'",
    "setting": "'${spark.app.name}'",
    "as a name": "${env:HOME}",
    "parameter": ":name",
    "marker": "?",
}
TABLE_FUNCTIONS = {
    "rows": "range(3)",
    "generator": "explode(array(1, 2))",
    "keywords": "sql_keywords()",
}


NESTING = {
    "calls": "struct(" * 40 + "1" + ")" * 40,
    "brackets": "(" * 5_000 + "1" + ")" * 5_000,
    "signs": "- " * 5_000 + "1",
    "branches": "case when 1 = 1 then " * 40 + "1" + " end" * 40,
}
CRASHES = {
    "never ends": "map(value",
    "odd": "map(value)",
    "no bracket": "value)",
    "control characters": "'a\x00b'",
}


ATTACKS = {
    "java": (JAVA, ENTRIES),
    "comments": (COMMENTS, ENTRIES),
    "reach": (REACH, ENTRIES),
    "options": (OPTIONS, ENTRIES),
    "nesting": (NESTING, ENTRIES),
    "crashes": (CRASHES, ENTRIES),
    "relations": (RELATIONS, (*EXPRESSIONS, "dataQuery", "snapshotQuery")),
    "table functions": (TABLE_FUNCTIONS, EXPRESSIONS),
}
"""Texts by name, and the entry points that refuse them."""


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(
    ("attack", "entry_point"),
    [(attack, entry) for attack, (_, entries) in ATTACKS.items() for entry in entries],
)
def test_no_entry_point_accepts_an_attack(entry_points, listener, attack, entry_point):
    texts = {name: text.replace("{url}", listener.url) for name, text in ATTACKS[attack][0].items()}
    assert accepted(entry_points, entry_point, texts) == []
    assert listener.heard == []


@pytest.mark.parametrize("entry_point", ENTRIES)
def test_no_entry_point_imports_the_module_of_a_type(
    entry_points: SqlEntries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_point: str
) -> None:
    """PySpark imports the module of a user-defined type, and older ones unpickle its class."""
    (tmp_path / "canary_of_a_type.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    foreign = UDT_SCHEMA.format(module="canary_of_a_type")
    attacks = {
        "JSON": f"from_json('{{}}', '{foreign}')",
        "behind blanks": f"from_xml('<a/>', '  \n{foreign}')",
        "with more behind": f"from_csv('1', '{foreign} x')",
        "put together": f"from_json('{{}}', concat('{foreign[:9]}', '{foreign[9:]}'))",
        "of a variant": f"variant_get(parse_json('1'), '$', '{UDT.format(module='m')}')",
    }
    assert accepted(entry_points, entry_point, attacks) == []
    assert "canary_of_a_type" not in sys.modules


@pytest.mark.parametrize("entry_point", ENTRIES)
def test_types_of_spark_s_own_pass_as_text(entry_points: SqlEntries, entry_point: str) -> None:
    field = '{"name":"a","type":"integer","nullable":true,"metadata":{}}'
    types = (
        "'a INT'", "'array<struct<`{a}`: int>>'", "schema_of_json('[{\"a\": 1}]')",
        f"""'{{"type":"struct","fields":[{field}]}}'""",
    )  # fmt: skip
    texts = [f"concat(value, to_json(from_json('[]', {one})))" for one in types]
    assert [str(through(entry_points, entry_point, text)) for text in texts] == ["None"] * len(
        texts
    )


def test_an_expression_reads_no_other_column_by_a_lambda(entry_points: SqlEntries) -> None:
    with pytest.raises(SourceSchemaInvalid, match="only value may be read here"):
        entry_points.transformer(
            "transform(array(1), x -> transform(array(2), y -> x + y + id))[0]"
        )
    inner = "transform(array('b'), x -> transform(array('c'), y -> concat(value, x, Y))[0])[0]"
    assert entry_points.transformer(inner) == ["abc"]


def test_a_short_text_that_spark_makes_a_large_tree_of_is_refused(spark: SparkSession) -> None:
    text = "id"
    for _ in range(20):
        text = f"case {text} when 1 then 2 when 2 then 3 when 3 then 1 end"
    with pytest.raises(SourceSchemaInvalid, match="more than 50,000 parts"):
        checked_expression(spark, text, PLACE)


def test_a_refusal_names_no_more_than_a_few_things(spark: SparkSession) -> None:
    text = "+".join(f"unknown{number}(id)" for number in range(100))
    with pytest.raises(SourceSchemaInvalid) as raised:
        checked_expression(spark, text, PLACE)
    assert str(raised.value.found).endswith("unknown4(), ...")
    assert len(str(raised.value)) < 2000


@pytest.fixture
def secret(spark: SparkSession) -> Iterator[None]:
    spark.range(5).createOrReplaceTempView("secret")
    spark.sql("DECLARE OR REPLACE VARIABLE variable STRING DEFAULT 'secret'")
    yield
    spark.sql("DROP TEMPORARY VARIABLE variable")
    spark.catalog.dropTempView("secret")


@pytest.mark.usefixtures("secret")
def test_a_statement_of_a_person_reads_tables_and_nothing_else(entry_points: SqlEntries) -> None:
    commands = ("drop table src", "create table t as select 1", "set a = 1", "add jar '/x.jar'")
    assert through(entry_points, "statement", RELATIONS["a table"]) is None
    assert [text for text in commands if refusal(entry_points.statement, text) is None] == []
    assert through(entry_points, "statement", RELATIONS["a variable"]) is not None


@pytest.mark.parametrize("entry_point", ENTRIES)
def test_no_entry_point_replaces_variables(spark, entry_points, entry_point):
    spark.conf.set("spark.sql.variable.substitute", "true")
    try:
        assert accepted(entry_points, entry_point, VARIABLES) == []
    finally:
        spark.conf.set("spark.sql.variable.substitute", "false")


@pytest.mark.parametrize("entry_point", QUERIES)
@pytest.mark.parametrize(
    "table",
    ["range(3)", "sql_keywords()", "collations()", "python_worker_logs()", "read_files('/etc')",
     "reflect('a', 'b')", "src lateral view reflect('a', 'b') t as y", "nosuch(table(src))"],
)  # fmt: skip
def test_no_query_reads_a_table_function_that_is_not_on_the_list(entry_points, entry_point, table):
    assert refusal(entry_points.of_queries[entry_point], f"select * from {table}") is not None


@pytest.fixture
def functions_of_users(spark: SparkSession) -> Iterator[None]:
    """One of Python, and one that goes by the name of Spark's."""
    spark.udf.register("mine", lambda value: f"{value}!")
    spark.udf.register("initcap", lambda value: "of a user")
    yield
    for name in ("mine", "initcap"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


@pytest.mark.usefixtures("functions_of_users")
@pytest.mark.parametrize("entry_point", ENTRIES)
def test_no_entry_point_calls_a_function_of_a_user(entry_points, entry_point):
    for text in ("mine(value)", "session.mine(value)", "somebodys.mine(value)"):
        refused = through(entry_points, entry_point, text)
        assert refused is not None
        assert "mine()" in str(refused)


@pytest.mark.usefixtures("functions_of_users")
def test_a_name_on_the_list_means_spark_s_function_or_is_refused(entry_points: SqlEntries) -> None:
    with suppress(SourceSchemaInvalid):
        assert entry_points.data_query("select initcap(value) from src") == ["A"]


def test_what_a_frame_comes_to_is_judged_whatever_its_text_was(spark, entry_points):
    source = entry_points.source
    made = {
        "Python": source.select(sf.udf(lambda value: value)("value")),
        "Java": source.select(sf.reflect(sf.lit("java.util.UUID"), sf.lit("randomUUID"))),
        "a table": source.crossJoin(spark.range(3)),
        "XSD": source.select(sf.from_xml("value", "a INT", {XSD: "http://127.0.0.1:1/x"})),
    }
    for frame in made.values():
        with pytest.raises(SourceSchemaInvalid):
            check_resolved(frame, [source], PLACE)
    check_resolved(source.select(sf.upper("value")), [source], PLACE)


@pytest.mark.usefixtures("functions_of_users")
def test_an_administrator_allows_functions_and_options_one_by_one(spark, entry_points):
    java = "reflect('java.lang.Math', 'abs', -1)"
    allow = Allowances(functions=("mine", "reflect"), options=(f"xml.{XSD}",))
    kept = spark.conf.get(ALLOW_SETTING)
    spark.conf.set(ALLOW_SETTING, allow.dump_json())
    try:
        assert entry_points.join_key("mine(value)") == ["a!"]
        assert entry_points.data_query(f"select {java} from src") == ["1"]
        checked_expression(spark, OPTIONS["schema by its path"], PLACE)
        assert through(entry_points, "transformer", JAVA["by another name"]) is not None
    finally:
        spark.conf.set(ALLOW_SETTING, kept)


@pytest.mark.parametrize(
    ("text", "found", "entry"),
    [
        ("reflect('a', 'b')", "reflect()", "allow.functions, or --allow functions=reflect"),
        (OPTIONS["of files"], "path", "allow.options, or --allow options=csv.path"),
    ],
)
def test_a_refusal_names_the_place_and_the_list(spark, text, found, entry):
    with pytest.raises(SourceSchemaInvalid) as raised:
        checked_expression(spark, text, PLACE)
    assert (raised.value.resource, raised.value.path) == ("Kind/name", "spec.field")
    assert raised.value.found == found
    assert entry in str(raised.value.hint)


OURS = {
    "engine/asof.py": "a column of ours: PySpark has no name for `IGNORE NULLS` of `lag`",
    "engine/windows.py": "columns of ours, and numbers",
    "engine/write.py": "numbers",
    "run/weaving/registration.py": "statements about tables of the output, of names we quote",
    "skipping/spark/builds/scan.py": "the hash of a path, and numbers",
}
"""Files that give Spark a text outside the gate, and what is in it."""
_PARSERS = frozenset({"sql", "expr", "selectExpr", "parseExpression", "parsePlan"})
_FILTERS = frozenset({"where", "filter", "agg", "having"})


def texts_for_spark(path: Path) -> list[int]:
    """Lines on which a file gives Spark a text to parse."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        texts = [a for a in node.args if isinstance(a, ast.JoinedStr | ast.Constant)]
        is_filter = node.func.attr in _FILTERS and bool(texts)
        # sqlglot's trees are written as text by `tree.sql("spark")`.
        is_writing = ast.unparse(node).endswith(".sql('spark')")
        if is_filter or (node.func.attr in _PARSERS and not is_writing):
            lines.append(node.lineno)
    return lines


def test_no_text_of_a_user_reaches_spark_beside_the_gate() -> None:
    reads_spark = [
        path
        for path in SOURCES.rglob("*.py")
        if "pyspark" in path.read_text() and path.parent.name != "spark"
    ]
    found = {str(p.relative_to(SOURCES)): texts_for_spark(p) for p in sorted(reads_spark)}
    assert {name for name, lines in found.items() if lines} == set(OURS)
