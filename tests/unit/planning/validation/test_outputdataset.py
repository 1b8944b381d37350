"""What is wrong with outputs, by themselves and together with what they refer to."""

from typing import Any

import pytest
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    found,
    key,
    model,
    output,
    parsed,
    relationship,
    simple,
)

from snaploom.models.findings import Severity
from snaploom.validate.validator import validate

OTHERS = "dataModel.otherDataSources"
FILTER = "dataModel.rootDataSource.snapshotFilter"
INTERVAL = f"{FILTER}.fromInterval"
HIVE = "outputFolder.snapshotFormat.hivePartitioned"
ADDRESS = {"dataSource": "address", "fieldName": "address"}


def with_output(**changes: Any) -> list[Raw]:
    return [*model()[:-1], output(**changes)]


def test_a_sound_model_has_no_findings() -> None:
    assert found(model()) == []


@pytest.mark.parametrize(
    ("change", "value", "code", "path"),
    [
        pytest.param(f"{OTHERS}.0.fieldName", "DATA", "SL170", f"{OTHERS}[0].fieldName", id="data"),
        pytest.param(
            f"{OTHERS}.0.fieldName", "Snapshot_Epoch", "SL170", f"{OTHERS}[0].fieldName",
            id="partition-field",
        ),
        pytest.param(
            f"{HIVE}.fieldName", "Data", "SL170", f"{HIVE}.fieldName", id="partition-data"
        ),
        pytest.param(
            f"{OTHERS}.0.transformations",
            {"groupBy": {"fieldNames": ["customer_id", "Customer_Id"]}},
            "SL135", f"{OTHERS}[0].transformations.groupBy.fieldNames[1]", id="groupBy-twice",
        ),
        pytest.param(
            "dataModel.rootDataSource.rootKey", ["a", "A"], "SL135",
            "dataModel.rootDataSource.rootKey[1]", id="rootKey-twice",
        ),
        pytest.param(
            f"{INTERVAL}.intervalStartDate.timezone", "Mars/Base", "SL132",
            f"{INTERVAL}.intervalStartDate.timezone", id="zone",
        ),
        pytest.param(
            f"{INTERVAL}.excludeIntervals", [{"from": "2020-01-02", "to": "2020-01-03T00:00:00Z"}],
            "SL134", f"{INTERVAL}.excludeIntervals[0].from", id="excluded-from",
        ),
        pytest.param(
            f"{INTERVAL}.excludeIntervals",
            [{"from": "2020-01-02T00:00:00Z", "to": "2020-01-02T00:00:00Z"}],
            "SL134", f"{INTERVAL}.excludeIntervals[0]", id="excluded-nothing",
        ),
        pytest.param(
            f"{INTERVAL}.maxSnapshotAge", {}, "SL180", f"{INTERVAL}.maxSnapshotAge", id="zero-age"
        ),
        pytest.param(
            f"{INTERVAL}.intervalLength", {"nano": 999_999}, "SL172", f"{INTERVAL}.intervalLength",
            id="shorter-than-milliseconds",
        ),
        pytest.param(
            f"{HIVE}.outputTimezone", "Nowhere", "SL132", f"{HIVE}.outputTimezone", id="output-zone"
        ),
        pytest.param(
            "outputFolder.folderUri", "out/wide/", "SL173", "outputFolder.folderUri", id="relative"
        ),
        pytest.param(
            "outputFolder.folderUri", "/out/../wide/", "SL173", "outputFolder.folderUri", id="dots"
        ),
        pytest.param(
            "outputFolder.dataFormat", "JSONL", "SL178", "outputFolder.dataCompression",
            id="jsonl-with-snappy",
        ),
        pytest.param("run.schedule", {"cron": "0 0 * *"}, "SL133", "run.schedule.cron", id="cron"),
        pytest.param(
            "run.schedule", {"cron": "0 0 30 2 *"}, "SL133", "run.schedule.cron", id="never"
        ),
        pytest.param(
            "run.schedule", {"cron": "0 0 * * *", "timeZone": "X"}, "SL132",
            "run.schedule.timeZone", id="cron-zone",
        ),
        pytest.param(
            "dataModel.dataRelationships.0.exclusions",
            [{"dataSourceSet": ["customer", "adress"]}], "SL175",
            "dataModel.dataRelationships[0].exclusions[0].dataSourceSet[1]", id="exclusion",
        ),
        pytest.param(
            "dataModel.rootDataSource.dataSource", "customr", "SL130",
            "dataModel.rootDataSource.dataSource", id="root",
        ),
        pytest.param(
            f"{OTHERS}.0.dataSource", "adress", "SL130", f"{OTHERS}[0].dataSource", id="source"
        ),
        pytest.param(
            "dataModel.dataRelationships.0.name", "customer-ids", "SL130",
            "dataModel.dataRelationships[0].name", id="relationship",
        ),
    ],
)  # fmt: skip
def test_faults_of_outputs(change: str, value: object, code: str, path: str) -> None:
    expected = [(code, "OutputDataset/wide", f"spec.{path}")] if code else []
    faults = [f for f in found(with_output(**{change: value})) if f[0] not in ("SL176",)]
    assert faults == expected


