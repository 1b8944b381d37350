"""Relationships by several columns."""

from pathlib import Path

import pytest
from plugins.discovery.quality import found, links


def test_parts_of_a_key_are_of_one_role(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        shelves="site_id%9,shelf_no%7,height%3 63",
        moves="move_no,old_site_id%9,old_shelf_no%7,new_site_id%9,new_shelf_no%7 200",
    )
    assert links(result) == {
        f"moves.({role}_site_id, {role}_shelf_no) > shelves.(site_id, shelf_no)"
        for role in ("old", "new")
    }


def test_several_columns_refer_in_several_roles(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        teams="year%10,teamID%31,w%9 310", games="game_no,year%10,teamIDhome%31,teamIDaway%31 310",
    )  # fmt: skip
    assert links(result) == {
        "games.(teamIDhome, year) > teams.(teamID, year)",
        "games.(teamIDaway, year) > teams.(teamID, year)",
    }


@pytest.mark.parametrize(("column", "is_joined"), [("channel", True), ("w", False)])
def test_a_number_is_a_part_of_a_key_if_the_table_is_called_so(tmp_path, column, is_joined):
    result = found(
        tmp_path,
        channels=f"device_id%30,{column}%7,unit%2 210", readings=f"device_id%30,{column}%7,v%9 400",
    )  # fmt: skip
    assert bool(links(result)) is is_joined


@pytest.mark.parametrize(
    ("table", "columns", "guess"),
    [
        ("agg_sales_by_store", "store_id%7,product_id%9,total%5", "nothing"),
        ("stock", "store_id%7,product_id%9,on_hand%5", "nothing"),
        ("store_product", "store_id%7,product_id%9,supplier_id%5", "store_product"),
    ],
)
def test_keys_all_of_whose_columns_refer_are_joined_as_a_guess_unless_they_have_sums(
    tmp_path: Path, table: str, columns: str, guess: str
) -> None:
    tables = {
        "stores": "store_id,x%3 7", "products": "product_id,y%2 9", table: f"{columns} 63",
        "sales": "sale_no,store_id%7,product_id%9,paid%2 500",
    }  # fmt: skip
    result = found(tmp_path, **tables)
    (one,) = (each for each in result.guesses if "sales.(" in each.what)
    assert one.chosen.partition(".")[0] == guess


def test_facts_that_share_a_time_and_references_are_joined_as_a_guess(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        shops="shop_id,x%3 7", targets="shop_id%7,month%12,target%5 84",
        sales="sale_no,shop_id%7,month%12,paid%9 500",
    )  # fmt: skip
    (one,) = (each for each in result.guesses if "sales.(" in each.what)
    assert one.chosen == "targets.(shop_id, month)"


def test_days_of_a_calendar_of_one_year_are_joined_by_their_numbers_as_a_guess(tmp_path):
    result = found(
        tmp_path,
        calendar="date_key,month_of_year%12,day_of_month%31 372",
        sales="sale_no,month_of_year%12,day_of_month%31 500",
    )
    (guess,) = result.guesses
    assert guess.chosen == "calendar.(month_of_year, day_of_month)"


@pytest.mark.parametrize(
    ("spelt", "steps"), [("ab{} ", "TRIM"), ("AB{}", "UPPER"), ("00{}", "STRIP_LEADING_ZEROS")]
)
def test_keys_of_several_columns_that_are_spelt_in_two_ways_are_a_guess(tmp_path, spelt, steps):
    plain = "{}" if steps == "STRIP_LEADING_ZEROS" else "ab{}"
    shelves = [f"{site},{plain.format(n)},x" for site in range(101, 107) for n in range(1, 21)]
    goods = [f"{n},{101 + n % 6},{spelt.format(1 + n % 20)}" for n in range(240)]
    shelves, goods = ["site_id,shelf_code,name", *shelves], ["good_no,site_id,shelf_code", *goods]
    result = found(tmp_path, shelves=shelves, goods=goods)
    assert links(result) == {"goods.(site_id, shelf_code) > shelves.(site_id, shelf_code)"}
    assert f"normalize: [{steps}]" in result.files["relationships.yaml"]
    assert any(f"with {steps} (0.0 % as written)" in guess.text for guess in result.guesses)


def test_several_columns_with_a_value_twice_are_stated_with_the_place(tmp_path: Path) -> None:
    games = [f"2024-01-{n % 28 + 1:02},t{n % 9},{n % 5}" for n in (*range(200), 3)]
    goals = ["date,home,scorer", *games[:90]]
    left_out = found(tmp_path, games=["date,home,score", *games], goals=goals).declarations.left_out
    (one,) = (each for each in left_out if each.what == "goals.(date, home) -> games.(date, home)")
    assert "1 of 200 values stand in several rows (record 4 of" in one.why


