"""Shapes of conditions, one by one; test_catalyst_properties.py compares with an oracle."""

from decimal import Decimal

import pytest

from snaploom.skipping.core.definition import Term
from snaploom.skipping.core.predicates import normal_form, predicate_text
from snaploom.skipping.spark.optimizer.translation.catalyst import predicate
from snaploom.skipping.spark.relations.expressions import Columns, columns_of

SCHEMA = {
    "i": "integer", "l": "long", "s": "short", "b": "byte", "f": "float", "d": "double",
    "dec": "decimal(10,2)", "dt": "date", "ts": "timestamp", "ntz": "timestamp_ntz",
    "c": "string", "bin": "binary", "flag": "boolean",
}  # fmt: skip


def field(name: str, data_type: object, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": list(fields)}


def relation(*more: dict[str, object], **options: bool) -> Columns:
    inner = struct(field("x", "long"), field("y", struct(field("z", "string"))))
    fields = [field(name, data_type) for name, data_type in SCHEMA.items()]
    return columns_of(struct(*fields, field("st", inner), *more), struct(), **options)


def col(name: str) -> list[object]:
    data_type = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
    return ["col", name, data_type.get(SCHEMA[name], SCHEMA[name])]


def lit(value: object, data_type: str) -> list[object]:
    return ["lit", value, data_type]


def call(kind: str, /, *children: object, **arguments: object) -> list[object]:
    return [kind, arguments, *children]


def text(*filters: object, columns: Columns | None = None) -> str:
    return predicate_text(normal_form(predicate(filters, columns or relation())))


I5 = lit(5, "int")
FIVE = call("EqualTo", col("i"), I5)
TEXT = call("StartsWith", col("c"), lit("ab", "string"))
ABOVE = call("GreaterThan", col("i"), lit(6, "int"))
NAN = lit("NaN", "double")
YEAR = call("Year", call("Cast", col("ts"), dataType="date"))

SHAPES = {
    "equal": (FIVE, "i = 5"),
    "turned": (call("LessThan", I5, col("i")), "i > 5"),
    "turned or equal": (call("GreaterThanOrEqual", I5, col("i")), "i <= 5"),
    "not equal": (call("Not", FIVE), "i <> 5"),
    "not less": (call("Not", call("LessThan", col("i"), I5)), "i >= 5"),
    "null safe": (call("EqualNullSafe", col("i"), I5), "i = 5"),
    "not null safe": (call("Not", call("EqualNullSafe", I5, col("i"))), "i IS NULL OR i <> 5"),
    "null safe null": (call("EqualNullSafe", col("i"), lit(None, "int")), "i IS NULL"),
    "compared with null": (call("EqualTo", col("i"), lit(None, "int")), "FALSE"),
    "not compared with null": (call("Not", call("EqualTo", col("i"), lit(None, "int"))), "FALSE"),
    "decimal": (call("LessThan", col("dec"), lit("5.10", "decimal(10,2)")), "dec < 5.10"),
    "float": (call("LessThan", col("f"), lit("1.5", "float")), "f < 1.5"),
    "infinity": (call("LessThan", col("d"), lit("-Infinity", "double")), "d < -inf"),
    "date": (call("GreaterThan", col("dt"), lit(19723, "date")), "dt > DATE '2024-01-01'"),
    "binary": (call("EqualTo", col("bin"), lit({"hex": "00ff"}, "binary")), "bin = X'00ff'"),
    "nan": (call("IsNaN", col("d")), "d = nan"),
    "not nan": (call("Not", call("IsNaN", col("d"))), "d IS NULL OR d <> nan"),
    "in": (call("In", col("i"), I5, lit(6, "int")), "i IN (5, 6)"),
    "not in": (call("Not", call("In", col("i"), I5, lit(6, "int"))), "i NOT IN (5, 6)"),
    "in with null": (call("In", col("i"), I5, lit(None, "int")), "i = 5"),
    "not in with null": (call("Not", call("In", col("i"), I5, lit(None, "int"))), "FALSE"),
    "in only null": (call("In", col("i"), lit(None, "int")), "FALSE"),
    "inset": (call("InSet", col("dt"), type="date", values=[0, 1]),
              "dt IN (DATE '1970-01-01', DATE '1970-01-02')"),
    "not inset with null": (call("Not", call("InSet", col("i"), type="int", values=[1, None])),
                            "FALSE"),
    "boolean": (col("flag"), "flag = true"),
    "not boolean": (call("Not", col("flag")), "flag = false"),
    "boolean is true": (call("EqualNullSafe", col("flag"), lit(True, "boolean")), "flag = true"),
    "condition is false": (call("EqualTo", FIVE, lit(False, "boolean")), "i <> 5"),
    "true": (lit(True, "boolean"), "TRUE"),
    "null": (lit(None, "boolean"), "FALSE"),
    "not null": (call("Not", lit(None, "boolean")), "FALSE"),
    "is null": (call("IsNull", col("i")), "i IS NULL"),
    "or": (call("Or", FIVE, TEXT), "i = 5 OR c LIKE 'ab%'"),
    "not and": (call("Not", call("And", FIVE, TEXT)), "i <> 5 OR c NOT LIKE 'ab%'"),
    "not or": (call("Not", call("Or", FIVE, TEXT)), "i <> 5 AND c NOT LIKE 'ab%'"),
    "ends with": (call("EndsWith", col("c"), lit("x", "string")), "c LIKE '%x'"),
    "contains": (call("Contains", col("c"), lit("x", "string")), "c LIKE '%x%'"),
    "nested": (call("EqualTo", call("GetStructField", col_st := ["col", "st", "struct<x:bigint>"],
                                    name="x"), lit(5, "bigint")), "st.x = 5"),
    "deeper": (call("IsNotNull", call("GetStructField", call("GetStructField", col_st, name="y"),
                                      name="z")), "st.y.z IS NOT NULL"),
    "if": (call("If", FIVE, col("flag"), lit(False, "boolean")), "i = 5 AND flag = true"),
    "case without else": (call("CaseWhen", FIVE, lit(True, "boolean")), "i = 5"),
    "coalesce": (call("Coalesce", FIVE, lit(False, "boolean")), "i = 5"),
    "coalesce true": (call("Coalesce", FIVE, lit(True, "boolean")),
                      "i = 5 OR (i IS NULL AND (i = 5) IS NULL)"),
    "case of values": (call("LessThan", call("CaseWhen", ABOVE, col("i"), I5), lit(0, "int")),
                       "i > 6 AND i < 0 AND case_when((i > 6), i, 5) < 0"),
    "nullif": (call("EqualTo", call("If", FIVE, lit(None, "int"), col("i")), lit(7, "int")),
               "(i <> 5 OR (i IS NULL AND (i = 5) IS NULL)) AND i = 7"
               " AND if((i = 5), NULL, i) = 7"),
    "if within": (call("LessThan", call("Add", call("If", ABOVE, col("i"), lit(9, "int")),
                                        lit(1, "int"), evalMode="ANSI"), I5),
                  "i > 6 AND i <= 3 AND (if((i > 6), i, 9) + 1) < 5"),
    "greatest of less": (call("LessThan", call("Greatest", col("i"), lit(3, "int")), I5),
                         "(i IS NULL OR i <= 4) AND greatest(i, 3) < 5"),
    "greatest of more": (call("LessThan", call("Greatest", col("i"), lit(8, "int")), I5), "FALSE"),
    "conditions": (call("EqualTo", FIVE, ABOVE), "(i = 5 AND i > 6) OR (i <> 5 AND i <= 6)"),
    "narrow": (call("EqualTo", call("Cast", col("i"), dataType="tinyint", evalMode="LEGACY"),
                    lit(5, "tinyint")), "pmod(i, 256) = 5 AND cast(i as tinyint) = 5"),
    "dropna": (call("AtLeastNNonNulls", col("i"), col("c"), n=2),
               "i IS NOT NULL AND c IS NOT NULL"),
}  # fmt: skip


@pytest.mark.parametrize(("node", "expected"), SHAPES.values(), ids=SHAPES)
def test_shape_becomes_the_expected_predicate(node: list[object], expected: str) -> None:
    assert text(node) == expected


PATTERNS = {
    "ab": "c = 'ab'",
    "ab%": "c LIKE 'ab%'",
    "%ab": "c IS NOT NULL AND c LIKE '%ab'",
    "%ab%": "c IS NOT NULL AND c LIKE '%ab%'",
    "a_b%": "c IS NOT NULL AND c LIKE 'a%' AND c LIKE '%b%'",
    "a%b%c": "c IS NOT NULL AND c LIKE 'a%' AND c LIKE '%b%' AND c LIKE '%c'",
    "a_": "c IS NOT NULL AND c LIKE 'a%'",
    "%": "c IS NOT NULL",
    "": "c = ''",
    "a/%%": "c LIKE 'a%%'",
    "//": "c = '/'",
}


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS.items())
def test_like_needs_its_literal_pieces(pattern: str, expected: str) -> None:
    node = call("Like", col("c"), lit(pattern, "string"), escapeChar="/")
    assert text(node) == expected


