"""`snaploom init --from` over folders of exports: what it writes runs, and the rows are right."""

import os
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import snaploom
from support.discovery.datasetfiles import DataSet
from support.discovery.datasets import logistik, shop
from support.discovery.messy import haendler
from support.discovery.stars import write_tables
from support.documentation.examples import Shell, published_files, run_command

import snaploom as sl
from snaploom.models.common import format_instant
from snaploom.policy.fileformats import AVRO_CLASS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHOP = """
    SELECT i.order_id, i.line, p.name, o.status, c.name, b.city, s.city, t.city, k.name
    FROM read_csv('{0}/order_items_20260101.csv') i
    LEFT JOIN read_parquet('{0}/products/dt=2026-01-01/*.parquet') p ON i.product_id = p.id
    LEFT JOIN read_csv('{0}/orders_20260101.csv') o ON i.order_id = o.id
    LEFT JOIN read_parquet('{0}/customers/dt=2026-01-01/*.parquet') c ON o.customer_id = c.id
    LEFT JOIN read_csv('{0}/addresses/addresses_20260101.csv') b ON o.billing_address_id = b.id
    LEFT JOIN read_csv('{0}/addresses/addresses_20260101.csv') s ON o.shipping_address_id = s.id
    LEFT JOIN read_csv('{0}/stores.csv') t ON o.store_id = t.id
    LEFT JOIN read_csv('{0}/categories.csv') k ON p.category_id = k.id
"""
LOGISTIK = """
    SELECT p.auftragsnr, p.pos, a.bezeichnung, w.bezeichnung, k.firma, v.ort, z.ort, f.baujahr
    FROM read_csv('{0}/2026/01/01/auftragspositionen.csv', delim=';') p
    LEFT JOIN read_csv('{0}/2026/01/01/artikel.csv', delim=';') a USING (artikelnr)
    LEFT JOIN read_csv('{0}/stammdaten/warengruppen.csv', delim=';') w ON a.warengruppe = w.kuerzel
    LEFT JOIN read_csv('{0}/2026/01/01/auftraege.csv', delim=';') h USING (auftragsnr)
    LEFT JOIN read_csv('{0}/2026/01/01/kunden.csv', delim=';') k USING (kundennr)
    LEFT JOIN read_csv('{0}/stammdaten/lager.csv', delim=';') v ON h.abgangslager = v.lager_nr
    LEFT JOIN read_csv('{0}/stammdaten/lager.csv', delim=';') z ON h.ziellager = z.lager_nr
    LEFT JOIN read_csv('{0}/2026/01/01/touren.csv', delim=';') t USING (tour_id)
    LEFT JOIN read_csv('{0}/stammdaten/fahrzeuge.csv', delim=';') f USING (kennzeichen)
"""
ODD = "My Döc%20s #1 (100%) {a} {{b}} [c]*? \"d\" 'e' \\f\n$g; h,i=j 日本"
"""A name with all that paths, globs, prefixes, SQL and YAML take for their own."""
CASES = {
    "dated names, two addresses, a category": (
        shop, "order-items-wide", SHOP,
        ("data.order_id", "data.line", "products.data.name", "orders.data.status",
         "orders.orders_customer.data.name", "orders.billing_address.data.city",
         "orders.shipping_address.data.city", "orders.stores.data.city",
         "products.products_category.data.name"),
    ),
    "dates in three folders, semicolons": (
        logistik, "auftragspositionen-wide", LOGISTIK,
        ("data.auftragsnr", "data.pos", "artikel.data.bezeichnung",
         "artikel.warengruppen.data.bezeichnung", "auftraege.kunden.data.firma",
         "auftraege.abgangslager.data.ort", "auftraege.ziellager.data.ort",
         "auftraege.touren.fahrzeuge.data.baujahr"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_runs_and_joins_as_by_hand(tmp_path, spark, case):
    make, output, query, columns = CASES[case]
    folder = tmp_path / "My Döc%20s #1 (100%)"
    found = published(make, folder, spark, output, columns)
    with duckdb.connect() as connection:
        wanted = connection.execute(query.format(folder / "data")).fetchall()
    assert len(found) > 100
    assert found == sorted(wanted)


def started(folder: Path, spark: SparkSession, output: str) -> sl.Project:
    """Start from `folder/data`, and publish whatever there is of the output."""
    result = snaploom("init", folder / "model", "--from", folder / "data")
    assert result.code == 0, result.err
    project = sl.load(folder / "model")
    assert project.validate().is_ok
    project.run(output, spark=spark, progress=False)
    return project


def test_events_are_published_by_their_day(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "data").mkdir()
    start = datetime(2026, 2, 1, 20, tzinfo=UTC)
    events = [{"event_id": n, "user_id": f"u{n % 7}", "occurred_at": start + timedelta(hours=n)}
              for n in range(40)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(events), tmp_path / "data" / "events.parquet")
    users = "".join(f"u{n},name {n}\n" for n in range(7))
    (tmp_path / "data" / "users.csv").write_text("user_id,name\n" + users)
    project = started(tmp_path, spark, "events-wide")
    frame = project.read("events-wide", at="2026-02-02", spark=spark)
    found = {
        row[0]: row[1] for row in frame.selectExpr("data.event_id", "users.data.name").collect()
    }
    assert found == {n: f"name {n % 7}" for n in range(4, 28)}


@pytest.mark.long
@pytest.mark.parametrize(
    "form",
    ["sales_%m-%d-%Y.csv", "%d.%m.%Y/sales.csv", "sales/day=%-m-%-d-%Y/a.csv",
     "%Y/%B/%-d/sales.csv", "%m/%d/%Y/sales.csv", "sales_%-d%b%y.csv", "%m-%Y/sales_%d.csv",
     "{x}*[y]? {{z/sales_%y%m%d.csv"],
)  # fmt: skip
def test_days_of_other_orders_are_published_with_all_rows(tmp_path, spark, form):
    days = [date(2024, 5, day) for day in (9, 10, 11, 13, 14, 16)]
    for day in days:
        file = tmp_path / ODD / "data" / day.strftime(form)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("sale_id,shop\n" + "".join(f"{day.day}{n},s{n}\n" for n in range(4)))
    project = started(tmp_path / ODD, spark, "sales-wide")
    assert os.listdir(tmp_path) == [ODD]
    times = [format_instant(snapshot.time) for snapshot in project.snapshots("sales-wide")]
    assert times == [f"{day}T00:00:00Z" for day in days]
    for day in days:
        rows = project.read("sales-wide", at=day.isoformat(), spark=spark).select("data.sale_id")
        assert {row[0] for row in rows.collect()} == {day.day * 10 + n for n in range(4)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("names", "times"),
    [
        (["x_2023Q4.csv", "x_2024Q1.csv"], ["2023-10-01", "2024-01-01"]),
        (["2023/Q4/x.csv", "2024/Q2/x.csv"], ["2023-10-01", "2024-04-01"]),
        (["2024/févr./x.csv", "2024/août/x.csv"], ["2024-02-01", "2024-08-01"]),
        (["1. Ma\u0308rz 2024.csv", "2. Dez. 2024.csv"], ["2024-03-01", "2024-12-02"]),
    ],
)
def test_quarters_and_months_with_names_are_published(tmp_path, spark, names, times):
    for number, name in enumerate(names):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(f"sale_id,shop\n{number},a\n{number + 9},b\n")
    assert snaploom("init", tmp_path / "model", "--from", tmp_path / "data").code == 0
    project = sl.load(tmp_path / "model")
    (output,) = project.outputs
    project.run(output, spark=spark, progress=False)
    for number, day in enumerate(times):
        rows = project.read(output, at=day, spark=spark).select("data.sale_id").collect()
        assert {row[0] for row in rows} == {number, number + 9}


def test_a_text_for_no_value_is_null_in_its_own_columns_only(tmp_path, spark):
    (tmp_path / "data").mkdir()
    countries = "code,people,a.b (%),since\nNA,3,1.5,1990-03-21\nDE,NA,\\N,NULL\nFR,68,NA,N/A\n"
    countries += "IT,NA,2,NULL\nES,1,NA,N/A\nPT,NA,NA,N/A\n"
    (tmp_path / "data" / "countries.csv").write_text(countries)
    codes = ["NA", "DE", "FR", "IT", "ES", "PT"]
    visits = "".join(f"{n},{codes[n % 6]},{n if n % 4 else 'NA'}\n" for n in range(40))
    (tmp_path / "data" / "visits.csv").write_text("visit_id,code,rating\n" + visits)
    project = started(tmp_path, spark, "visits-wide")
    frame = project.read("visits-wide", spark=spark)
    rows = frame.selectExpr("data.visit_id", "data.rating", "countries.data.*").collect()
    people, areas = [3, None, 68, None, 1, None], [1.5, None, None, 2.0, None, None]
    since = [date(1990, 3, 21), *[None] * 5]
    known = list(zip(codes, people, areas, since, strict=True))
    assert {row[0]: tuple(row[1:]) for row in rows} == {
        n: (n if n % 4 else None, *known[n % 6]) for n in range(40)
    }


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id,shop\n1,a,2\n2,b,3\n", 0),
        ("id,shop,v,\n1,a,2\n2,b,3\n", 0),
        ("Report\n\nid;shop;v\n1;a;2\n2;b;3\n", 0),
        ("id;shop;v\n1;a;2\n2;b;3\nTotal;100;;\n", 0),
        ("id;shop;v\n1;a;2\n2;b;3\nTotal;;5\n", 3),
        ("id;shop;v;\n1;a;2;\n2;b;3;\n", 2),
        (",shop,v\n0,a,2\n1,b,3\n", 2),
        ("id,shop,v\n\n1,a,2\n\n2,b,NaN\n", 2),
        ('\ufeffid,shop,shop\r\n1,a,2\r\n2,"b\nc",\r\n', 2),
    ],
)
def test_what_is_declared_of_a_text_is_what_its_first_run_reads(tmp_path, spark, text, rows):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text(text, newline="")
    if rows:
        project = started(tmp_path, spark, "sales-wide")
        assert project.read("sales-wide", spark=spark).count() == rows
    else:
        result = snaploom("init", tmp_path / "model", "--from", tmp_path / "data")
        assert result.code == 1
        assert " values where other lines have 3: " in result.err.replace("1 value ", "1 values ")


def test_days_of_a_column_in_another_order_are_published(tmp_path, spark):
    (tmp_path / "data").mkdir()
    days = [date(2024, 5, day) for day in (9, 11, 13)]
    rows = "".join(f"{n},{days[n % 3]:%m/%d/%Y},{n / 4}\n" for n in range(60))
    (tmp_path / "data" / "sales.csv").write_text("sale_id,sale_date,amount\n" + rows)
    project = started(tmp_path, spark, "sales-wide")
    for place, day in enumerate(days):
        rows = project.read("sales-wide", at=day.isoformat(), spark=spark).select("data.sale_id")
        assert {row[0] for row in rows.collect()} == set(range(place, 60, 3))


def test_a_register_by_day_is_joined_as_of_each_day(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "data").mkdir()
    days = [date(2026, 2, 1), date(2026, 2, 2), date(2026, 2, 3)]
    prices = [{"as_of": day, "product_id": n, "price": n * 10 + day.day}
              for day in days for n in range(1, 9)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(prices), tmp_path / "data" / "products.parquet")
    for day in days:
        rows = "".join(f"{n + 100 * day.day},{n % 8 + 1}\n" for n in range(20))
        (tmp_path / "data" / f"sales_{day:%Y%m%d}.csv").write_text("sale_id,product_id\n" + rows)
    project = started(tmp_path, spark, "sales-wide")
    for day in days:
        frame = project.read("sales-wide", at=day.isoformat(), spark=spark)
        rows = frame.selectExpr("data.product_id", "products.data.price").collect()
        assert {row[0]: row[1] for row in rows} == {n: n * 10 + day.day for n in range(1, 9)}


def test_one_mark_less_joins_each_row_as_of_its_own_time(tmp_path, spark):
    data, marked = tmp_path / "data", tmp_path / "model" / "relationships.yaml"
    start = datetime(2026, 2, 1, tzinfo=UTC)
    at = [start + timedelta(hours=n) for n in range(24)]
    trades = [f"{n + 500},{['EUR', 'USD', 'GBP'][n % 3]},{at[n % 24]:%FT%TZ}" for n in range(48)]
    ends = {n: f"{at[n + 6]:%FT%TZ}" for n in (4, 10)}  # the last one is open
    rates = [f"{currency},{at[n]:%FT%TZ},{ends.get(n, '')},{n}"
             for n in (4, 10, 16) for currency in ("EUR", "USD", "CHF")]  # fmt: skip
    data.mkdir()
    (data / "trades.csv").write_text("\n".join(["trade_id,currency,traded_at", *trades, ""]))
    (data / "rates.csv").write_text("\n".join(["currency,valid_from,valid_to,rate", *rates, ""]))
    assert snaploom("init", tmp_path / "model", "--from", data).code == 0
    marked.write_text(marked.read_text().replace("    # - {dataSources", "    - {dataSources"))
    project = sl.load(tmp_path / "model")
    project.run("trades-wide", spark=spark, progress=False)
    rows = project.read("trades-wide", spark=spark).selectExpr("data.trade_id", "rates.data.rate")
    wanted = duckdb.sql(
        f"SELECT trade_id, rate FROM '{data}/trades.csv' t ASOF LEFT JOIN '{data}/rates.csv' r "
        "ON t.currency = r.currency AND t.traded_at >= r.valid_from ORDER BY 1"
    ).fetchall()
    assert sorted(tuple(row) for row in rows.collect()) == wanted
    assert len({rate for _, rate in wanted}) == 4


STAR = """
    SELECT s.ss_ticket, h.hd_label, c.cd_label, b.ca_label, t.ca_label, m.name, r.label
    FROM read_csv('{0}/store_sales.csv') s
    LEFT JOIN read_csv('{0}/household_demographics.csv') h ON s.ss_hdemo_sk = h.hd_demo_sk
    LEFT JOIN read_csv('{0}/customer_demographics.csv') c ON s.ss_cdemo_sk = c.cd_demo_sk
    LEFT JOIN read_csv('{0}/customer_address.csv') b ON s.ss_bill_addr_sk = b.ca_address_sk
    LEFT JOIN read_csv('{0}/customer_address.csv') t ON s.ss_ship_addr_sk = t.ca_address_sk
    LEFT JOIN read_csv('{0}/employee.csv') e ON s.ss_employee_id = e.employee_id
    LEFT JOIN read_csv('{0}/employee.csv') m ON e.manager_id = m.employee_id
    LEFT JOIN read_csv('{0}/reason.csv') r ON s.ss_reason_id = r.reason_id
"""


def test_a_star_that_counts_from_one_is_joined_and_one_mark_less_joins_the_rest(tmp_path, spark):
    data = write_tables(
        tmp_path / "data",
        store_sales="ss_ticket,ss_hdemo_sk%60,ss_cdemo_sk%55,ss_bill_addr_sk%40,ss_ship_addr_sk%37,"
        "ss_employee_id%30,ss_reason_id%20,ss_paid%9 400",
        customer_demographics="cd_demo_sk,cd_label%91 300",
        household_demographics="hd_demo_sk,hd_label%13 60",
        customer_address="ca_address_sk,ca_label%17 40",
        employee="employee_id,manager_id%7,name%29 30",
        reason="reason_id,label%6,code%5 9",  # half of the reasons are in no register
    )
    project = started(tmp_path, spark, "store-sales-wide")
    marked = tmp_path / "model" / "relationships.yaml"
    text = marked.read_text()
    assert text.count("    # - {dataSources") == 1
    assert "reason" not in project.read("store-sales-wide", spark=spark).columns
    shutil.rmtree(tmp_path / "model" / "wide")
    marked.write_text(text.replace("    # - {dataSources", "    - {dataSources"))
    project = sl.load(tmp_path / "model")
    project.run("store-sales-wide", spark=spark, progress=False)
    found = project.read("store-sales-wide", spark=spark).selectExpr(
        "data.ss_ticket", "household_demographics.data.hd_label",
        "customer_demographics.data.cd_label", "bill_addr.data.ca_label",
        "ship_addr.data.ca_label", "employee.manager_employee.data.name", "reason.data.label",
    )  # fmt: skip
    with duckdb.connect() as connection:
        wanted = connection.execute(STAR.format(data)).fetchall()
    assert sorted(tuple(row) for row in found.collect()) == sorted(wanted)


def test_iso_weeks_of_names_are_published_by_their_monday(tmp_path, spark):
    haendler().write(tmp_path / "data")
    project = started(tmp_path, spark, "bestellpositionen-wide")
    frame = project.read("bestellpositionen-wide", at="2026-01-05", spark=spark)
    orders = frame.selectExpr("data.BestellNr", "bestellungen.data.KundenNr").collect()
    assert {row[0] for row in orders} == {f"B{n:07d}" for n in range(121, 241)}
    assert all(row[1] for row in orders)


@pytest.mark.long
@pytest.mark.parametrize("codec", ["snappy", "deflate", "zstandard", "bzip2", "uncompressed"])
def test_avro_that_spark_wrote_is_read_with_its_types(tmp_path, spark, codec):
    frame = spark.range(60).selectExpr(
        "id AS sale_id", "concat('P', id % 9) AS part_no", "CAST(id AS DECIMAL(9, 2)) AS amount",
        "make_date(2026, 2, CAST(id % 3 + 1 AS INT)) AS sale_date", "array(id) AS list",
        "timestamp_micros(id) AS at", "IF(id > 5, id, NULL) AS other",
    )  # fmt: skip
    (tmp_path / "data").mkdir()
    place = str(tmp_path / "data" / "sales")
    frame.coalesce(1).write.format(AVRO_CLASS).option("compression", codec).save(place)
    parts = "".join(f"P{n},part {n}\n" for n in range(9))
    (tmp_path / "data" / "parts.csv").write_text("part_no,title\n" + parts)
    project = started(tmp_path, spark, "sales-wide")
    rows = project.read("sales-wide", at="2026-02-02", spark=spark).selectExpr(
        "data.sale_id", "parts.data.title"
    ).collect()  # fmt: skip
    assert {row[0]: row[1] for row in rows} == {n: f"part {n % 9}" for n in range(1, 60, 3)}


def published(
    make: Callable[[], DataSet],
    folder: Path,
    spark: SparkSession,
    output: str,
    columns: Sequence[str],
) -> list[tuple[object, ...]]:
    """Start from the data, publish the oldest snapshot, and read columns of it."""
    make().write(folder / "data")
    result = snaploom("init", folder / "model", "--from", folder / "data")
    assert result.code == 0, result.err
    project = sl.load(folder / "model")
    assert project.validate().is_ok
    project.run(output, limit=1, spark=spark, progress=False)
    assert any((folder / "model").rglob("*.parquet"))
    frame = project.read(output, at="2026-01-01", spark=spark)
    return sorted(tuple(row) for row in frame.selectExpr(*columns).collect())


def test_starter_runs_as_its_comments_describe(shared_shell: Shell, tmp_path: Path) -> None:
    name = "my first model"
    run_command(f"snaploom init '{name}'", tmp_path, shared_shell)
    for command in ("validate", "plan orders-wide -f", "run orders-wide -f"):
        run_command(f"snaploom {command} '{name}'", tmp_path, shared_shell)
    published = published_files(tmp_path / name / "wide")
    assert list(published) == ["2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"]
    with duckdb.connect() as connection:
        names = connection.execute(
            "SELECT data.order_id, customer.data.name FROM read_parquet(?) ORDER BY 1",
            [published["2024-05-02T00:00:00Z"]],
        ).fetchall()
    assert names == [(103, "Carl"), (104, "Blaise"), (105, None), (106, None)]
