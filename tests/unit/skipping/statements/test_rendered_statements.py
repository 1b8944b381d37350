"""Every statement can be written and read again."""

import string

from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.skippingindex import Index
from snaploom.skipping.statements.columns import name_text
from snaploom.skipping.statements.parser import parse
from snaploom.skipping.statements.syntax import (
    AlterIndex,
    AnalyzeIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    PathName,
    RecoverIndex,
    RefreshIndex,
    ShowIndexes,
    Statement,
    TableName,
    VacuumIndex,
    render,
)

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
plain = st.sampled_from([DescribeIndex, DropIndex, VacuumIndex, AnalyzeIndex, RecoverIndex])
statements = st.one_of(
    creations,
    st.builds(lambda kind, subject: kind(subject), plain, subjects),
    st.builds(RefreshIndex, subjects, st.sampled_from(["", "FULL", "INCREMENTAL", "AUTO"])),
    st.builds(AlterIndex, subjects, st.just((("enabled", "false"), ("refresh_mode", "FULL")))),
    st.builds(ShowIndexes, st.lists(names, min_size=1, max_size=2).map(tuple), st.booleans()),
)


@given(statements)
def test_what_is_rendered_parses_to_the_same_statement(statement: Statement) -> None:
    assert parse(render(statement)) == statement


@given(st.text(max_size=40))
def test_no_text_at_all_breaks_the_recognition(text: str) -> None:
    assert parse(f"SELECT {text}") is None
