"""Applicators set the declared metadata on exactly the declared fields."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from snaploom.models.fieldtransformer import MetadataApplicator
from snaploom.sources.transformers import applied
from snaploom.spark.types import without_metadata

INNER = spark.StructType([spark.StructField("id", spark.LongType(), True, {"old": "1", "k": "0"})])
SCHEMA = spark.StructType(
    [
        spark.StructField("id", spark.LongType(), False, {"old": "1", "k": "0"}),
        spark.StructField("address", INNER),
        spark.StructField("lines", spark.ArrayType(spark.ArrayType(INNER, False))),
        spark.StructField("by name", spark.MapType(INNER, INNER), True, {"n": 5}),
    ]
)


def applicator(*selectors: dict[str, str], **spec: Any) -> MetadataApplicator:
    return MetadataApplicator.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "MetadataApplicator",
            "metadata": {"name": "m"},
            "spec": {"fieldSelectors": list(selectors), "metadata": {"k": "v"}, **spec},
        }
    )


def including(regex: str) -> dict[str, str]:
    return {"coordinateIncludeRegex": regex}


def metadata(schema: spark.StructType) -> dict[str, Any]:
    """By coordinate; another way through a schema than the code's: its JSON."""
    found: dict[str, Any] = {}

    def walk(kind: Any, at: tuple[str, ...]) -> None:
        if not isinstance(kind, dict):
            return
        for field in kind.get("fields", ()):
            here = (*at, field["name"])
            found[":".join(here)] = field["metadata"]
            walk(field["type"], here)
        walk(kind.get("elementType"), at)
        walk(kind.get("keyType"), (*at, "key"))
        walk(kind.get("valueType"), (*at, "value"))

    walk(json.loads(schema.json()), ())
    return found


EVERYWHERE = ["id", "address", "address:id", "lines", "lines:id", "by name", "by name:key:id"]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ([including("^id$")], ["id"]),
        ([including("[es]:id$|^id")], ["id", "address:id", "lines:id", "by name:value:id"]),
        ([including("value:")], ["by name:value:id"]),
        ([including("^lines$"), including("s:id")], ["lines", "lines:id", "address:id"]),
        ([{"coordinateExcludeRegex": "value"}], EVERYWHERE),
        ([{**including("id"), "coordinateExcludeRegex": ":"}], ["id"]),
        ([{**including("id"), "coordinateExcludeRegex": "id"}, including("s$")],
         ["address", "lines"]),
        ([including("ID")], []),
    ],
)  # fmt: skip
def test_selectors_are_united_and_exclusion_wins_in_each(selectors, expected):
    found = metadata(applied(SCHEMA, [applicator(*selectors)]))
    assert sorted(at for at, keys in found.items() if keys.get("k") == "v") == sorted(expected)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("IGNORE", {"old": "1", "k": "0", "new": "x"}),
        ("MERGE", {"old": "1", "k": "v", "new": "x"}),
        ("REPLACE", {"k": "v", "new": "x"}),
    ],
)
def test_each_behaviour_treats_what_is_there_in_its_way(behaviour, expected):
    given_metadata = {"k": "v", "new": "x"}
    one = applicator(including("^id$"), behaviour=behaviour, metadata=given_metadata)
    found = applied(SCHEMA, [one])
    assert found["id"].metadata == expected
    assert found["address"] == SCHEMA["address"]
    assert without_metadata(found) == without_metadata(SCHEMA)


regexes = st.sampled_from(["id", "^id", "key", "e:i", "$", "s", ":", "value:id$", "by n"])
applicators = st.builds(
    lambda pairs, behaviour, keys: applicator(
        *({**including(i), "coordinateExcludeRegex": e} for i, e in pairs),
        behaviour=behaviour,
        metadata=keys,
    ),
    st.lists(st.tuples(regexes, regexes), min_size=1, max_size=2),
    st.sampled_from(["IGNORE", "MERGE", "REPLACE"]),
    st.dictionaries(st.sampled_from(["k", "old", "x"]), st.sampled_from(["a", "b"])),
)


@given(st.lists(applicators, max_size=4))
def test_applicators_in_order_give_what_a_plain_reading_gives(given_applicators):
    expected = metadata(SCHEMA)
    for one in given_applicators:
        new = dict(one.spec.metadata)
        for at, old in expected.items():
            chosen = any(
                re.search(s.coordinate_include_regex or "", at)
                and not re.search(s.coordinate_exclude_regex or "(?!)", at)
                for s in one.spec.field_selectors
            )
            ways = {"IGNORE": {**new, **old}, "MERGE": {**old, **new}, "REPLACE": new}
            expected[at] = ways[one.spec.behaviour.value] if chosen else old
    assert metadata(applied(SCHEMA, given_applicators)) == expected