def test_cron_intervals_are_checked_like_the_others() -> None:
    cron = {
        "schedule": "60 * * * *",
        "timeZone": "Erth",
        "startDate": "2020",
        "length": {"nano": 1},
    }
    faults = [(code, path) for code, _, path in found(with_output(**{FILTER: {"fromCron": cron}}))]
    assert faults == [
        ("SL133", f"spec.{FILTER}.fromCron.schedule"),
        ("SL132", f"spec.{FILTER}.fromCron.timeZone"),
        ("SL134", f"spec.{FILTER}.fromCron.startDate"),
        ("SL172", f"spec.{FILTER}.fromCron.length"),
    ]


@pytest.mark.parametrize(
    ("form", "length", "refused"),
    [
        ("UNIX_SECONDS", {"nano": 999_999_999}, True),
        ("UNIX_SECONDS", {"nano": 1_000_000_000}, False),
        ("UNIX_SECONDS", {"second": 1}, False),
        ("UNIX_MILLISECONDS", {"nano": 1_000_000}, False),
        ("ISO8601_DATE_TIME", {"nano": 1}, False),
    ],
)
def test_intervals_are_no_shorter_than_partitions_can_express(form, length, refused):
    raws = with_output(**{f"{HIVE}.timestampFormat": form, f"{INTERVAL}.intervalLength": length})
    assert [code for code, _, _ in found(raws)] == (["SL172"] if refused else [])


def test_a_source_is_listed_once_the_root_included() -> None:
    again = {"dataSource": "customer", "fieldName": "again"}
    third = {"dataSource": "address", "fieldName": "Address"}
    assert found(with_output(**{OTHERS: [ADDRESS, again, third]})) == [
        ("SL171", "OutputDataset/wide", f"spec.{OTHERS}[1].dataSource"),
        ("SL171", "OutputDataset/wide", f"spec.{OTHERS}[2].dataSource"),
        ("SL170", "OutputDataset/wide", f"spec.{OTHERS}[2].fieldName"),
    ]


def test_a_relationship_that_joins_nothing_is_a_warning() -> None:
    raws = [
        *model()[:-1],
        files("other"),
        relationship("other-id", (["other", "customer"], [key("x")])),
        output(**{"dataModel.dataRelationships": [{"name": "customer-id"}, {"name": "other-id"}]}),
    ]
    (finding,) = validate(parsed(raws))
    assert (finding.code, finding.severity) == ("SL176", "WARNING")
    assert finding.path == "spec.dataModel.dataRelationships[1].name"
    assert finding.found == "only customer of its sources"


