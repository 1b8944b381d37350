"""Tables that are read in parts: with NULL and both ends of 64 bits, each row once or an error."""

import pytest
from support.declared.sources import NOW
from support.servers.databases import in_mariadb, in_postgres

from snaploom.errors import SourceSchemaInvalid

pytestmark = pytest.mark.spark

LEAST, MOST = -(2**63), 2**63 - 1
IDS = (LEAST, LEAST + 1, -(10**18), -1, 0, 1, 10**18, MOST - 1, MOST, None)
TABLE = (
    "DROP TABLE IF EXISTS ends; CREATE TABLE ends (id bigint);"
    f"INSERT INTO ends VALUES {', '.join(f'({each})' for each in IDS)}".replace("None", "NULL")
)

SOUND = [
    ["id < 0 OR id IS NULL", "id >= 0"],
    [f"id <= {LEAST}", f"id > {LEAST} AND id < {MOST}", f"id >= {MOST} OR id IS NULL"],
    [f"id BETWEEN {LEAST} AND -1", f"id BETWEEN 0 AND {MOST}", "id IS NULL"],
    [f"id = {LEAST}", f"id IN ({MOST})", f"id > {LEAST} AND id < {MOST}", "id IS NULL"],
    [f"id < -{'9' * 18}", f"id >= -{'9' * 18} AND id < {'9' * 18}", f"id >= {'9' * 18}",
     "id IS NULL"],
    ["id % 2 = 0 OR id IS NULL", "id % 2 <> 0"],
    ["id % 3 < 1", "id % 3 >= 1", "id IS NULL"],
]  # fmt: skip
UNSOUND = [
    (["id < 0", "id >= 0"], "1 meet none and 0 meet more than one"),
    ([f"id < {MOST} OR id IS NULL", f"id > {MOST}"], "1 meet none and 0 meet more than one"),
    ([f"id > {LEAST} OR id IS NULL"], "1 meet none and 0 meet more than one"),
    ([f"id <= {MOST}", f"id >= {MOST} OR id IS NULL"], "0 meet none and 1 meet more than one"),
    ([f"id >= {LEAST}", f"id <= {LEAST} OR id IS NULL"], "0 meet none and 1 meet more than one"),
    (["id % 2 = 0 OR id IS NULL", "id % 2 = 1"], "2 meet none and 0 meet more than one"),
]


@pytest.fixture(params=["postgres", "MARIADB", "MYSQL"])
def in_database(request):
    """Declares a source of the table, in one of the databases, by one of its drivers."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        server.run(TABLE)
        return lambda **changes: in_postgres(server, "ends", **changes)
    server = request.getfixturevalue("mariadb")
    server.run(TABLE)
    return lambda **changes: in_mariadb(server, "ends", request.param, **changes)


@pytest.mark.parametrize("predicates", SOUND)
def test_every_row_is_read_once(in_database, opened, predicates):
    frame = opened(in_database(tablePredicates=predicates)).read(NOW).frame
    assert frame.rdd.getNumPartitions() == len(predicates)
    assert sorted(str(row.id) for row in frame.collect()) == sorted(map(str, IDS))


@pytest.mark.parametrize(("predicates", "found"), UNSOUND)
def test_split_that_loses_or_doubles_an_end_is_refused(in_database, opened, predicates, found):
    with pytest.raises(SourceSchemaInvalid) as caught:
        opened(in_database(tablePredicates=predicates)).read(NOW)
    assert caught.value.found == f"of {len(IDS)} rows, {found}"
