"""Parents of columns: chosen together, never silently where two are close."""

import uuid
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest
from plugins.discovery.domains import DOMAINS, domain
from plugins.discovery.quality import found, judged, links
from plugins.discovery.warehouses import warehouse
from support.discovery.stars import star, write_tables

from snaploom.plugins.discovery.discover import discover
from snaploom.plugins.discovery.foundfiles import Question


@pytest.mark.parametrize(
    "data",
    [
        *map(star, (0, 3, 15, 36)),
        *map(warehouse, (2, 21, 29, 55)),
        *(domain(name, seed) for name in DOMAINS for seed in (1, 4)),
    ],
    ids=lambda data: data.name,
)
def test_keys_that_all_count_from_one_have_no_silent_wrong_parent(tmp_path, data):
    data.write(tmp_path)
    result = discover([str(tmp_path)], "file:///m/")
    stated = {guess.what.removesuffix(" refers to") for guess in result.guesses}
    wrong, missed = (
        {f"{child}.{', '.join(columns)}" for child, columns, *_ in links_}
        for links_ in (judged(data, result).wrong, judged(data, result).missed)
    )
    assert (wrong - stated, missed - stated) == (set(), set())


@pytest.mark.parametrize(("values", "is_stated"), [(40, False), (43, False), (50, True)])
def test_numbers_beyond_a_sequence_of_keys_make_a_reference_a_guess(tmp_path, values, is_stated):
    lines = f"line_no,hero_id%{values} 400"
    result = found(tmp_path, heroes="hero_id,legs%3 40", lines=lines)
    assert links(result) == {"lines.hero_id > heroes.hero_id"}
    assert [guess.what for guess in result.guesses] == ["lines.hero_id refers to"] * is_stated


@pytest.mark.parametrize(
    ("tables", "stated"),
    [
        (
            {"doctors": "doctor_id,x%3 300", "reserve_doctors": "doctor_id,y%3 140"},
            "reserve_doctors.doctor_id",
        ),
        ({"partners": "id,x%3 90", "kits": "kit_no,part_id%20 400"}, "kits.part_id"),
        ({"partners": "id,x%3 90", "kits": "kit_no,part_id%80 400"}, ""),
        ({"seats": "seat_id,x%3 90", "pupils": "pupil_no,seat%9 400"}, "pupils.seat"),
        ({"shops": "shop_id,x%3 90", "sales": "sale_no,shop_id%9 400"}, ""),
        # Several versions a customer, and nothing on top of the parents.
        ({"customers": "id,customer_no%30 90", "orders": "no,cust_id%30 400"}, "orders.cust_id"),
        ({"details": "id,parent_id%40 90"}, "details.parent_id"),
        ({"users": "id,x%3 30", "tickets": "no,assigned_to%30 200"}, "tickets.assigned_to"),
        ({"lines": "line_id,x%3 12", "bills": "bill_no,line_no%9 400"}, "bills.line_no"),
        ({"order_types": "type_id,x%3 5", "bills": "bill_no,type_id%4 400"}, "bills.type_id"),
        (
            {"orders": "order_id,x%3 300", "goods": "no,purchase_order_id%90 200"},
            "goods.purchase_order_id",
        ),
        ({"visits": "visit_id,x%3 300", "checks": "visit_id,y%3 140"}, "checks.visit_id"),
        ({"sales_shop": "shop_id,n%3 9", "visits": "no,shop_id%9 400"}, "visits.shop_id"),
        ({"regions": "id,x%3 20", "calls": "no,region_id%20 400"}, ""),
        # Another number, another noun, sums; and a name that is just the key's.
        ({"units": "unit_id,x%3 30", "sales": "sale_id,unit_no%9 400"}, "sales.unit_no"),
        (
            {"regions": "region_id,x%3 30", "shops": "shop,tax_region_id%20 400"},
            "shops.tax_region_id",
        ),
        ({"turnover": "grade,n%3 9", "visits": "no,grade%9 400"}, "visits.grade"),
        ({"calendar": "day_key,week_key%13 90", "sales": "no,day_key%90 400"}, ""),
        (
            {"tax_regions": "tax_region_id,x%3 20", "calls": "no,region_id%20 400"},
            "calls.region_id",
        ),
        ({"tipo_carga": "id_tipo,x%3 5", "envios": "no,id_tipo%5 400"}, "envios.id_tipo"),
        (
            {"clientes": "id,x%3 90", "pagos": "no,id_cliente_anual%90 400"},
            "pagos.id_cliente_anual",
        ),
        ({"colleagues": "id,line_manager_id%40 90"}, "colleagues.line_manager_id"),
        ({"munt_dim": "munt_sleutel,x%3 8", "koersen": "no,munt_sleutel%8 400"}, ""),
        ({"shop_dimension": "id,x%3 90", "visits": "no,shop_id%90 400"}, ""),
        # Numbers that begin as those of another table do, and some that merely overlap.
        (
            {"nurses": "nurse_id+9000,x%3 90", "retired_nurses": "nurse_id+9000,y%3 40"},
            "retired_nurses.nurse_id",
        ),
        (
            {"parcels": "parcel_id+5000,x%3 4000", "scans": "parcel_id+8700,y%3 400"},
            "scans.parcel_id",
        ),
        (
            {"rooms": "id,x%2 5", "bill_rooms": "id,y%2 5", "bill_lines": "no,room_id%5 400"},
            "bill_lines.room_id",
        ),
    ],
)
def test_keys_that_might_count_something_else_are_a_guess(tmp_path, tables, stated):
    result = found(tmp_path, **tables)
    assert len(links(result)) == 1
    assert [guess.what for guess in result.guesses] == [f"{stated} refers to"] * bool(stated)