def test_a_relationship_whose_source_may_wait_for_it_is_no_warning() -> None:
    waiting = {"dataSource": "other", "fieldName": "o", "pathMissingMode": "CONTINUE_IGNORE"}
    assert found([
        *model()[:-1],
        files("other"),
        relationship("other-id", (["other"], [key("x")])),
        output(**{
            "dataModel.dataRelationships": [{"name": "other-id"}],
            OTHERS: [waiting],
        }),
    ]) == []  # fmt: skip


def test_closed_intervals_of_a_root_without_past_are_a_warning() -> None:
    now = {"fromReadTime": {}}
    raws = [
        files("customer", snapshot=now),
        *with_output(**{f"{INTERVAL}.onlyClosedIntervals": True})[1:],
    ]
    assert found(raws) == [("SL179", "OutputDataset/wide", f"spec.{INTERVAL}.onlyClosedIntervals")]


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("/out/a/", "/out/a/", True),
        ("/out/a/", "/out/a/b/", True),
        ("/out/a/b/c/", "/out/a/", True),
        ("file:///out/a/", "/out//a/x/", True),
        ("s3://b/a/", "s3a://b/a/b/", True),
        ("s3://b/", "s3://b/out/", True),
        ("/out/a/", "/out/ab/", False),
        ("s3://b/a/", "s3://c/a/", False),
        ("s3://b/a/", "/b/a/", False),
    ],
)
def test_folders_of_two_outputs_do_not_overlap(first: str, second: str, overlap: bool) -> None:
    raws = [
        *model()[:-1],
        output("one", **{"outputFolder.folderUri": first}),
        output("two", **{"outputFolder.folderUri": second}),
    ]
    faults = [f for f in validate(parsed(raws)) if f.code != "SL150"]
    assert [f.code for f in faults] == (["SL174"] if overlap else [])
    for finding in faults:
        assert finding.path == "spec.outputFolder.folderUri"
        assert "OutputDataset/" in finding.message


def of_catalog(name: str, table: str, **conf: str) -> Raw:
    folder = {"outputFolder.folderUri": f"/out/{name}/", "outputFolder.dataFormat": "ICEBERG"}
    place = {"catalog": "lake", "name": table}
    settings = {f"spark.sql.catalog.lake.{key}": value for key, value in conf.items()}
    run = {"run.spark": {"sparkConf": settings}}
    return output(name, **folder, **run, **{"outputFolder.table": place})


@pytest.mark.parametrize(
    ("second", "is_shared"),
    [
        (of_catalog("two", "sales.orders"), True),
        (of_catalog("two", "sales.order"), False),
        (of_catalog("two", "sales.orders", uri="https://other"), False),
    ],
)
def test_two_outputs_are_not_one_table_of_a_catalog(second: Raw, is_shared: bool) -> None:
    raws = [*model()[:-1], of_catalog("one", "sales.orders"), second]
    faults = [each for each in validate(parsed(raws)) if each.code == "SL174"]
    expected = [("OutputDataset/two", "spec.outputFolder.table")] if is_shared else []
    assert [(each.resource, each.path) for each in faults] == expected
    for finding in faults:
        assert finding.found == "lake.sales.orders, which is also that of OutputDataset/one"


def test_every_fault_is_reported_at_once() -> None:
    raws = with_output(
        **{
            f"{OTHERS}.0.fieldName": "data",
            "outputFolder.folderUri": "x/",
            "run.schedule": {"cron": "x"},
            f"{INTERVAL}.intervalStartDate.timezone": "x",
        }
    )
    assert sorted(code for code, _, _ in found(raws)) == ["SL132", "SL133", "SL170", "SL173"]


