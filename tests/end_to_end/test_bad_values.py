"""What a user sees of a run over text that cannot be read as it is written."""

from pathlib import Path

import pytest
from support.declared.shop import FIRST_DAY, Shop

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SCHEMA = [
    {"name": "order_id", "dataType": {"long": {}}},
    {"name": "customer_id", "dataType": {"long": {}}},
    {"name": "amount", "dataType": {"decimal": {"precision": 10, "scale": 2}}},
]


def test_a_run_names_file_line_field_and_value_that_would_change(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    rows = "order_id,customer_id,amount\n1,10,5.00\n2,11,7.505\n"
    (tmp_path / "orders" / f"{FIRST_DAY}.csv").write_text(rows)
    place = f"file://{tmp_path}/orders"
    shop.set("orders", "hdfsLike.format", "csv")
    shop.set("orders", "hdfsLike.formatOptions", {"header": "true"})
    shop.set("orders", "hdfsLike.schemaFields", SCHEMA)
    shop.set("orders", "hdfsLike.sourceUriGlobs", [f"{place}/*.csv"])
    shop.set("orders", "hdfsLike.sourceUriPrefix", f"{place}/{{day:STRING}}.csv")

    result = shop.run()

    assert result.code == 1
    shown = " ".join((result.out + result.err).split())
    for text in (
        "DataSource/orders",
        "a value of amount would change",
        f"7.505 in line 3 of file:{tmp_path}/orders/{FIRST_DAY}.csv",
        "a number with at most 2 digits after the point",
        "mode: PERMISSIVE",
    ):
        assert text in shown
    assert "Traceback" not in shown
    assert not shop.published_times()