@pytest.mark.parametrize("key", ["id", "order_item_id"])
def test_what_a_list_refers_to_is_not_its_own_key(tmp_path: Path, key: str) -> None:
    result = found(
        tmp_path,
        order_items=f"{key},item_id%30 90", stock="no,item_id%30,shelf%7 400",
    )  # fmt: skip
    assert (links(result), result.guesses) == (set(), ())


@pytest.mark.parametrize(("kinds", "is_stated"), [(2, True), (1, False)])
def test_a_key_of_rows_of_several_kinds_is_a_guess(tmp_path, kinds, is_stated):
    rows = [f"{n},{n % 30 + 1},{'Item' if n // 30 % kinds else 'Post'}" for n in range(400)]
    result = found(tmp_path, items="id,x%3 90", edits=["no,item_id,item_type", *rows])
    assert links(result) == {"edits.item_id > items.id"}
    assert len(result.guesses) == is_stated


def test_a_key_of_versions_is_no_parent_where_what_they_are_of_is_called_so(tmp_path: Path) -> None:
    result = found(tmp_path, customers="sk,customer_id%30 90", orders="order_no,customer_id%30 400")
    assert links(result) == set()
    (left_out,) = (each for each in result.declarations.left_out if " and " in each.what)
    assert left_out.what == "customers.customer_id and orders.customer_id"


def test_rows_with_the_same_id_and_name_are_one_to_one_as_a_guess(tmp_path: Path) -> None:
    for name, ids, other in (("items", range(200), "stack"), ("foods", range(3, 190, 6), "points")):
        lines = [f"{n},thing {n},{n % 7}" for n in ids]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"id,name,{other}", *lines]) + "\n")
    result = discover([str(tmp_path)], "file:///m/")
    assert links(result) == {"foods.id > items.id"}
    assert [guess.chosen for guess in result.guesses] == ["items.id"]


