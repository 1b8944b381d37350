"""Builders that saw parts of a file, merged, know what one builder of the whole file knows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.skippingcases import NUMBERS, TEXTS, TYPES, built, fed, values

from snaploom.skipping.core.definition import IndexDefinition, column_term
from snaploom.skipping.indexes.base import index_type

INDEXES = [
    ("MIN_MAX", TYPES, ()),
    ("VALUE_SET", TYPES, (("limit", "2"),)),
    ("BLOOM_FILTER", TYPES, (("ndv", "3"),)),
    ("PARTITION", TYPES, ()),
    ("PREFIX", TEXTS, (("length", "2"), ("limit", "2"))),
    ("GEO_BOX", NUMBERS, ()),
    ("TOKENS", TEXTS, ()),
]


@pytest.mark.parametrize(("type_name", "data_types", "parameters"), INDEXES)
def test_merged_partials_are_the_single_pass(type_name, data_types, parameters):
    @settings(max_examples=examples(60), deadline=None, database=None)
    @given(st.data())
    def holds(data):
        data_type = data.draw(st.sampled_from(data_types))
        index = _index(type_name, data_type, parameters)
        cell = st.none() | values(data_type)
        rows = data.draw(st.lists(st.tuples(cell, cell), max_size=8))
        cut = data.draw(st.integers(0, len(rows)))
        merged = index_type(type_name).builder(index)
        for part in (rows[:cut], rows[cut:], []):
            builder = index_type(type_name).builder(index)
            builder.add(fed(index, _columns(index, part)))
            merged.merge(builder.partial())
        expected = built(index, _columns(index, rows))
        assert _comparable(merged.finish()) == _comparable(expected)

    holds()


def _index(type_name, data_type, parameters):
    terms = (column_term(("a",), data_type), column_term(("b",), data_type))
    return IndexDefinition("i1", type_name, terms[: 1 + (type_name == "GEO_BOX")], parameters)


def _columns(index, rows):
    return [[row[at] for row in rows] for at in range(len(index.terms))]


def _comparable(row):
    return {
        name: sorted(map(repr, value)) if isinstance(value, list) else repr(value)
        for name, value in row.items()
    }
