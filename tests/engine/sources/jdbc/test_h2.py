"""Tables of an embedded database: H2 in a file."""

from datetime import datetime

import pytest
from support.declared.sources import NOW, by_field, rows_at, snapshot_times
from support.servers.databases import in_h2, make_h2

from snaploom.errors import SourceNotReadable, SourceSchemaInvalid

pytestmark = pytest.mark.spark

TABLE = """
CREATE TABLE ORDERS (ID BIGINT, AT TIMESTAMP(9), "Na""me" VARCHAR);
INSERT INTO ORDERS VALUES (1099511627776, '2024-01-01 00:00:00.123456789', 'a'),
  (2, '2024-01-02 00:00:00', NULL);
CREATE TABLE ODD (ID BIGINT, LONG_AGO INTERVAL YEAR, ZONED TIMESTAMP(6) WITH TIME ZONE, "a b" INT);
INSERT INTO ODD VALUES (1, INTERVAL '3' YEAR, '2024-01-01 00:00:00+01', 7);
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    file = tmp_path_factory.mktemp("h2") / "shop"
    make_h2(file, TABLE)
    return file


@pytest.mark.parametrize("level", [None, "READ_COMMITTED", "SNAPSHOT"])
def test_rows_are_read_in_parts(database, opened, level):
    settings = {"tablePredicates": ["ID > 9", "ID <= 9"]} | (
        {"isolationLevel": level} if level else {}
    )
    assert rows_at(opened(in_h2(database, "PUBLIC.ORDERS", **settings)), NOW) == [
        (2, datetime(2024, 1, 2), None),
        (2**40, datetime(2024, 1, 1, 0, 0, 0, 123456), "a"),
    ]


def test_times_finer_than_those_of_spark_lose_no_row(database, opened):
    source = opened(in_h2(database, "ORDERS", snapshot=by_field("at", "TIMESTAMP")))
    assert {time: rows_at(source, time) for time in snapshot_times(source)} == {
        1_704_067_200_123_456_000: [(2**40, "a")],
        1_704_153_600_000_000_000: [(2, None)],
    }


@pytest.mark.parametrize("predicates", [[], ["ID = 1", "ID <> 1"]])
def test_columns_of_unknown_types_are_left_out_by_schema_fields(database, opened, predicates):
    with pytest.raises(SourceSchemaInvalid):
        opened(in_h2(database, "ODD")).read(NOW)
    fields = [{"name": "a b", "dataType": {"integer": {}}}]
    source = opened(in_h2(database, "ODD", schemaFields=fields, tablePredicates=predicates))
    assert rows_at(source, NOW) == [(7,)]


def test_file_that_is_not_there_is_not_made(tmp_path, opened):
    with pytest.raises(SourceNotReadable) as caught:
        opened(in_h2(tmp_path / "none", "ORDERS")).listing()
    assert caught.value.path == "spec.jdbc.database"
    assert list(tmp_path.iterdir()) == []
