"""Failures of Spark become one error of ours, on a line, without a stack trace."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from snaploom.errors import (
    FolderNotWritable,
    MemoryUsedUp,
    SnaploomError,
    SnapshotMissing,
    SourceError,
    SourceNotReadable,
    SourceSchemaInvalid,
)
from snaploom.spark import failures
from snaploom.spark.failures import condense, translate


def failure(action):
    with pytest.raises(Exception, match=r".") as caught:
        action()
    return caught.value


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "condition", "expected", "text"),
    [
        ("select nosuch from range(1)", "UNRESOLVED_COLUMN", SourceSchemaInvalid, "`nosuch`"),
        ("select * from nosuch", "TABLE_OR_VIEW_NOT_FOUND", SourceSchemaInvalid, "`nosuch`"),
        ("select id id, id from from x y z", "PARSE_SYNTAX_ERROR", SourceSchemaInvalid, "'z'"),
        ("select id + array(1) from range(1)", "DATATYPE_MISMATCH", SourceSchemaInvalid, "array"),
        ("select cast(concat('x', id) as int) from range(1)", "CAST_INVALID_INPUT", SourceError,
         "'x0'"),
        ("select 1 / id from range(1)", "DIVIDE_BY_ZERO", SourceError, "zero"),
        ("select id, sum(id) from range(1)", "MISSING_GROUP_BY", SourceSchemaInvalid, "GROUP BY"),
        ("select a.id from range(1) a, range(1) b where id = 1", "AMBIGUOUS", SourceSchemaInvalid,
         "`id`"),
    ],
)  # fmt: skip
def test_a_faulty_query_or_value_is_named_in_one_line(spark, sql, condition, expected, text):
    error = failure(lambda: spark.sql(sql).collect())

    translated = translate(error, resource="DataSource/x", path="spec")

    assert type(translated) is expected
    assert f"[{condition}" in str(error)  # the case is the one that its name states
    assert text in translated.message
    assert not any(noise in str(translated) for noise in ("SQLSTATE", "\tat ", "JVM", "'Project"))
    assert translated.resource == "DataSource/x"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expression", "helps"),
    [
        ("9223372036854775807 * (id + 2)", "compute in a wider type"),
        ("cast(100 as tinyint) * cast(id + 100 as tinyint)", "compute in a wider type"),
        ("-cast(id - 2147483648 as int)", "compute in a wider type"),
        ("interval '1' day * (id + 106751991168)", "compute in a wider type"),
        ("sum(9223372036854775807 + 0 * id)", "widen what goes in"),
        ("cast(id + 300 as tinyint)", "cast to a wider type"),
        ("cast(id + 12345.5BD as decimal(4, 2))", "cast to a wider type"),
        ("to_date('2024-13-' || id)", "try_to_date"),
        ("to_number('x' || id, '999')", "try_to_number"),
        ("id % id", "try_mod"),
        ("interval '1' day / id", "nullif(b, 0)"),
        ("element_at(array(1), cast(id + 5 as int))", "try_element_at"),
        ("make_date(2024, 13, cast(id + 1 as int))", "CASE WHEN"),
    ],
)
def test_a_value_that_does_not_fit_names_the_form_of_the_expression_that_helps(
    spark, expression, helps
):
    error = translate(failure(spark.sql(f"select {expression} from range(2)").collect))

    assert type(error) is SourceError
    assert helps in str(error.hint)
    assert error.expected
    assert "spark.sql.ansi.enabled" not in str(error)


@pytest.mark.spark
def test_an_overflow_names_the_expression_that_overflows(spark):
    sql = "select id, 9223372036854775807 * (id + 2) as k from range(2)"
    error = translate(failure(spark.sql(sql).collect))
    assert str(error.found).endswith("in 9223372036854775807 * (id + 2)")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("form", "declared", "found"),
    [
        ("parquet", "name date", ""),
        ("parquet", "name struct<x: int>", "name (STRING)"),
        ("orc", "amount date", "double"),
        ("org.apache.spark.sql.avro.AvroFileFormat", "name date", 'avroType = "string"'),
    ],
)
def test_a_column_of_another_type_than_declared_is_a_schema_that_is_not_valid(
    spark, tmp_path, form, declared, found
):
    place = str(tmp_path / "written")
    spark.createDataFrame([("Ada", 7.5)], ["name", "amount"]).write.format(form).save(place)
    frame = spark.read.format(form).schema(declared).load(place)

    error = translate(failure(frame.collect))

    assert isinstance(error, SourceSchemaInvalid)
    assert found in str(error.found)
    assert "part-" in str(error.found)
    assert "correct schemaFields" in str(error.hint)


@pytest.mark.spark
def test_a_missing_path_is_named(spark, tmp_path):
    error = translate(failure(lambda: spark.read.parquet(f"{tmp_path}/a b")))

    assert isinstance(error, SourceNotReadable)
    assert "a b" in str(error.found)


@pytest.mark.spark
def test_a_file_that_vanishes_while_it_is_read_is_named(spark, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "gone.parquet")
    frame = spark.read.parquet(f"{tmp_path}/*")
    (tmp_path / "gone.parquet").unlink()

    error = translate(failure(lambda: frame.write.parquet(f"{tmp_path}/out")))

    assert isinstance(error, SourceNotReadable)
    assert "gone.parquet" in str(error)


@pytest.mark.spark
def test_a_file_of_another_type_than_declared_is_named(spark, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "long.parquet")
    frame = spark.read.schema("a string").parquet(str(tmp_path))

    error = translate(failure(lambda: frame.write.parquet(f"{tmp_path}/out")))

    assert isinstance(error, SourceSchemaInvalid)
    assert "INT64" in error.message
    assert "long.parquet" in str(error.found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("java.io.IOException: No space left on device", FolderNotWritable),
        ("java.io.FileNotFoundException: /x (Read-only file system)", FolderNotWritable),
        ("[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group x", SnaploomError),
        ("something new", SnaploomError),
    ],
)
def test_known_texts_have_their_error_and_unknown_ones_stay_failures(text, expected):
    error = translate(RuntimeError(text))

    assert isinstance(error, expected)
    assert error.message


MESSAGES = (
    "ModuleNotFoundError: No module named 'snaploom'",
    "No space left on device",
    "PSQLException: gone",
    "No FileSystem for scheme",
    "Status Code: 403",
    "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] x",
    "Illegal Parquet type: FIXED_LEN_BYTE_ARRAY (UUID)",
    "Class org.apache.hadoop.io.compress.BrotliCodec was not found",
    "Cannot convert Avro field 'a' to SQL field 'a' (avroType = \"int\")",
    "ORC does not support type conversion from file type int (1) to reader type string (2)",
    "ClassCastException: optional int32 a is not a group",
    "CSV header does not conform to the schema\n Header: a\n Schema: b",
    "Number of column in CSV header is wrong\n Header length: 1, schema size: 2",
    "position is negative",
    "Cannot parse the value 'x' of the JSON token type VALUE_STRING to target type INT",
    "[MALFORMED_RECORD_IN_PARSING] x\ny",
    "Could not read file: a.xlsx. there is no sheet b; its sheets are c",
    "Could not read file: a.xlsx. cell B2 has the error #N/A",
    "Could not read file",
    "[MALFORMED_CHARACTER_CODING] x",
    "FileNotFoundException",
    "[DATA_SOURCE_NOT_FOUND] x",
    "[COLUMN_ALREADY_EXISTS] x",
    "[CANNOT_MERGE_SCHEMAS] x",
    "[AMBIGUOUS_REFERENCE] x",
    "ArithmeticException: long overflow",
    "[NUMERIC_VALUE_OUT_OF_RANGE] x",
    "[CAST_INVALID_INPUT] x",
    "[DIVIDE_BY_ZERO] x",
    "[INVALID_ARRAY_INDEX] x",
    "[DATETIME_OVERFLOW] x",
    "[PARSE_SYNTAX_ERROR] x",
    "InterruptedException",
    "OutOfMemoryError",
)
"""A message for each rule, in their order."""


@pytest.mark.parametrize("before", ["", "org.apache.spark.api.python.PythonException: "])
@pytest.mark.parametrize(
    ("rule", "text"), list(zip(failures._RULES, MESSAGES, strict=True)), ids=range(len(MESSAGES))
)
def test_source_lines_of_a_traceback_are_no_message(rule, text, before):
    frames = "".join(
        f'  File "/x/{number}/FileNotFoundException.py", line 3, in f\n    raise Oops({line})\n'
        for number, line in enumerate(text.splitlines())
    )
    trace = f"{before}Traceback (most recent call last):\n{frames}"

    assert type(translate(RuntimeError(f"{trace}Oops: no rule knows it"))) is SnaploomError
    known = translate(RuntimeError(f"{trace}Oops: {text}"))
    assert (type(known), known.hint) == (rule.error, rule.hint)


def test_memory_that_is_used_up_is_named_with_the_setting():
    error = translate(RuntimeError("java.lang.OutOfMemoryError: Java heap space"))
    assert isinstance(error, MemoryUsedUp)
    assert "run.spark.driver.memory" in error.hint


def test_an_error_of_ours_stays_what_it_is():
    error = SnapshotMissing("none")

    assert translate(error) is error


FAILURE = "org.apache.iceberg.exceptions.ServiceFailureException: Server error:"
"""What Iceberg puts before the answer of a catalog."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[AB_C.D] Something is wrong. SQLSTATE: 42000; line 1 pos 2;\n'Project",
            "Something is wrong",
        ),
        ("java.lang.IllegalStateException: odd.", "odd"),
        ("", "Spark failed without a message"),
        (f'{FAILURE} null: {{\n"url":"/v1",\n"message":"a: b"\n}}', "Server error: a: b"),
        (
            f'{FAILURE} null: {{"error": {{"type": "T", "message": "no\\nroom", "stack": ["x"]}}}}',
            "Server error: T: no",
        ),
        (f"{FAILURE} null: <html>\n<title>It&#39;s shut</title>\n{{x}}", "Server error: It's shut"),
        (f'{FAILURE} null: {{\n"status": 500\n}}', 'Server error: { "status": 500 }'),
        (f'{FAILURE} T: not {{"type": "int"}}', 'Server error: T: not {"type": "int"}'),
        (f"{FAILURE} T: no {{room}}\n", "Server error: T: no {room}"),
        (f"{FAILURE} T: " + '{"a":' * 100_000, ("Server error: T: " + '{"a":' * 200)[:599] + "…"),
    ],
)
def test_a_message_is_cut_to_its_sentence(text, expected):
    assert condense(text) == expected


