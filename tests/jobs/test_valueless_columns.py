"""Columns without any value, in files whose types are inferred."""

from pathlib import Path

import pytest
from support.declared.shop import FIRST_DAY, SECOND_DAY, CommandResult, Shop, day_source

from snaploom.reader import read

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.long]

HEADER = "order_id,customer_id,amount\n"
ORDERS = f"{HEADER}1,10,5.5\n2,11,7.5\n"
WITHOUT_KEYS = f"{HEADER}1,,5.5\n2,,7.5\n"
WITHOUT_AMOUNTS = f"{HEADER}1,10,\n2,11,\n"
CUSTOMERS = "customer_id,name\n10,Ada\n11,Grace\n"


def csv_shop(folder: Path, first: str, second: str = "", customers: str = CUSTOMERS) -> Shop:
    shop = Shop(folder)
    for number, name in enumerate(("orders", "customers")):
        place = f"file://{folder}/{name}"
        shop.documents[number] = day_source(
            folder,
            name,
            format="csv",
            formatOptions={"header": "true", "inferSchema": "true"},
            sourceUriGlobs=[f"{place}/*.csv"],
            sourceUriPrefix=f"{place}/{{day:STRING}}.csv",
        )
    for day, orders in ((FIRST_DAY, first), (SECOND_DAY, second)):
        if orders:
            write(folder / "orders" / f"{day}.csv", orders)
            write(folder / "customers" / f"{day}.csv", customers)
    return shop


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def matched(result: CommandResult) -> list[int]:
    assert result.code == 0, result.err
    return [one["joins"][0]["matched"] for one in result.document["snapshots"]]


def type_of(spark, shop: Shop, field: str) -> str:
    return read(spark, str(shop.published)).select(field).schema[0].dataType.simpleString()


@pytest.mark.parametrize("second", [WITHOUT_KEYS, WITHOUT_AMOUNTS])
def test_column_is_as_published_beside_the_day_that_publishes_it(spark, tmp_path, second) -> None:
    shop = csv_shop(tmp_path, ORDERS, second)
    result = shop.run("--parallel-snapshots", "2", "-o", "json")
    assert result.code == 0, result.err
    assert type_of(spark, shop, "data.customer_id") == "int"
    assert type_of(spark, shop, "data.amount") == "double"


def test_key_without_any_value_on_a_later_day_is_as_published_and_matches_nothing(spark, tmp_path):
    shop = csv_shop(tmp_path, ORDERS, WITHOUT_KEYS)
    assert matched(shop.run("-o", "json")) == [2, 0]
    assert type_of(spark, shop, "data.customer_id") == "int"


def test_key_without_any_value_on_the_first_day_is_as_declared(spark, tmp_path) -> None:
    shop = csv_shop(tmp_path, WITHOUT_KEYS, ORDERS)
    assert matched(shop.run("-o", "json")) == [0, 2]
    assert type_of(spark, shop, "data.customer_id") == "bigint"


@pytest.mark.parametrize("customers", ["customer_id,name\n,Ada\n", "customer_id,name\n"])
def test_joined_source_without_keys_or_without_rows_matches_nothing(tmp_path, customers):
    shop = csv_shop(tmp_path, ORDERS, customers=customers)
    assert matched(shop.run("-o", "json")) == [0]


def test_column_without_any_value_is_of_the_type_that_is_published(spark, tmp_path) -> None:
    shop = csv_shop(tmp_path, ORDERS, WITHOUT_AMOUNTS)
    assert matched(shop.run("-o", "json")) == [2, 2]
    assert type_of(spark, shop, "data.amount") == "double"
    amounts = read(spark, str(shop.published)).select("data.amount").collect()
    assert sorted(str(row.amount) for row in amounts) == ["5.5", "7.5", "None", "None"]


def test_column_that_was_published_as_text_names_schema_fields(tmp_path: Path) -> None:
    result = csv_shop(tmp_path, WITHOUT_AMOUNTS, ORDERS).run()
    assert result.code == 1
    assert "data.amount is string in snapshot" in result.err
    assert "declare the column in schemaFields" in result.err


def test_key_of_text_with_a_value_is_refused_with_the_schema_to_declare(tmp_path: Path) -> None:
    result = csv_shop(tmp_path, f"{HEADER}1,,5.5\n2,x,7.5\n").run()
    assert result.code == 1
    assert "found:    type string" in result.err
    assert "declare schemaFields of orders with customer_id as bigint" in result.err