@pytest.mark.parametrize("pattern", ["a/b", "a/", "\ufffd%"])
def test_like_that_is_not_understood_keeps(pattern: str) -> None:
    node = call("Like", col("c"), lit(pattern, "string"), escapeChar="/")
    assert "LIKE" in reasons_of(node)[0][0]


@pytest.mark.parametrize("pattern", ["%ab", "a%b", "a_"])
def test_like_negated_keeps_unless_it_is_a_prefix(pattern: str) -> None:
    node = call("Not", call("Like", col("c"), lit(pattern, "string"), escapeChar="\\"))
    assert len(reasons_of(node)) == 1


def test_like_any_is_an_or_and_not_like_any_too() -> None:
    patterns = ["a%", "b%"]
    assert text(call("LikeAny", col("c"), patterns=patterns)) == "c LIKE 'a%' OR c LIKE 'b%'"
    negated = call("NotLikeAny", col("c"), patterns=patterns)
    assert text(negated) == "c NOT LIKE 'a%' OR c NOT LIKE 'b%'"
    assert text(call("Not", negated)) == "c LIKE 'a%' AND c LIKE 'b%'"


def reasons_of(*filters: object, columns: Columns | None = None) -> list[tuple[str, str]]:
    found = normal_form(predicate(filters, columns or relation()))
    parts = getattr(found, "parts", (found,))
    return [(part.text, part.reason) for part in parts if hasattr(part, "reason")]


