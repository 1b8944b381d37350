"""Files that are parts of one table though their names differ in a word, and files that are not."""

from pathlib import Path

import pytest
from support.discovery.stars import write_tables

from snaploom.plugins.discovery.discover import Discovery, discover


def orders(start: int, number: int = 20, header: str = "order_id,customer_id,status,total") -> str:
    rows = "".join(f"{n},{n % 7},new,{n}.5\n" for n in range(start, start + number))
    return f"{header}\n{rows}"


def found(folder: Path, **files: str) -> Discovery:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return discover([str(folder)], "file:///model/")


@pytest.mark.parametrize("form", ["orders_{}", "{}__orders", "orders__{}__2026-01-01"])
def test_parts_of_a_table_are_one_source(tmp_path: Path, form: str) -> None:
    result = found(tmp_path, **{form.format("north"): orders(1), form.format("south"): orders(50)})
    (profile,) = result.profiles
    assert (profile.name, profile.rows) == ("orders", 40)
    assert "{file_variant:STRING}" in result.files["sources.yaml"]


@pytest.mark.parametrize(("step", "sources"), [(100, 1), (10, 8)])
def test_many_files_that_are_called_by_a_code_are_one_source_by_keys(tmp_path, step, sources):
    codes = ["AD", "AE", "AF", "AL", "AM", "AO", "AR", "AT"]
    files = {f"cities__{code}": orders(1 + step * n, 20 - 2 * n) for n, code in enumerate(codes)}
    result = found(tmp_path, **files)
    assert len(result.profiles) == sources
    assert ("cities" in {profile.name for profile in result.profiles}) is (sources == 1)


@pytest.mark.parametrize("form", ["sales_2024_{}", "{}_2024", "2024__{}__sales", "sales_2024{}"])
@pytest.mark.parametrize("words", ["styczen luty marzec", "T1 T2 T3", "H1 H2"])
def test_words_beside_a_year_that_may_be_parts_of_it_are_a_guess(tmp_path, form, words):
    result = found(tmp_path, **{form.format(word): orders(1) for word in words.split()})
    assert [f"{profile.times[0]:%m-%d}" for profile in result.profiles] == ["01-01"] * len(
        words.split()
    )
    (guess,) = result.guesses
    assert "the year, and not months or other parts of it" in guess.text


@pytest.mark.parametrize(
    "names",
    ["s_1Q24 s_2Q24", "s_2024-05-01_v1 s_2024-05-01_v2", "s_2024-05-01 s_20240502", "1__x 2__x"],
)
def test_sources_whose_names_differ_in_numbers_are_a_guess(tmp_path: Path, names: str) -> None:
    result = found(tmp_path, **{name: orders(9 * n) for n, name in enumerate(names.split())})
    assert len(result.profiles) == 2
    (guess, *_) = result.guesses
    assert "of sources of their own, and not of one" in guess.text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("orders_north", orders(1)), ("orders_south", orders(10))),
        (("orders_north", orders(1)), ("orders_south", orders(50, 3))),
        (("north_orders", orders(1)), ("south_orders", orders(50))),
        (("orders", orders(1)), ("returns", orders(50))),
        (("orders_north", orders(1)), ("orders_south", orders(50, header="order_id,a,b,c"))),
        (("orders_by_north", orders(1)), ("orders_in_south", orders(50))),
    ],
    ids=["keys in common", "few rows", "a word in front", "other names", "columns", "two words"],
)  # fmt: skip
def test_other_tables_stay_apart(tmp_path, first, second):
    assert len(found(tmp_path, **dict([first, second])).profiles) == 2


def test_parts_stay_apart_where_their_glob_takes_others(tmp_path: Path) -> None:
    others = {"orders_all": "week,total\n1,2\n2,3\n"}
    result = found(tmp_path, orders_north=orders(1), orders_south=orders(50), **others)
    assert {profile.name for profile in result.profiles} == {
        "orders_north", "orders_south", "orders_all",
    }  # fmt: skip


def test_files_whose_names_differ_in_a_number_are_tables_if_they_refer_to_others(tmp_path):
    write_tables(
        tmp_path,
        agg_3_sales="customer_id,units%5 90", agg_4_sales="product_id%9,store_id%4,units%5 90",
        trips_1="trip_id,driver_id%9,km%7 90", trips_2="trip_id,driver_id%9,km%7,toll%3 90",
    )  # fmt: skip
    result = discover([str(tmp_path)], "file:///m/")
    assert {each.name for each in result.profiles} == {"agg_3_sales", "agg_4_sales", "trips"}
