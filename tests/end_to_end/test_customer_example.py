"""Customers with grouped sources, through the command line: every row is checked (rule W23)."""

import duckdb
import pytest
from support.documentation.examples import Example, Shell, copy_example, published_files

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def example(shared_shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Example:
    copied = copy_example("customer", tmp_path_factory.mktemp("customer"), shared_shell)
    copied.run_readme()
    return copied


def rows_of(example: Example, time: str) -> dict[int, dict[str, object]]:
    """Rows of a snapshot by customer_id, as plain data."""
    files = published_files(example.folder / "wide")[time]
    with duckdb.connect() as connection:
        result = connection.execute("FROM read_parquet(?, hive_partitioning = false)", [files])
        names = [column[0] for column in result.description]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return {row["data"]["customer_id"]: row for row in rows}


def test_first_row_is_the_worked_example(example: Example) -> None:
    def group(group_id: str, relation_type: str, name: str) -> dict[str, object]:
        return {
            "data": {"customer_id": 1, "group_id": group_id, "relation_type": relation_type},
            "group_attributes": {"data": {"group_id": group_id, "name": name}},
        }

    assert rows_of(example, "2024-01-31T00:00:00Z")[1] == {
        "data": {"customer_id": 1, "name": "brad"},
        "customer_address": {"data": {"customer_id": 1, "country": "Australia", "state": "VIC"}},
        "customer_contact": [
            {"data": {"customer_id": 1, "kind": "email", "value": "b@x"}},
            {"data": {"customer_id": 1, "kind": "phone", "value": "1"}},
        ],
        "customer_group": [group("b", "primary", "iPhone"), group("c", "secondary", "iPad")],
    }


def test_what_has_no_match_is_null(example: Example) -> None:
    rows = rows_of(example, "2024-01-31T00:00:00Z")
    assert list(rows) == [1, 2, 3]
    assert rows[2]["customer_contact"] is None
    assert rows[3]["customer_address"] is None
    unknown = rows[2]["customer_group"][1]
    assert unknown["data"]["group_id"] == "z"
    assert unknown["group_attributes"] is None


def test_second_snapshot_shows_the_changes_and_the_first_stays(example: Example) -> None:
    january = rows_of(example, "2024-01-31T00:00:00Z")
    february = rows_of(example, "2024-02-29T00:00:00Z")
    assert january[1]["customer_address"]["data"]["state"] == "VIC"
    assert february[1]["customer_address"]["data"]["state"] == "NSW"
    assert sorted(february) == [1, 2, 3, 4]
    assert february[4]["customer_group"][0]["group_attributes"]["data"]["name"] == "Mac"