def test_ambiguous_and_unreachable_trees_are_reported() -> None:
    raws = [
        *model()[:-1],
        files("far"),
        relationship("email", (["customer", "address"], [key("email")])),
        output(
            **{
                OTHERS: [ADDRESS, {"dataSource": "far", "fieldName": "far"}],
                "dataModel.dataRelationships": [{"name": "customer-id"}, {"name": "email"}],
            }
        ),
    ]
    assert [(code, path) for code, _, path in found(raws)] == [
        ("SL301", f"spec.{OTHERS}[0]"),
        ("SL302", f"spec.{OTHERS}[1]"),
    ]


def test_no_tree_is_judged_while_its_parts_have_faults() -> None:
    raws = [f for f in model() if f["metadata"]["name"] != "customer-id"]
    assert [code for code, _, _ in found(raws)] == ["SL130"]


def test_at_admission_a_missing_reference_is_a_warning() -> None:
    (finding,) = validate(parsed([simple_output()]), missing_reference=Severity.WARNING)[:1]
    assert (finding.code, finding.severity) == ("SL130", "WARNING")
    assert all(
        f.severity is Severity.WARNING
        for f in validate(parsed([simple_output()]), missing_reference=Severity.WARNING)
    )


def simple_output() -> Raw:
    return output()


def test_references_to_broken_resources_are_not_reported() -> None:
    broken = frozenset({"DataSource/address", "DataRelationship/customer-id"})
    assert validate(parsed([files("customer"), output()]), broken=broken) == ()


def test_references_do_not_leave_their_namespace() -> None:
    elsewhere = [r | {"metadata": {**r["metadata"], "namespace": "b"}} for r in model()[:-1]]
    faults = validate(parsed([*elsewhere, output()]))
    assert {f.code for f in faults} == {"SL130"}


def test_names_that_kubernetes_refuses_are_a_warning() -> None:
    (finding,) = validate(parsed([files("Customer_1")]))
    assert (finding.code, finding.severity, finding.path) == ("SL120", "WARNING", "metadata.name")
    assert "`customer-1`" in finding.hint


PLAINTEXT = {"fromPlaintext": {"user": "u", "password": "p"}}
INDEX = {
    "target": {"dataSource": "customer"},
    "indexes": [{"type": "MIN_MAX", "column": "a"}],
    "store": {"parquet": {"location": "/index/"}},
}


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        pytest.param({"target": {"dataSource": "x"}}, "SL130", "target.dataSource", id="source"),
        pytest.param(
            {"target": {"outputDataset": "x"}}, "SL130", "target.outputDataset", id="output"
        ),
        pytest.param(
            {"indexes": [{"type": "MINMAX", "column": "a"}]}, "SL185", "indexes[0].type", id="type"
        ),
        pytest.param(
            {"indexes": [{"type": "BLOOM_FILTER", "column": "a", "parameters": {"fpp": "2"}}]},
            "SL186", "indexes[0].parameters.fpp", id="fpp",
        ),
        pytest.param(
            {"indexes": [{"type": "VALUE_SET", "column": "a", "parameters": {"limit": "-1"}}]},
            "SL186", "indexes[0].parameters.limit", id="limit",
        ),
        pytest.param(
            {"indexes": [{"type": "MIN_MAX", "columns": ["a", "b"]}]}, "SL186",
            "indexes[0].columns", id="columns",
        ),
        pytest.param(
            {"indexes": [{"type": "PARTITION", "expression": "a + 1"}]}, "SL186",
            "indexes[0].expression", id="partition-expression",
        ),
        pytest.param(
            {"indexes": [{"type": "MIN_MAX", "expression": "a +"}]}, "SL150",
            "indexes[0].expression", id="expression",
        ),
        pytest.param(
            {"indexes": [{"type": "MIN_MAX", "column": c} for c in ("a", "A")]}, "SL135",
            "indexes[1]", id="twice",
        ),
        pytest.param(
            {
                "indexes": [{"type": "MIN_MAX", "column": c} for c in ("a", "a_minmax_1")],
                "store": {"parquet": {"location": "/i/", "form": "XSKIPPER"}},
            },
            "SL187", "indexes[1].column", id="names",
        ),
        pytest.param({"where": "a >"}, "SL150", "where", id="where"),
        pytest.param(
            {"store": {"openSearch": {"host": "s", "auth": "BASIC", "credentials": PLAINTEXT}}},
            "SL183", "store.openSearch.credentials.fromPlaintext", id="password",
        ),
    ],
)  # fmt: skip
def test_faults_of_indexes(changes: Raw, code: str, path: str) -> None:
    raws = [files("customer"), document("SkippingIndex", "i", INDEX | changes)]
    assert found(raws) == [(code, "SkippingIndex/i", f"spec.{path}")]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("file:///checkpoints/", []),
        ("checkpoints", ["SL173"]),
        ("file:///a/../checkpoints/", ["SL173"]),
        ("file:///out/wide/checkpoints", ["SL174"]),
        ("file:///out", ["SL174"]),
    ],
)
def test_checkpoints_are_outside_of_the_output(place: str, expected: list[str]) -> None:
    changes = {"outputFolder.folderUri": "file:///out/wide/", "run.checkpointUri": place}
    faults = found(with_output(**changes))
    assert [(code, path) for code, _, path in faults] == [
        (code, "spec.run.checkpointUri") for code in expected
    ]


