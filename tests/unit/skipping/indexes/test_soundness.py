"""No index loses a row: every type, on generated files and conditions, against the oracle."""

import pytest
from hypothesis import HealthCheck, given, settings
from support.runner.quick import examples
from support.skipping.skippingcases import NUMBERS, TEXTS, TYPES, Case, cases, loses_rows

SETTINGS = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)

ALL_INDEXES = [
    ("MIN_MAX", TYPES, ()),
    ("VALUE_SET", TYPES, (("limit", "3"),)),
    ("BLOOM_FILTER", TYPES, (("fpp", "0.01"),)),
    ("BLOOM_FILTER", TYPES, (("fpp", "0.5"), ("ndv", "2"))),
    ("BLOOM_FILTER", ("int", "bigint", *TEXTS), (("items", "VALUES"),)),
    ("PARTITION", TYPES, ()),
    ("PREFIX", TEXTS, (("length", "2"), ("limit", "3"))),
    ("GEO_BOX", NUMBERS, ()),
    ("TOKENS", TEXTS, (("n", "2"),)),
]


@pytest.mark.parametrize(("type_name", "data_types", "parameters"), ALL_INDEXES)
def test_no_index_loses_a_row(type_name, data_types, parameters):
    @SETTINGS
    @given(cases(type_name, data_types, parameters))
    def holds(case: Case):
        assert not loses_rows(case)

    holds()