def test_a_value_of_a_database_is_named_by_its_place():
    place = "row 2 of sales.amount has 9007199254740993, which is no number that a double holds"
    error = translate(RuntimeError(f"Could not read file: file:/a/b.sqlite. {place}"))
    assert error.found == f"{place} in file:/a/b.sqlite"
    assert "schemaFields" in error.hint


@pytest.mark.spark
def test_spark_does_not_print_a_stack_trace_of_its_own(spark, capfd):
    failure(lambda: spark.sql("select nosuch"))

    printed = capfd.readouterr()
    assert "nosuch" not in printed.out + printed.err


def test_a_long_message_is_cut_short():
    assert len(condense("x" * 5000)) == 600


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "no client for this scheme"),
        ('No FileSystem for scheme "gs"', "no client for this scheme"),
        ("software.amazon.s3.analyticsaccelerator.request.ObjectClient", "no client"),
        ("x: Forbidden (Service: S3, Status Code: 403, Request ID: 1)", "refuses Spark's"),
    ],
)
def test_store_that_spark_cannot_use_is_an_error(found, message):
    error = translate(RuntimeError(found))
    assert isinstance(error, SourceNotReadable)
    assert message in error.message
    assert error.found == found


class Dying:
    """An exception in a JVM that ends while it is asked."""

    _target_id = "o1"

    def __init__(self, failure: Exception, *words: str) -> None:
        self._failure, self._words = failure, list(words)

    def toString(self) -> str:  # noqa: N802 - as in Java
        if self._words:
            return self._words.pop(0)
        raise self._failure

    def getCause(self) -> "Dying":  # noqa: N802 - as in Java
        return self


@pytest.mark.parametrize("failure", [ConnectionRefusedError(111, "refused"), Py4JNetworkError()])
def test_a_jvm_that_ends_while_it_reports_is_a_failure(failure):
    silent = translate(Py4JJavaError("An error", Dying(failure)))
    assert silent.message == "Spark failed without a message"
    begun = translate(Py4JJavaError("An error", Dying(failure, "java.lang.X: it ends")))
    assert "it ends" in begun.message
