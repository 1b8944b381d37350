"""`snaploom init --from` over folders of exports: what it writes runs, and the rows are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import snaploom
from support.discovery.datasetfiles import DataSet
from support.discovery.datasets import logistik, shop

import snaploom as sl

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
def test_what_is_written_runs_and_joins_as_by_hand(
    tmp_path: Path, spark: SparkSession, case: str
) -> None:
    make, output, query, columns = CASES[case]
    found = published(make, tmp_path, spark, output, columns)
    with duckdb.connect() as connection:
        wanted = connection.execute(query.format(tmp_path / "data")).fetchall()
    assert len(found) > 100
    assert found == sorted(wanted)


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
    frame = project.read(output, at="2026-01-01", spark=spark)
    return sorted(tuple(row) for row in frame.selectExpr(*columns).collect())