UNKNOWN = {
    "other type": (call("EqualTo", col("i"), lit(5, "bigint")), "i is int in the files"),
    "no such column": (call("EqualTo", ["col", "q", "int"], I5), "not a column"),
    "two columns": (call("EqualTo", col("i"), ["col", "i", "int"]), "columns with each other"),
    "subquery": (call("EqualTo", col("i"), ["?", "scalar"]), "known only when the query runs"),
    "opaque": (["?", "isin(...)"], "known only when the query runs"),
    "opaque inside": (call("EqualTo", call("Abs", ["?", "rand()"]), I5), "known only when"),
    "struct literal": (call("EqualTo", ["col", "st", "struct<x:bigint>"],
                            lit({"fields": [1]}, "struct<x:bigint>")), "no index keeps values"),
    "interval": (call("EqualTo", col("i"), lit(5, "interval day")), "no index keeps values"),
    "collated": (call("EqualTo", ["col", "c", "string collate UTF8_LCASE"],
                      lit("a", "string collate UTF8_LCASE")), "no index keeps values"),
    "nonsense": ({"a": 1}, "known only when"),
}  # fmt: skip


@pytest.mark.parametrize(("node", "reason"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_understood_keeps_and_gives_a_reason(node: list[object], reason: str) -> None:
    assert reason in reasons_of(node)[0][1]


HIDDEN = {
    "char": field("k", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)"),
    "char inside": field("k", "string", __CHAR_VARCHAR_TYPE_STRING="array<char(5)>"),
    "collation": field("k", "string", __COLLATIONS={"k": "spark.UTF8_LCASE"}),
    "default": field("k", "string", EXISTS_DEFAULT="'x'", CURRENT_DEFAULT="'x'"),
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_column_with_a_meaning_of_its_own_keeps(hidden: dict[str, object]) -> None:
    columns = relation(hidden)
    bare = call("EqualTo", ["col", "k", "string"], lit("a", "string"))
    inside = call("EqualTo", call("Lower", ["col", "k", "string"]), lit("a", "string"))
    assert len(reasons_of(bare, columns=columns)) == len(reasons_of(inside, columns=columns)) == 1


def test_expression_is_a_term_of_its_own_with_the_schemas_spelling() -> None:
    lower = call("Lower", ["col", "C", "string"])
    found = normal_form(predicate([call("EqualTo", lower, lit("a", "string"))], relation()))
    assert found.term == Term('[{"expression":2},["Lower",{},["col","c","string"]]]', "string")
    assert found.term.label == "lower(c)"


def test_names_differ_by_case_where_the_session_distinguishes_it() -> None:
    node = call("EqualTo", ["col", "I", "int"], I5)
    assert text(node) == "i = 5"
    assert reasons_of(node, columns=relation(is_case_sensitive=True))
    doubled = relation(field("I", "integer"))
    assert reasons_of(node, columns=doubled)[0][1] == "I is not a column of the files"


IMPLIED = {
    "year of a date": (call("EqualTo", call("Year", col("dt")), lit(2024, "int")),
                       ["dt >= DATE '2024-01-01'", "dt <= DATE '2024-12-31'"]),
    "year of a timestamp": (call("LessThan", YEAR, lit(2024, "int")),
                            ["ts <= TIMESTAMP '2024-01-01 23:59:59.999999Z'"]),
    "decimal as double": (call("GreaterThan", call("Cast", col("dec"), dataType="double"),
                               lit("5.1", "double")), ["dec >= 5.10"]),
    "bigint as double": (call("EqualTo", call("Cast", col("l"), dataType="double"),
                              lit("9007199254740993", "double")),
                         ["l >= 9007199254740990", "l <= 9007199254740996"]),
    "beyond the type": (call("LessThan", call("Cast", col("l"), dataType="double"),
                             lit("1e30", "double")), []),
    "substring": (call("EqualTo", call("Substring", col("c"), lit(1, "int"), lit(3, "int")),
                       lit("abc", "string")), ["c LIKE 'abc%'"]),
    "trunc": (call("EqualTo", call("TruncDate", col("dt"), lit("MM", "string")),
                   lit(19723, "date")), ["dt >= DATE '2024-01-01'", "dt <= DATE '2024-02-01'"]),
    "coalesce": (call("EqualTo", call("Coalesce", col("i"), lit(0, "int")), I5), ["i = 5"]),
}  # fmt: skip


@pytest.mark.parametrize(("node", "expected"), IMPLIED.values(), ids=IMPLIED)
def test_expression_constrains_its_column(node: object, expected: list[str]) -> None:
    parts = text(node).split(" AND ")
    assert parts[:-1] == expected


def test_expression_negated_leaves_out_the_values_of_its_column() -> None:
    node = call("Not", call("EqualTo", call("Year", col("dt")), lit(2024, "int")))
    around = "(dt <= DATE '2023-12-31' OR dt >= DATE '2025-01-01')"
    assert text(node) == f"{around} AND year(dt) <> 2024"


def test_in_over_an_expression_is_a_choice_of_ranges() -> None:
    node = call("In", call("Year", col("dt")), lit(2023, "int"), lit(2024, "int"))
    assert "DATE '2023-01-01'" in text(node)
    assert " OR " in text(node)


def test_thousands_of_alternatives_do_not_overflow_the_stack() -> None:
    node = FIVE
    for value in range(3000):
        node = call("Or", node, call("EqualTo", col("i"), lit(value, "int")))
    found = predicate([node], relation())
    assert found is not None


def test_negative_zero_is_zero_and_a_float_has_32_bits() -> None:
    found = predicate(
        [
            call("EqualTo", col("d"), lit("-0.0", "double")),
            call("EqualTo", col("f"), lit("1.1", "float")),
        ],
        relation(),
    )
    values = [part.value for part in normal_form(found).parts]
    assert [str(value) for value in values] == ["0.0", "1.100000023841858"]


def test_decimal_keeps_its_digits() -> None:
    digits = "12345678901234567890.123456789012345678"
    columns = relation(field("big", "decimal(38,18)"))
    node = call("EqualTo", ["col", "big", "decimal(38,18)"], lit(digits, "decimal(38,18)"))
    assert normal_form(predicate([node], columns)).value == Decimal(digits)


@pytest.mark.parametrize(
    "around",
    [
        lambda node: call("EqualTo", node, FIVE),
        lambda node: call("EqualNullSafe", ABOVE, call("Not", node)),
        lambda node: call("If", node, FIVE, ABOVE),
        lambda node: call("CaseWhen", node, ABOVE, FIVE, ABOVE, FIVE),
        lambda node: call("Coalesce", node, call("Not", FIVE)),
    ],
)
def test_translation_of_nested_conditions_does_not_explode(around):
    node = FIVE
    for _ in range(25):
        node = around(node)
    assert len(text(node)) < 300_000


@pytest.mark.parametrize("kind", ["Greatest", "Least", "Coalesce"])
def test_translation_of_nested_values_does_not_explode(kind: str) -> None:
    node: object = col("i")
    for _ in range(18):
        node = call(kind, node, I5, col("i"))
    assert len(text(call("GreaterThan", node, lit(9, "int")))) < 10_000