@pytest.mark.parametrize("names", [("hr/members", "gym/members"), ("members", "gym/members")])
def test_sources_of_one_name_are_a_question(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name, columns in (
        (names[0], "id,x%3 80"),
        (names[1], "id,y%2 80"),
        ("a", "member_id%80 300"),
    ):
        folder, _, stem = f"x/{name}".rpartition("/")
        write_tables(tmp_path / folder, **{stem: columns})
    result = discover([str(tmp_path)], "file:///m/")
    assert [(guess.chosen, len(guess.others)) for guess in result.guesses] == [("nothing", 2)]


def test_a_register_that_may_be_another_one_hides_no_parent(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        units="unit_id,x%3 40", measure_units="unit_id,y%2 9", sales="sale_no,unit_id%9 400",
    )  # fmt: skip
    (guess,) = (each for each in result.guesses if each.what == "sales.unit_id refers to")
    assert {*guess.others} | {guess.chosen} >= {"units.unit_id", "measure_units.unit_id"}


def test_a_key_that_is_called_so_comes_before_one_that_has_most_of_its_values(tmp_path):
    systems, frames = (range(4000, 4280, step) for step in (7, 9))
    for name, header, codes in (
        ("x_coordinatesystem", "coord_sys_code", systems),
        ("x_coordinatereferencesystem", "coord_ref_sys_code", {*systems[:30], *frames}),
        ("axes", "coord_sys_code", [*systems, *systems]),
    ):
        lines = [f"{code},{n % 3}" for n, code in enumerate(codes)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"{header},rank", *lines]) + "\n")
    result = discover([str(tmp_path)], "file:///m/")
    assert links(result) == {"axes.coord_sys_code > x_coordinatesystem.coord_sys_code"}


def test_the_key_of_the_same_name_comes_before_another_number_of_its_row(tmp_path: Path) -> None:
    result = found(
        tmp_path, subjects="subject,subject_code,x%3 30", courses="course_id,subject%30 400"
    )
    assert links(result) == {"courses.subject > subjects.subject"}


def test_a_second_number_of_a_row_is_no_key_beside_plural_names(tmp_path: Path) -> None:
    result = found(tmp_path, shops="shop_id,shop_number 25", depots="depot_no,shops_id%25 80")
    assert links(result) == {"depots.shops_id > shops.shop_id"}


def test_numbers_below_zero_are_no_keys_with_dashes(tmp_path: Path) -> None:
    states = [f"{n},{n % 15 - 9},{n % 7}" for n in range(1, 200)]
    assert links(found(tmp_path, states=["id,old_state,x", *states])) == set()


TWINS = {"calls": "call_no,demo_id%40 300", "demo_a": "demo_id,x%3 40", "demo_b": "demo_id,y%3 40"}


def test_of_two_equal_parents_none_is_declared_and_both_are_stated(tmp_path: Path) -> None:
    result = found(tmp_path, **TWINS)
    assert not any("calls." in link for link in links(result))
    (guess,) = (guess for guess in result.guesses if "calls.demo_id" in guess.what)
    assert (guess.chosen, set(guess.others)) == ("nothing", {"demo_a.demo_id", "demo_b.demo_id"})
    text = result.files["relationships.yaml"]
    assert text.count("# - {dataSources: [calls]") == 2


@pytest.mark.parametrize("answer", ["demo_a.demo_id", "demo_b.demo_id", "none of them"])
def test_an_answer_decides_between_two_parents(tmp_path: Path, answer: str) -> None:
    folder = write_tables(tmp_path / "data", **TWINS)

    def ask(questions: Sequence[Question]) -> Sequence[int | None]:
        return [
            next((n for n, option in enumerate(each.options) if answer in option), None)
            for each in questions
        ]

    result = discover([str(folder)], "file:///m/", ask=ask)
    targets = {link.partition(" > ")[2] for link in links(result) if "calls." in link}
    assert targets == {answer} - {"none of them"}
    assert not any("calls.demo_id" in guess.what for guess in result.guesses)


def test_of_parents_with_equal_names_the_one_whose_keys_are_used_is_a_guess(tmp_path):
    result = found(tmp_path, **{**TWINS, "demo_b": "demo_id,y%3 4000"})
    assert "calls.demo_id > demo_a.demo_id" in links(result)


@pytest.mark.parametrize(
    ("number", "last", "fault"),
    [
        (8, "7,3", "1 of 8 values stand in several rows (record 7 of "),
        (60, "7,3", "1 of 60 values stand in several rows (record 7 of "),
        (60, "7,3\n,", "(record 7 of "),
    ],
)
def test_what_keeps_a_column_from_being_a_key_is_stated(tmp_path: Path, number, last, fault):
    customers, orders = f"id,age%9 {number}", f"no,customer_id%{number - 1} 90"
    folder = write_tables(tmp_path / "data", customers=customers, orders=orders)
    with (folder / "customers.csv").open("a") as file:
        file.write(f"{last}\n")
    result = discover([str(folder)], "file:///m/")
    reasons = {each.what: each.why for each in result.declarations.left_out}
    why = reasons["orders.customer_id -> customers.id"]
    assert fault in why
    assert not any("on both sides values in several rows" in each for each in reasons.values())


