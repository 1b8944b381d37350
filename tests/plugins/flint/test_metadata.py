import hashlib

import pytest

from snaploom.errors import IndexUnreadable
from snaploom.plugins.flint.metadata import (
    FlintColumn,
    FlintForm,
    FlintMetadata,
    document_id,
    file_uri,
    index_name,
    parse_metadata,
    render_metadata,
)

SEED = {
    "version": "0.1",
    "indexConfig": {
        "kind": "skipping",
        "properties": {
            "indexedColumns": [
                {"kind": "Partition", "columnName": "year", "columnType": "int"},
                {"kind": "ValuesSet", "columnName": "elb_status_code", "columnType": "int"},
            ]
        },
    },
    "source": "alb_logs",
    "state": "active",
    "enabled": True,
}
TODAY = {
    "version": "1.0.0",
    "name": "flint_spark_catalog_default_alb_logs_skipping_index",
    "kind": "skipping",
    "source": "spark_catalog.default.alb_logs",
    "indexedColumns": [
        {
            "kind": "BLOOM_FILTER",
            "parameters": {"fpp": "0.03"},
            "columnName": "client_ip",
            "columnType": "string",
        }
    ],
    "options": {"auto_refresh": "true"},
    "properties": {},
}


@pytest.mark.parametrize("document", [SEED, TODAY], ids=["seed", "today"])
def test_both_forms_survive_the_round_trip(document: dict[str, object]) -> None:
    assert render_metadata(parse_metadata(document)) == document


def test_kinds_of_the_seed_are_understood() -> None:
    found = parse_metadata(SEED)
    assert [column.kind for column in found.columns] == ["PARTITION", "VALUE_SET"]
    assert (found.state, found.enabled) == ("active", True)


def test_what_is_unknown_is_ignored() -> None:
    assert parse_metadata({**TODAY, "latestId": "abc"}) == parse_metadata(TODAY)


@pytest.mark.parametrize(
    "document", [{}, {"version": "0.1", "indexConfig": {}}, {**SEED, "version": "7"}]
)
def test_other_metadata_are_unreadable(document: dict[str, object]) -> None:
    with pytest.raises(IndexUnreadable):
        parse_metadata(document)


def test_one_form_is_written_as_the_other() -> None:
    column = FlintColumn(kind="VALUE_SET", name="code", data_type="int")
    seed = FlintMetadata(source="t", columns=(column,), form=FlintForm.SEED)
    assert parse_metadata(render_metadata(seed)).columns == (column,)
    assert "ValuesSet" in str(render_metadata(seed))


@pytest.mark.parametrize(
    ("table", "form", "name"),
    [
        (
            "spark_catalog.Default.Alb_Logs",
            FlintForm.TODAY,
            "flint_spark_catalog_default_alb_logs_skipping_index",
        ),
        ("spark_catalog.default.alb_logs", FlintForm.SEED, "flint_alb_logs_skipping_index"),
        ("c.d.my table", FlintForm.TODAY, "flint_c_d_my%20table_skipping_index"),
    ],
)
def test_names_of_indexes(table: str, form: FlintForm, name: str) -> None:
    assert index_name(table, form) == name


def test_long_names_end_in_a_hash() -> None:
    names = {index_name(f"c.d.{'t' * 300}{end}") for end in "ab"}
    assert len(names) == 2
    assert max(map(len, names)) < 100


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("file:/data/a b.parquet", "file:///data/a%20b.parquet"),
        ("s3://bucket/year=2020/a%3A.parquet", "s3://bucket/year=2020/a%253A.parquet"),
        ("hdfs://name:8020/é#1", "hdfs://name:8020/é%231"),
    ],
)
def test_paths_are_uris_as_java_writes_them(path: str, uri: str) -> None:
    assert file_uri(path) == uri
    assert document_id(uri) == hashlib.sha1(uri.encode()).hexdigest()
