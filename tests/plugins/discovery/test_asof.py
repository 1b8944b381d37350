"""Joins as of a time that are proposed: one row a key and time, never declared unasked."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.shop import snaploom

from snaploom.plugins.discovery.discover import Discovery, discover
from snaploom.plugins.discovery.foundfiles import Question, nobody
from snaploom.plugins.discovery.relationships import Relationship

Rows = list[dict[str, object]]
START = datetime(2026, 3, 2, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def orders(**others: object) -> Rows:
    return [
        {"order_id": 900 + 7 * n, "currency": ["EUR", "USD", "GBP"][n % 3], "shop_id": n % 4 + 50,
         "paid": n / 4, "ordered_at": at(5 * n), **others}
        for n in range(60)
    ]  # fmt: skip


def rates(first: float = 0, last_day: float = 72) -> Rows:
    """A row for each currency every third day."""
    return [
        {"currency": currency, "valid_from": at(72 * n + first).date(), "rate": n / 8,
         "valid_to": at(72 * n + first + last_day).date() if n < 4 else None}
        for n in range(5) for currency in ("EUR", "USD", "GBP")
    ]  # fmt: skip


def without(rows: Rows, *names: str) -> Rows:
    return [{name: row[name] for name in row if name not in names} for row in rows]


def scores() -> Rows:
    return [
        {"shop_id": n % 4 + 50, "score": n * 3 % 11 / 2, "scored_at": at(7.5 * n + 20)}
        for n in range(40)
    ]


def first(questions: Sequence[Question]) -> Sequence[int | None]:
    return [0] * len(questions)


def found(folder: Path, *, is_answered: bool = False, **tables: Rows) -> Discovery:
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    ask = first if is_answered else nobody
    return discover([str(folder)], "file:///model/", "orders", ask)


def proposed(result: Discovery) -> list[Relationship]:
    assert not any(one.as_of for one in result.relationships.declared)
    return [one for one in result.relationships.weak if one.as_of]


def rule(result: Discovery) -> str:
    (one,) = proposed(result)
    return one.as_of.text


def test_rates_are_proposed_with_their_evidence_and_not_joined(tmp_path: Path) -> None:
    result = found(tmp_path, orders=orders(), rates=without(rates(), "valid_to"))
    (guess,) = result.guesses
    assert guess.text.startswith("guess: rates as of each row's time in orders: no join")
    assert (
        "100.0 % of 60 rows of orders (all rows) find a row of rates by currency, newest "
        "valid_from at or before ordered_at, in UTC; (currency, valid_from) is unique in all rows; "
        "5.0 rows a key" in guess.text
    )
    assert "# - {dataSources: [orders]" in result.files["relationships.yaml"]


def test_the_share_of_rows_is_that_of_an_as_of_join(tmp_path: Path) -> None:
    given = {"orders": orders(), "scores": scores()}
    (one,) = proposed(found(tmp_path, **given))
    matched = duckdb.sql(
        f"SELECT count(*) FROM '{tmp_path}/orders.parquet' o ASOF JOIN '{tmp_path}/scores.parquet' "
        "s ON o.shop_id = s.shop_id AND o.ordered_at >= s.scored_at"
    ).fetchall()
    assert one.included.share == matched[0][0] / 60 < 1
    assert rule(found(tmp_path)) == "newest scored_at at or before ordered_at"


@pytest.mark.parametrize(
    ("hours", "until", "remark"),
    [
        (72, ", until valid_to", "no row overlaps the next one until valid_to"),
        (48, "", "without valid_to, which has the last day of a row"),
        (96, "", "without valid_to: 12 rows overlap the next one"),
    ],
    ids=["until", "last day", "overlap"],
)
def test_ends_are_proposed_only_where_intervals_follow_each_other(tmp_path, hours, until, remark):
    result = found(tmp_path, orders=orders(), rates=rates(last_day=hours))
    assert rule(result) == f"newest valid_from at or before ordered_at{until}, in UTC"
    assert remark in proposed(result)[0].evidence


def test_a_key_that_both_refer_to_is_used_and_the_array_stays(tmp_path: Path) -> None:
    shops: Rows = [{"shop_id": n + 50, "city": f"c{n}"} for n in range(4)]
    result = found(tmp_path, orders=orders(), shops=shops, scores=scores())
    assert [one.child_columns for one in proposed(result)] == [("shop_id",)]
    assert {node.table for node in result.tree.nodes} == {"orders", "shops", "scores"}


@pytest.mark.parametrize(
    ("root", "child"),
    [
        (without(orders(), "ordered_at"), rates()),
        (orders(ordered_at=None), rates()),
        (orders(), rates() + rates()[3:4]),
        (orders(), rates(first=1000)),
        (orders(), [{**row, "currency": "?"} for row in scores()]),
        (without(orders(), "currency"), rates()),
        (orders(), [{**row, "valid_from": None} for row in rates()]),
    ],
    ids=["no time", "no time given", "a tie", "later than all", "other keys", "no key", "no start"],
)
def test_nothing_is_proposed_without_a_time_or_with_ties_or_where_no_row_is_found(
    tmp_path: Path, root: Rows, child: Rows
) -> None:
    child = without(child, "shop_id")
    assert proposed(found(tmp_path, orders=root, changes=child)) == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_an_answer_or_one_mark_less_joins_it(tmp_path: Path, is_answered: bool) -> None:
    result = found(tmp_path, is_answered=is_answered, orders=orders(), rates=rates())
    model = tmp_path / "model"
    model.mkdir()
    for name, text in result.files.items():
        (model / name).write_text(text.replace("    # - {", "    - {"))
    output = result.declarations.output.resource
    (other,) = output.spec.data_model.other_data_sources
    assert other.as_of is not None
    assert snaploom("validate", "-f", model).out.endswith("0 errors, 0 warnings.\n")
    drawn = snaploom("plan", "orders-wide", "-f", model, "--offline").out
    assert "rates  by orders-rates, newest valid_from at or before ordered_at" in drawn