def test_rows_without_a_key_leave_a_register_its_relationship(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "data", customers="id,age%9 60", orders="no,customer_id%59 90")
    with (folder / "customers.csv").open("a") as file:
        file.write(",\n")
    (one,) = discover([str(folder)], "file:///m/").relationships.declared
    assert one.evidence.endswith("; all rows, 1 row of customers without a key")


def test_a_bridge_joins_both_sides(tmp_path: Path) -> None:
    result = found(
        tmp_path,
        promotions="promotion_id,cost%5 12", orders="order_id,paid%3 80",
        order_promotions="order_id%80,promotion_id%12,rank%2 200",
    )  # fmt: skip
    assert links(result) == {
        "order_promotions.order_id > orders.order_id",
        "order_promotions.promotion_id > promotions.promotion_id",
    }


@pytest.mark.parametrize(("header", "is_stated"), [("city_id,city", True), ("city,size", False)])
def test_a_join_by_a_text_beside_the_key_is_a_guess(tmp_path, header, is_stated):
    names = [f"{side} {tree}" for side in ("north", "south") for tree in ("oak", "elm", "ash")]
    rows = [f"{n},{name}" if is_stated else f"{name},{n % 2}" for n, name in enumerate(names, 1)]
    people = ["person_id,city", *(f"{900 + 7 * n},{names[n % 5]}" for n in range(60))]
    result = found(tmp_path, cities=[header, *rows], people=people)
    assert links(result) == {"people.city > cities.city"}
    assert [guess.what for guess in result.guesses] == ["people.city refers to"] * is_stated


@pytest.mark.parametrize(("unknown", "is_joined"), [("0", True), ("-1", True), ("9000", False)])
def test_a_member_for_unknown_is_no_missing_key(tmp_path, unknown, is_joined):
    rows = [f"{n},{unknown if n % 2 else n % 3 // 2 + 7}" for n in range(90)]
    items = ["item_no,brand_id", *(row.replace(",8", ",7") for row in rows)]
    result = found(tmp_path, brands="brand_id,x%7 40", items=items)
    assert (links(result) == {"items.brand_id > brands.brand_id"}) is is_joined
    evidence = [one.evidence for one in result.relationships.declared]
    assert [f"{unknown} aside" in each for each in evidence] == [True] * is_joined


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("stores_old", "size%3,floor%2"),
        ("stg_stores", "size%3,floor%2"),
        ("store_visits", "sold%3"),
    ],
)
def test_a_copy_of_a_register_and_sums_by_it_are_no_parents(tmp_path, name, measures):
    tables = {"stores": "store_id,size%3,floor%2 40", name: f"store_id,{measures} 30"}
    result = found(tmp_path, **tables, visits="visit_no,store_id%30 90")
    parents = {one for one in links(result) if one.startswith("visits.")}
    assert parents == {"visits.store_id > stores.store_id"}
    assert [guess for guess in result.guesses if guess.what.startswith("visits.")] == []


def test_a_date_refers_to_a_calendar_by_a_guess_whatever_that_is_called(tmp_path: Path) -> None:
    days = (f"{n + 1},{date(2026, 1, 1) + timedelta(n)}" for n in range(80))
    kalender = ["kalender_key,iso", *days]
    result = found(tmp_path, loans="loan_no,due_date_key%80 300", kalender=kalender)
    assert links(result) == {"loans.due_date_key > kalender.kalender_key"}
    assert [guess.what for guess in result.guesses] == ["loans.due_date_key refers to"]


