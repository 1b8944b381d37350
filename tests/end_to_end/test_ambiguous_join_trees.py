"""Join trees that are not unique: exit code 3 everywhere, and the JSON contracts, key by key."""

from pathlib import Path
from typing import Any

import pytest
from support.declared.shop import (
    ORDERS,
    SECOND_DAY,
    CommandResult,
    Shop,
    day_source,
    same_key,
    wide,
)

TIME = r"20\d\d-"


def ambiguous(folder: Path) -> Shop:
    """Two relationships of equal weight lead to the customers."""
    shop = Shop(folder)
    shop.documents[3:] = [
        same_key("person-id", "customer_id", "orders", "customers"),
        wide(folder, "customers", relationships=("customer-id", "person-id")),
    ]
    return shop


def unreachable(folder: Path) -> Shop:
    shop = Shop(folder)
    shop.documents[3:] = [day_source(folder, "people"), wide(folder, "customers", "people")]
    return shop


TREES = [
    pytest.param(ambiguous, "SL301", "2 equivalent ways to reach DataSource/customers", id="tie"),
    pytest.param(unreachable, "SL302", "no path leads from the root", id="unreachable"),
]


@pytest.mark.parametrize(("make", "code", "text"), TREES)
def test_every_command_ends_with_3_and_one_error(tmp_path, make, code, text):
    shop = make(tmp_path).with_data()
    for result in (shop.validate(), shop.plan("--offline"), shop.plan(), shop.run()):
        assert result.code == 3
        assert [line.split()[1] for line in result.err.splitlines() if line.startswith("err")] == [
            code
        ]
        assert text in result.err
        assert "model.yaml:" in result.err
        assert "  fix: " in result.err
    assert not shop.published.exists()


@pytest.mark.parametrize(("make", "code", "text"), TREES)
def test_json_has_the_finding_and_ends_with_3(tmp_path, make, code, text):
    shop = make(tmp_path).with_data()
    for result in (shop.plan("-o", "json"), shop.run("-o", "json")):
        assert result.code == 3
        (finding,) = result.document["findings"]
        assert (finding["code"], finding["severity"]) == (code, "ERROR")
        assert text in finding["message"]


def test_a_tie_is_listed_with_every_candidate(tmp_path: Path) -> None:
    document = ambiguous(tmp_path).plan("--offline", "-o", "json").document
    assert document["ties"] == [
        {
            "fieldName": "customers",
            "depth": 1,
            "antiPriority": 1,
            "candidates": [
                {"parent": "", "relationship": "customer-id"},
                {"parent": "", "relationship": "person-id"},
            ],
        }
    ]


def test_an_unreachable_source_is_listed_with_its_mode(tmp_path: Path) -> None:
    document = unreachable(tmp_path).plan("--offline", "-o", "json").document
    assert document["unreachable"] == [{"fieldName": "people", "source": "people", "mode": "ERROR"}]


def shape(value: Any) -> Any:
    """Types instead of values; of a list the shape of its first member."""
    match value:
        case dict():
            return {key: shape(inner) for key, inner in value.items()}
        case list():
            return [shape(value[0])] if value else []
        case _:
            return type(value)


@pytest.mark.spark
def test_the_contract_of_plan_json(spark: object, tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.other(snapshot={"snapshotMissingMode": "CONTINUE_WARN"})
    result = shop.plan("-o", "json")
    assert result.code == 0
    # What they hold is in tests/unit/planning/test_plan.py; the command adds the last two.
    assert set(result.document) == {
        "output", "hash", "root", "joins", "unreachable", "ties", "candidates", "deletes",
        "unforeseen", "collect", "findings", "dataFindings", "project", "accelerator",
    }  # fmt: skip
    candidates = result.document["candidates"]
    assert [one["time"] for one in candidates] == ["2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"]
    assert {one["action"] for one in candidates} <= {"PUBLISH", "SKIP", "FAIL"}


def test_offline_candidates_are_null_and_findings_have_their_keys(tmp_path: Path) -> None:
    document = unreachable(tmp_path).plan("--offline", "-o", "json").document
    assert document["candidates"] is None
    keys = ("code", "severity", "resource", "path", "message", "hint")
    assert shape(document["findings"]) == [dict.fromkeys(keys, str)]


@pytest.mark.spark
def test_the_contract_of_the_report(spark: object, tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.other(snapshot={"snapshotMissingMode": "SKIP_WARN"})
    result: CommandResult = shop.run("-o", "json")
    assert result.code == 0, result.err
    report = result.document
    (published,), (skipped,) = report["snapshots"], report["skipped"]
    expected = {
        "time": str, "partition": str, "rows": int, "files": int, "bytes": int, "seconds": float,
        "excluded": [],
    }  # fmt: skip
    assert {key: shape(published[key]) for key in expected} == expected
    (join,) = published["joins"]
    counts = {"child": "customers", "in": 3, "out": 3, "matched": 2, "nullKeys": 0}
    assert {key: join[key] for key in counts} == counts
    assert {key: skipped[key] for key in ("time", "partition", "reason")} == {
        "time": "2024-05-02T00:00:00Z",
        "partition": "snapshot_epoch=1714608000000",
        "reason": "SNAPSHOT_MISSING",
    }
    assert report["failed"] == []
    assert (report["output"], report["phase"]) == ("wide", "SUCCEEDED")
