"""Names of columns, files, tables and folders."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples
from support.skipping.faketarget import FakeTarget

from snaploom.errors import IndexNotFound, IndexNotPossible
from snaploom.models.skippingindex import Index
from snaploom.plugins.xskipper.names import (
    LocationKind,
    bare_path,
    below_base,
    check_names,
    column_name,
    escape,
    names_table,
    possible_names,
    resolve,
    split_object_name,
    table_identifier,
)
from snaploom.skipping.lifecycle.alteration import Alteration, plan_alteration
from snaploom.skipping.lifecycle.declaration import Declaration, define


@pytest.mark.parametrize(
    ("columns", "index", "version", "name"),
    [
        (["a", "b"], "someindex", 0, "a:b_someindex"),
        (["a", "b"], "someindex", 1, "a_b_someindex"),
        (["lat#_.$_new", "$_lng.#"], "someindex", 2, "lat##_$#$$_new_$_lng$#$##_someindex_14-10"),
        (["my.col"], "minmax", 4, "my$#$col_minmax_8"),
        (["my#col"], "minmax", 3, "my##col_minmax_7"),
        (["🎉"], "minmax", 4, "🎉_minmax_2"),
    ],
)
def test_column_name_follows_the_version(columns, index, version, name):
    assert column_name(columns, index, version) == name


texts = st.text(alphabet="ab#.$_1-é🎉", max_size=6)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(texts, min_size=1, max_size=3), st.lists(texts, min_size=1, max_size=3))
def test_different_columns_have_different_names(one: list[str], other: list[str]) -> None:
    assert (column_name(one, "minmax") == column_name(other, "minmax")) == (one == other)


@settings(deadline=None, max_examples=examples(60))
@given(texts, texts)
def test_escaping_is_one_to_one_and_leaves_no_dot(one: str, other: str) -> None:
    assert "." not in escape(one)
    assert (escape(one) == escape(other)) == (one == other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("a", "a_minmax_1", id="one begins the other"),
        pytest.param("A", "a", id="case only"),
    ],
)
def test_columns_that_cannot_be_distinguished_are_refused(first: str, second: str) -> None:
    names = [column_name([column], "minmax") for column in (first, second)]
    with pytest.raises(IndexNotPossible, match="cannot be distinguished"):
        check_names({name: (f"{name}.min", f"{name}.max") for name in names}, ["obj_name"])


def test_index_column_that_begins_a_virtual_one_is_refused() -> None:
    name = column_name(["virtual_x"], "minmax")
    with pytest.raises(IndexNotPossible):
        check_names({name: (f"{name}.min",)}, ["obj_name", f"{name}_more"])


def test_columns_that_share_a_beginning_are_fine() -> None:
    names = [column_name([column], "minmax") for column in ("a", "ab", "a_b", "a.b", "obj_name")]
    check_names({name: (f"{name}.min",) for name in names}, ["obj_name", "virtual_a"])


# A second slash would begin an authority.
RELATIVE_PATHS = st.text(min_size=1).filter(lambda path: not path.startswith("/"))


@settings(deadline=None, max_examples=examples(60))
@given(RELATIVE_PATHS, st.integers(-(10**15), 10**15))
def test_object_name_survives_the_round_trip(path: str, modified: int) -> None:
    assert split_object_name(f"/{path}#{modified}") == (f"/{path}", modified)


@pytest.mark.parametrize(
    ("path", "bare"),
    [
        ("file:/a b/c#1%20", "/a b/c#1%20"),
        ("file:///a/b", "/a/b"),
        ("s3a://bucket/x/y", "/x/y"),
        ("hdfs://host:8020/x", "/x"),
        ("/a:b/c", "/a:b/c"),
        ("s3a://bucket", ""),
        ("abfss://c@account.dfs/x:1", "/x:1"),
    ],
)
def test_path_loses_scheme_and_authority_only(path: str, bare: str) -> None:
    assert bare_path(path) == bare


def test_object_storage_of_ibm_is_named_by_its_bucket() -> None:
    assert possible_names("cos://bucket.service/o", 4) == ("/o", "cos://bucket/o")
    assert "bucket/o" in possible_names("cos://bucket.service/o", 0)
    assert names_table("bucket/o", "cos://bucket.service/o/", "", 0)


@pytest.mark.parametrize(
    ("identifier", "version", "fits"),
    [
        ("/data/t", 4, True),
        ("data/t", 0, True),
        ("data/t", 1, False),
        ("/data/t2", 4, False),
        ("db.t", 4, True),
        ("other.t", 4, False),
    ],
)
def test_table_is_recognised_by_path_or_name(identifier: str, version: int, fits: bool) -> None:
    assert names_table(identifier, "file:/data/t", "spark_catalog.db.t", version) is fits


def test_store_lies_below_the_base_under_the_digest_of_its_table() -> None:
    identifier = table_identifier("s3a://bucket/data/t/")
    assert identifier == "/data/t"
    digest = hashlib.sha256(b"/data/t").hexdigest()
    assert below_base("s3a://bucket/md/", identifier) == f"s3a://bucket/md/{digest}"


OLD, NEW = "spark.ibm.metaindex.parquet.mdlocation", "io.xskipper.parquet.mdlocation"


@pytest.mark.parametrize(
    ("kind", "table", "database", "folder"),
    [
        ("EXPLICIT_LOCATION", {}, {}, "/given"),
        ("EXPLICIT_BASE_PATH_LOCATION", {}, {}, below_base("/given", "db.t")),
        ("HIVE_TABLE_NAME", {NEW: "/new", OLD: "/old"}, {NEW: "/base"}, "/new"),
        ("HIVE_TABLE_NAME", {OLD: "/old"}, {NEW: "/base"}, "/old"),
        ("HIVE_TABLE_NAME", {}, {NEW: "/base"}, below_base("/base", "db.t")),
        ("HIVE_DB_NAME", {NEW: "/new"}, {OLD: "/base"}, below_base("/base", "db.t")),
    ],
)
def test_location_is_resolved_by_its_kind(kind, table, database, folder):
    assert resolve(LocationKind(kind), "/given", "db.t", table, database) == folder


def test_location_that_no_property_names_is_an_error() -> None:
    with pytest.raises(IndexNotFound, match="mdlocation"):
        resolve(LocationKind.HIVE_TABLE_NAME, "db.t", "db.t", {}, {})


def test_an_index_is_not_altered_into_a_clash() -> None:
    target = FakeTarget(columns={"a": "bigint", "a_minmax_1": "bigint"})
    before, added = (Index(type="MIN_MAX", column=name) for name in ("a", "a_minmax_1"))
    definition = define(Declaration((before,), form="XSKIPPER"), target, 1)
    with pytest.raises(IndexNotPossible, match="beginning of their names"):
        plan_alteration(definition, Alteration(add=(added,)), target, 2)