def test_of_tables_with_the_same_keys_that_with_more_columns_is_a_guess(tmp_path: Path) -> None:
    for name, rest, rows in (("MAKT", "D", 90), ("MARA", "X,Y", 90), ("VBAP", "9,8,7", 900)):
        header = ",".join(("MATNR", *(f"{name}{place}" for place in range(rest.count(",") + 1))))
        lines = (f"M{row % 90:05d},{rest}\n" for row in range(rows))
        (tmp_path / f"{name}.csv").write_text(f"{header}\n" + "".join(lines))
    result = discover([str(tmp_path)], "file:///m/")
    assert links(result) == {"VBAP.MATNR > MARA.MATNR", "MAKT.MATNR > MARA.MATNR"}
    stated = {guess.what for guess in result.guesses}
    assert stated == {"VBAP.MATNR refers to", "MAKT.MATNR refers to"}


@pytest.mark.parametrize("has_gaps", [True, False])
def test_gaps_of_keys_that_no_value_fills_prove_a_reference(tmp_path: Path, has_gaps) -> None:
    ids = [n for n in range(1, 400) if n % 5 or not has_gaps]
    many = ids[:200] * 3
    files = {"molecules.molregno": ids, "shapes.molregno": ids[:-9], "doses.molregno": many,
             "votes.accepted_id": many}  # fmt: skip
    for column, numbers in files.items():
        name, _, header = column.partition(".")
        lines = (f"{number},t{number % 3}\n" for number in numbers)
        (tmp_path / f"{name}.csv").write_text(f"{header},{name}_size\n" + "".join(lines))
    result = discover([str(tmp_path)], "file:///m/")
    expected = {f"{column} > molecules.molregno" for column in [*files][1:]}
    stated = [guess.what for guess in result.guesses]
    assert (links(result) == expected, stated == ["votes.accepted_id refers to"]) == (has_gaps,) * 2


@pytest.mark.parametrize(
    ("spelt", "steps"),
    [
        ("{:05}", "STRIP_LEADING_ZEROS"),
        ("ab{} ", "TRIM"),
        ("Ab-{}", "UPPER"),
        ("AB{}-", "REMOVE_DASHES"),
    ],
)
def test_keys_that_are_spelt_in_two_ways_are_normalized_as_a_guess(tmp_path, spelt, steps):
    plain = {"TRIM": "ab{}", "UPPER": "AB-{}", "REMOVE_DASHES": "AB{}"}.get(steps, "{}")
    for name, form, rows in (("orders", spelt, 60), ("customers", plain, 30)):
        lines = [f'{n},"{form.format(n % 30)}"' for n in range(rows)]
        header = "order_id,customer_no" if name == "orders" else "row,customer_no"
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    result = discover([str(tmp_path)], "file:///m/")
    (one,) = result.relationships.declared
    assert (one.source, one.target, one.included.share, one.as_written) == (
        "orders.customer_no", "customers.customer_no", 1.0, 0.0,
    )  # fmt: skip
    assert f"normalize: [{steps}]" in result.files["relationships.yaml"]
    assert any(f"100.0 % of its values with {steps}" in guess.text for guess in result.guesses)


def test_a_second_name_of_a_row_is_no_reference_to_another_one(tmp_path: Path) -> None:
    rows = [f"p{n:02}xy,{'p01xy' if n == 9 else f'p{n:02}xy'},{n % 3}" for n in range(40)]
    assert links(found(tmp_path, people=["player_id,ref_id,x", *rows])) == set()


def test_a_flag_is_no_key_of_what_it_is_called_for(tmp_path: Path) -> None:
    goals = ["goal,home_team", *(f"{n},{n % 2}" for n in range(90))]
    result = found(tmp_path, goals=goals, teams="key_id,x%3 88")
    assert (links(result), result.guesses) == (set(), ())


def test_a_second_column_with_the_same_key_in_each_row_is_a_guess(tmp_path: Path) -> None:
    ids = [str(uuid.UUID(int=n, version=4)) for n in range(90)]
    lines = (f"{n},{ids[n % 90]},{ids[n % 90]}" for n in range(300))
    (tmp_path / "patients.csv").write_text("\n".join(["id,x", *(f"{i},1" for i in ids)]) + "\n")
    header = "claim_no,patient_id,patient_insurance_id"
    (tmp_path / "claims.csv").write_text("\n".join([header, *lines]) + "\n")
    result = discover([str(tmp_path)], "file:///m/")
    assert [guess.what for guess in result.guesses] == ["claims.patient_insurance_id refers to"]