def test_texts_that_describe_rows_with_a_key_of_their_own_join_as_a_guess(tmp_path: Path) -> None:
    towns = [f"{n + 1},town {n % 17},part {n // 17}" for n in range(30)]
    people = [f"{n + 1},town {n % 10},part {n % 2}" for n in range(200)]
    shops, people = ["shop_id,town,part", *towns], ["person_id,town,part", *people]
    result = found(tmp_path, shops=shops, people=people)
    assert links(result) == {"people.(town, part) > shops.(town, part)"}
    assert [guess.chosen for guess in result.guesses] == ["shops.(town, part)"]


@pytest.mark.parametrize(("size", "start", "is_asked"), [(3, 1, True), (2, 2, False)])
def test_a_list_that_numbers_its_own_rows_is_a_question(tmp_path, size, start, is_asked):
    ways = [f"{n + 900},{n // size + 1},{n % size + start}" for n in range(60)]
    huts = [f"{n // 5 + 1},{n % 5 + 1},{n % 7}" for n in range(150)]
    ways, huts = ["way_id,trail_id,seq", *ways], ["trail_id,seq,beds", *huts]
    result = found(tmp_path, ways=ways, huts=huts)
    assert ("ways.(trail_id, seq) > huts.(trail_id, seq)" in links(result)) is not is_asked
    assert any("counts the rows of ways" in guess.text for guess in result.guesses) is is_asked


@pytest.mark.parametrize(
    ("places", "chosen"), [(8, "nothing"), (2, "standings.(race_id, position)")]
)
def test_places_in_two_lists_are_no_silent_reference(tmp_path, places, chosen):
    ends = [f"{n + 900},{n // 8},{n % places + 1 - (n in {1, 9})}" for n in range(240)]
    ranks = [f"{n // 20},{n % 20 + 1},{n % 7}" for n in range(600)]
    ends, standings = ["end_id,race_id,position", *ends], ["race_id,position,wins", *ranks]
    (one,) = found(tmp_path, ends=ends, standings=standings).guesses
    assert (one.what, one.chosen) == ("ends.(race_id, position) refers to", chosen)


@pytest.mark.parametrize(("measure", "guess"), [("paid", "nothing"), ("held", "months")])
def test_what_has_only_numbers_beside_its_key_is_a_guess(tmp_path, measure, guess):
    sales = "sale_no,store_id%7,item_id%9,paid%2 500"
    months = f"store_id%7,item_id%9,{measure}%5 63"
    result = found(tmp_path, stores="id,x%3 7", months=months, sales=sales)
    (one,) = (each for each in result.guesses if "sales.(" in each.what)
    assert one.chosen.partition(".")[0] == guess


def test_a_source_of_few_rows_of_another_one_is_no_root(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        values="food_no%60,nutrient_no%50,amount%70,lab_id%9 300", nutrients="nutrient_no 50",
        foods="food_no,x%3 60",
        footnotes="text%3,food_no%7,nutrient_no%7 12",
    )  # fmt: skip
    one = next(
        r for r in result.relationships.declared if r.child == "footnotes" and "(" in r.target
    )
    assert (one.used, result.tree.root.table) == (7 / 300, "values")


@pytest.mark.parametrize(
    "shapes", ["shape_id%9,point%50 400", "shape_id%9,shape_x%50,shape_y%40 400"]
)
def test_the_same_name_on_both_sides_without_a_key_is_stated(tmp_path, shapes):
    result = found(tmp_path, trips="trip_id,shape_id%9 90", shapes=shapes)
    reasons = {each.what: each.why for each in result.declarations.left_out}
    assert "on both sides values in several rows" in reasons["shapes.shape_id and trips.shape_id"]


@pytest.mark.parametrize("other", ["item", "type"])
def test_columns_that_refer_to_other_tables_than_those_of_a_key_are_none(tmp_path, other):
    tables = {
        f"{other}s": "id,x%3 90", f"{other}_names": f"{other}_id%90,language_id%7,text%50 630",
        "item_types": "id,z%4 5", "item_type_names": "item_type_id%5,language_id%7,word%40 35",
        "languages": "id,v%2 7",
    }  # fmt: skip
    assert [each.what for each in found(tmp_path, **tables).guesses if "(" in each.what] == []


def test_a_part_of_a_key_is_called_as_the_table_whose_name_it_is(tmp_path: Path) -> None:
    provinces = [f"p{n % 40},c{n // 40},{n}.5" for n in range(50)]
    lakes = [f"lake {n},p{n % 10},c{n % 2},{n % 7}" for n in range(60)]
    result = found(
        tmp_path,
        provinces=["name,country,area", *provinces], lakes=["name,province,country,x", *lakes],
    )  # fmt: skip
    assert links(result) == {"lakes.(province, country) > provinces.(name, country)"}
