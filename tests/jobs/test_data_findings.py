"""Faults and changes in people's data: run, plan, status and page name them alike."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    NOW,
    ORDERS,
    Shop,
    day_source,
    same_key,
    snaploom,
    wide,
)

import snaploom as sl
from snaploom.engine import unmatched
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.report import NOT_COUNTED, DataFinding, DataFindingKind, RunPhase
from snaploom.plugins.site.pagedata import reading_snippets
from snaploom.run.weaving.datafindings import sample_texts
from snaploom.types.schemas import Field, Map, Simple, Struct

pytestmark = pytest.mark.spark

SALES = (
    {"order_id": 1, "customer_id": "a", "amount": 5.0},
    {"order_id": 2, "customer_id": "b", "amount": 7.5},
    {"order_id": 3, "customer_id": "c", "amount": 9.0},
    {"order_id": 4, "customer_id": None, "amount": 1.0},
)
DAYS = ("2024-05-01", "2024-05-02", "2024-05-04")


def kinds(findings: tuple[DataFinding, ...]) -> list[str]:
    return sorted(f"{one.kind.value} {one.source} {one.count}" for one in findings)


@dataclass
class Sold:
    """A shop of three days, with regions below customers, and what a run of it reported."""

    shop: Shop
    run: sl.Run

    @property
    def page(self) -> str:
        site = self.shop.folder / "site"
        assert snaploom("page", "wide", "-f", self.shop.model, "--to", site).code == 0
        return unescape((site / "index.html").read_text())


@pytest.fixture(scope="module")
def sold(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Sold:
    folder = tmp_path_factory.mktemp("sold")
    others = ("customers", "regions")
    shop = Shop(
        folder,
        [
            day_source(folder, "orders"),
            day_source(folder, "customers"),
            day_source(folder, "regions"),
            same_key("customer-id", "customer_id", "orders", "customers", data_type="string"),
            same_key("region-id", "region_id", "customers", "regions"),
            wide(folder, *others, relationships=("customer-id", "region-id")),
        ],
    )
    people = [
        {"customer_id": key, "name": "x", "region_id": number % 2 + 1}
        for number, key in enumerate("abde")
    ]
    for day in DAYS:
        shop.day("orders", SALES, day)
        shop.day("customers", people, day)
        shop.day("regions", [{"region_id": 1, "region": "north"}], day)
    shop.write()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unmatched, "SECONDS_FOR_NEWEST", 300.0)  # however busy the machine is
        return Sold(shop, sl.load(shop.model).run("wide", limit=3, progress=False))


def test_run_ends_with_rows_without_a_match_and_days_that_are_missing(sold: Sold) -> None:
    assert kinds(sold.run.data_findings) == [
        "MISSING orders 1", "NULL_KEYS customers 3", "UNMATCHED customers 3", "UNMATCHED regions 6",
    ]  # fmt: skip
    assert [one.not_counted for one in sold.run.published[-1].unmatched] == ["", ""]
    (orders,) = [one for one in sold.run.data_findings if one.source == "customers" and one.samples]
    assert (orders.left, orders.of, orders.snapshots, orders.samples) == ("orders", 12, 3, ("c",))
    assert "customers: 3 of 12 rows of orders have no match in it: c" in str(sold.run)
    assert "orders: 1 snapshot missing: 2024-05-03T00:00:00Z" in str(sold.run)


def test_matches_below_the_root_are_of_rows_of_the_left_side(sold: Sold) -> None:
    customers, regions = sold.run.published[0].joins
    assert (customers.label, regions.label) == ("customers 50%", "regions 50% of customers")
    assert (customers.left, customers.rows) == ("", None)
    assert (regions.in_, regions.matched, regions.rows) == (4, 2, 1)
    frame = sl.load(sold.shop.model).read("wide", at=FIRST_DAY)
    assert frame.where("customers.regions is not null").count() == regions.rows


def test_page_has_what_the_run_reported_and_columns_from_footers(sold: Sold) -> None:
    page = sold.page
    assert "customers: 3 of 12 rows of orders have no match in it: c" in page
    assert re.search(r"<code>data\.order_id</code>.*?bigint.*?>0<.*?>1</td>.*?>4</td>", page)
    assert re.search(
        r"<code>data\.customer_id</code>.*?string.*?>1<.*?>25%<.*?>a</td>.*?>c</td>", page
    )


def test_samples_none_keeps_keys_and_rows_out_of_everything_that_is_reported(sold, tmp_path):
    shop = Shop(tmp_path, deepcopy(sold.shop.documents))
    shop.set("wide", "outputFolder.folderUri", f"file://{tmp_path}/quiet/")
    shop.raw("wide")["metadata"]["annotations"] = {"snaploom.io/samples": "none"}
    shop.write()
    run = sl.load(shop.model).run("wide", limit=1, progress=False)
    assert "UNMATCHED customers 1" in kinds(run.data_findings)
    assert not any(one.unmatched or one.warnings for one in run.published)
    assert '"c"' not in (tmp_path / "quiet" / "metadata" / "runs.json").read_text()


def test_near_misses_that_are_not_counted_have_the_reason(sold, tmp_path, monkeypatch):
    monkeypatch.setattr(unmatched, "SHARE_OF_TIME", 0.0)
    monkeypatch.setattr(unmatched, "SECONDS_FOR_NEWEST", 0.0)
    shop = Shop(tmp_path, deepcopy(sold.shop.documents))
    shop.set("wide", "outputFolder.folderUri", f"file://{tmp_path}/hasty/")
    shop.write()
    run = sl.load(shop.model).run("wide", limit=1, progress=False)
    assert "have no match in it; near misses are not counted: too little is left of" in str(run)


def test_keys_with_blanks_are_quoted_and_near_misses_are_of_one_snapshot() -> None:
    time = "2024-05-01T00:00:00Z"
    one = DataFinding(
        kind=DataFindingKind.UNMATCHED, source="c", left="o", count=3, of=9, about="2 of 3 would",
        first=time, last=time, samples=("", "a ", "b, c", "d"),
    )  # fmt: skip
    assert one.model_copy(update={"about": f"{NOT_COUNTED}: x"}).merged(
        one.model_copy(update={"about": ""})
    ).about == ""  # fmt: skip
    assert str(one.merged(one)) == (
        "c: 6 of 18 rows of o have no match in it: '', 'a ', 'b, c', d, ...; in 2 snapshots, "
        f"{time} to {time}; in one of them 2 of 3 would"
    )


def test_confidential_fields_of_structs_in_maps_are_not_shown() -> None:
    text_type = Simple("string", "")
    hidden = Field("pin", text_type, True, '{"confidential": true}')
    inner = Struct((hidden, Field("x", text_type, True, "")), "")
    schema = Struct((Field("m", Map(text_type, inner, True, ""), True, ""),), "")
    (text,) = sample_texts(schema, [{"m": {"k": {"pin": "1234", "x": "a"}}}])
    assert text == '{"m": {"k": {"x": "a"}}}'


@pytest.mark.parametrize("program", ["Spark", "DuckDB", "pandas"])
def test_snippets_of_a_page_read_every_row(sold: Sold, program: str) -> None:
    snippet = dict(reading_snippets(str(sold.shop.published), "PARQUET"))[program]
    assert snippet in sold.page.replace(f"file://{sold.shop.published}/", str(sold.shop.published))
    count = "print(wide.count())" if program == "Spark" else "print(len(wide))"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", f"{snippet}\n{count}\n"],
        capture_output=True, text=True, check=True, env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert done.stdout.split()[-1] == "12"


def test_day_before_the_first_is_named_with_what_to_change(sold: Sold) -> None:
    early = sold.shop.day("orders", ORDERS, "2024-04-30")
    try:
        plan = snaploom("plan", "wide", "-f", sold.shop.model).out
        assert "1 snapshot never published: 2024-04-30T00:00:00Z" in plan
        assert "intervalStartDate to 2024-04-30T00:00:00Z or earlier" in plan
        run = sl.load(sold.shop.model).run("wide", progress=False)
        assert "NEVER_DUE orders 1" in kinds(run.data_findings)
        assert "1 snapshot never published" in str(sl.load(sold.shop.model).status("wide"))
        assert "1 snapshot never published" in sold.page
    finally:
        early.unlink()


def test_changed_file_is_named_until_its_snapshot_is_restated(sold: Sold) -> None:
    project = sl.load(sold.shop.model)
    sold.shop.day("customers", [{"customer_id": "c", "name": "y", "region_id": 1}], DAYS[1])
    text = "customers: 1 snapshot changed after publication: 2024-05-02T00:00:00Z"
    fix = "snaploom restate wide -f FILES --time 2024-05-02T00:00:00Z --acknowledge-readers"
    for shown in (str(project.plan("wide")), str(project.run("wide", progress=False)), sold.page):
        assert text in shown
        assert fix in shown
    run = project.restate("wide", DAYS[1], acknowledge_readers=True, progress=False)
    assert "CHANGED" not in str(kinds(run.data_findings))
    assert "changed after publication" not in str(project.status("wide"))


def test_file_that_no_source_reads_is_named_with_what_to_do(sold: Sold) -> None:
    project, late = sl.load(sold.shop.model), sold.shop.folder / "orders" / "20240507.PARQUET"
    late.touch()
    try:
        shown = (project.plan("wide"), project.run("wide", progress=False), project.status("wide"))
        for text in (*map(str, shown), sold.page):
            assert "orders: 1 file read by no source: 20240507.PARQUET" in text
            assert "if they are data, write them as 2024-05-04.parquet is, or widen" in text
    finally:
        late.unlink()


def test_findings_about_data_have_a_fix(sold: Sold, tmp_path: Path) -> None:
    shop = Shop(tmp_path, deepcopy(sold.shop.documents))
    shop.set("wide", "outputFolder.folderUri", f"file://{tmp_path}/fixed/")
    joined = shop.raw("wide")["spec"]["dataModel"]["otherDataSources"]
    for one in joined:
        one["snapshot"] = {"snapshotMissingMode": "CONTINUE_WARN"}
    shop.write()
    empty = sold.shop.day("orders", pa.Table.from_pylist([*SALES]).slice(0, 0), "2024-05-05")
    try:
        run = sl.load(shop.model).run("wide", progress=False)
    finally:
        empty.unlink()
    assert {one.kind.value for one in run.data_findings if one.fix} == {
        "EMPTY", "MISSING", "NULL_KEYS", "UNMATCHED",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "fix"), [("ab", "add normalize: [UPPER] to joinKey in"), ("ab AB", "deliver these")]
)
def test_normalisations_that_would_multiply_rows_are_no_fix(tmp_path, spark, keys, fix):
    sources = [day_source(tmp_path, name) for name in ("orders", "customers")]
    same = same_key("customer-id", "customer_id", "orders", "customers", data_type="string")
    shop = Shop(tmp_path, [*sources, same, wide(tmp_path, "customers")])
    shop.day("orders", [{"order_id": 1, "customer_id": "Ab"}])
    shop.day("customers", [{"customer_id": key} for key in keys.split()])
    shop.write()
    (found,) = sl.load(shop.model).run("wide", now=NOW, progress=False).data_findings
    assert found.fix.startswith(fix)


def test_columns_that_came_and_went_are_named_once(sold: Sold) -> None:
    day = "2024-05-05"
    sold.shop.day("orders", [{"order_id": 5, "customer_id": "a", "note": "new"}], day)
    sold.shop.day("customers", [{"customer_id": "a", "name": "x", "region_id": 1}], day)
    sold.shop.day("regions", [{"region_id": 1, "region": "north"}], day)
    project = sl.load(sold.shop.model)
    first, second = (project.run("wide", progress=False) for _ in range(2))
    assert {"GONE_COLUMNS orders 1", "NEW_COLUMNS orders 1"} <= {*kinds(first.data_findings)}
    assert "orders: 1 column new: note" in str(first)
    assert "column" not in str(second)


def test_due_snapshots_and_the_failure_of_the_last_run_are_on_the_page(tmp_path, spark):
    shop = Shop(tmp_path).with_data()
    for day in DAYS[1:]:
        shop.day("orders", ORDERS, day)
        shop.day("customers", [*CUSTOMERS, CUSTOMERS[0]], day)
    shop.write()
    run = sl.load(shop.model).run("wide", now=NOW, progress=False, raises=False)
    assert (len(run.published), run.report.phase) == (1, RunPhase.FAILED)
    page = Sold(shop, run).page
    assert "last run failed" in page
    assert "customer_id = 10 (2 rows)" in page
    assert re.search(r"Due</span><strong>2</strong>", page)
    assert re.search(r'class="lane due".*?aria-label="due: 2 intervals"', page)


def test_failure_in_python_has_keys_and_what_to_do(tmp_path: Path, spark: SparkSession) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("customers", [*CUSTOMERS, CUSTOMERS[0]])
    shop.write()
    with pytest.raises(sl.RunFailed) as caught:
        sl.load(shop.model).run("wide", now=NOW, progress=False)
    text = str(caught.value)
    assert "customer_id = 10 (2 rows)" in text
    assert (
        text.rpartition("fix:")[2].strip()
        == caught.value.runs[0].failed[0].message.rpartition("fix:")[2].strip()
    )


def test_folder_is_read_by_a_path_from_here(sold: Sold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sold.shop.folder)
    assert sl.schema("wide") == sl.schema(str(sold.shop.published))


@pytest.mark.parametrize("place", ["nothere", "empty"])
def test_declarations_that_are_not_there_are_one_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidDeclarations, match=r"no such file|no resource"):
        sl.load(tmp_path / place)