@pytest.mark.parametrize(("step", "is_joined"), [(1, False), (2, True), (40, True)])
def test_two_sources_with_the_same_gaps_in_a_plain_id_are_joined_as_a_guess(
    tmp_path: Path, step: int, is_joined: bool
) -> None:
    rows = [n * step + n % 2 * (step - 1) for n in range(1, 200)]
    (tmp_path / "films.csv").write_text("ID,year\n" + "".join(f"{n},19{n % 60}\n" for n in rows))
    (tmp_path / "critics.csv").write_text(
        "ID,meter,votes\n" + "".join(f"{n},0.5,{n % 9}\n" for n in rows[::2])
    )
    result = discover([str(tmp_path)], "file:///m/")
    assert links(result) == ({"critics.ID > films.ID"} if is_joined else set())
    assert [guess.chosen for guess in result.guesses] == ["films.ID"] * is_joined


@pytest.mark.parametrize("column", ["code", "name", "email"])
def test_two_sources_with_the_same_texts_once_each_are_joined_as_a_guess(
    tmp_path: Path, column: str
) -> None:
    texts = [f"{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]}{'uvwxyz'[n % 6]}" for n in range(60)]
    for name, own, kept in [("lands", "area", texts), ("debts", "owed,due", texts[5:55])]:
        rest = own.count(",") + 1
        lines = [f"{text}{f',{n % 7}' * rest}" for n, text in enumerate(kept)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"{column},{own}", *lines]) + "\n")
    result = discover([str(tmp_path)], "file:///m/")
    assert links(result) == {f"debts.{column} > lands.{column}"}
    assert [guess.chosen for guess in result.guesses] == [f"lands.{column}"]


NAMES = [f"{a} the {b}" for a in ("Ada", "Bo", "Cy", "Di", "Ed", "Flo") for b in ("Bold", "Great")]
NAMES += [f"{name} of the {place}" for name in NAMES for place in ("North", "Sea")]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        # Numbers with a second range prove no more than those of one.
        ({"moves": [*range(1, 300), *range(10_001, 10_060)], "texts.move_style_id": range(1, 10)},
         set()),
        ({"game_slots": range(1, 3000), "tiles.slot": [1, 2] * 18}, set()),
        # Texts that are all there, and names of what the table in front is called for.
        ({"people.name": NAMES, "rides.pilot": NAMES[:24] * 2}, {"rides.pilot > people.name"}),
        ({"films.title": NAMES[:4], "films_crew.title": NAMES[:4] * 9},
         {"films_crew.title > films.title"}),
        ({"films.film": [*NAMES, ""], "prizes.film": NAMES[:30] * 2}, {"prizes.film > films.film"}),
        ({"coins.code": NAMES, "coins_old.code": [*NAMES[4:], "x", "y"]},
         {"coins_old.code > coins.code"}),
    ],
    ids=["two ranges", "slots", "long texts", "titles", "a null", "own codes"],
)  # fmt: skip
def test_values_and_names_prove_what_people_mean_by_them(tmp_path, tables, expected):
    files = {}
    for named, values in tables.items():
        name, _, column = named.partition(".")
        rows = (f"{value},{n % 3}" for n, value in enumerate(values))
        files[name] = [f"{column or 'id'},{name}_x", *rows]
    result = found(tmp_path, **files)
    assert links(result) == expected
    assert {f"{guess.what.split()[0]} > {guess.chosen}" for guess in result.guesses} >= expected


def test_columns_of_one_name_without_a_common_value_are_left_out_with_the_share(tmp_path):
    points = ["meter_no,street", *(f"A {n:03},{n % 9}" for n in range(60))]
    readings = ["reading,meter_no,kwh", *(f"{n},A{n % 60:03},{n % 7}" for n in range(300))]
    result = found(tmp_path, meters=points, readings=readings)
    reasons = {each.what: each.why for each in result.declarations.left_out}
    why = reasons["readings.meter_no -> meters.meter_no"]
    assert why == "0.0 % of its values are there, and 60 % are needed"