NOW = {"snapshot": {"fromReadTime": {}}}
TABLE = {
    "driver": "POSTGRESQL", "host": "db", "database": "shop", "tableReference": "t",
    "credentials": {"fromSecret": {"name": "db"}},
    "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
}  # fmt: skip
LONG = {f"{OTHERS}.0.snapshot": {"history": "30d"}}
OF_OUTPUT = {"sourceUriGlobs": ["/out/first/data/*/*"]}


def first(**rules: Any) -> list[Raw]:
    """Another output, whose folder `address` reads, that deletes snapshots."""
    return [
        files("address", **OF_OUTPUT),
        output("first", **{
            "outputFolder.snapshotAutoDelete": rules,
            OTHERS: [], "dataModel.dataRelationships": [],
        }),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "message"),
    [
        pytest.param([files("address", **NOW)], "no snapshot but the present one", id="now"),
        pytest.param([document("DataSource", "address", {"jdbc": TABLE})], "a database", id="jdbc"),
        pytest.param(
            [
                document("DataSource", "table", {"jdbc": TABLE}),
                simple("address", "SELECT customer_id FROM c", source="table"),
            ],
            "a database",
            id="query-on-jdbc",
        ),
        pytest.param(
            [
                complex_(
                    "address",
                    "SELECT customer_id FROM c0 WHERE t < {{ SNAPSHOT | UNIX_SECONDS }}",
                    "customer",
                )
            ],
            "a snapshot at any time",
            id="complexVirtual",
        ),
        pytest.param(first(maxSnapshotAge="29d"), "deletes snapshots after 29d", id="age"),
        pytest.param(first(maxOldSnapshots=28), "keeps 29 snapshots, fewer than", id="number"),
    ],
)
def test_history_that_a_source_does_not_have_is_refused(address: list[Raw], message: str) -> None:
    raws = [files("customer"), *address, model()[2], output(**LONG)]
    (finding,) = [one for one in validate(parsed(raws)) if one.code == "SL168"]
    assert message in finding.message
    assert (finding.resource, finding.severity) == ("OutputDataset/wide", Severity.ERROR)
    assert finding.path == f"spec.{OTHERS}[0].snapshot.history"
    assert finding.hint


@pytest.mark.parametrize(
    "address",
    [
        [files("address")],
        [files("rows"), simple("address", "SELECT customer_id FROM c", source="rows")],
        first(maxSnapshotAge="1mo", maxOldSnapshots=29),
    ],
)
def test_history_that_a_source_has_is_accepted(address: list[Raw]) -> None:
    raws = [files("customer"), *address, model()[2], output(**LONG)]
    assert not [one for one in validate(parsed(raws)) if one.severity is Severity.ERROR]
