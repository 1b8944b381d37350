"""Relationships of data sets whose truth is known: found, and nothing else."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import NAMESPACE_DNS, uuid5

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plugins.discovery.quality import judged
from support.discovery.datasets import DATA_SETS, shop
from support.discovery.messy import MESSY_SETS

from snaploom.errors import SourceNotReadable
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.plugins.discovery.discover import discover
from snaploom.run.declarations import read_declarations


@pytest.mark.parametrize("make", [*DATA_SETS, *MESSY_SETS], ids=lambda make: make.__name__)
def test_relationships_of_a_data_set_are_found_and_no_others(tmp_path, make):
    data = make()
    data.write(tmp_path / "data")
    found = discover([str(tmp_path / "data")], f"{tmp_path.as_uri()}/model/")
    result = judged(data, found)
    assert (result.missed, result.wrong) == (frozenset(), frozenset())
    (tmp_path / "model").mkdir()
    for name, text in found.files.items():
        (tmp_path / "model" / name).write_text(text, "utf-8")
    declared = read_declarations([tmp_path / "model"], NO_ALLOWANCES)
    assert declared.findings == ()
    assert len(declared.output_names) == 1


def test_the_same_data_gives_the_same_text(tmp_path: Path) -> None:
    shop().write(tmp_path)
    first, second = (discover([str(tmp_path)], "file:///model/").files for _ in range(2))
    assert first == second


def test_numbers_from_one_on_are_no_evidence(tmp_path: Path) -> None:
    for name, columns in {"colours": "id,shade", "trees": "id,height", "cars": "id,seats"}.items():
        rows = "".join(f"{i},{1 + i % 7}\n" for i in range(1, 100))
        (tmp_path / f"{name}.csv").write_text(f"{columns}\n{rows}")
    assert discover([str(tmp_path)], "file:///model/").relationships.declared == ()


def test_columns_of_files_with_other_headers_have_types_by_name(tmp_path: Path) -> None:
    (tmp_path / "customers.csv").write_text("id,name\n" + "".join(f"{n},n{n}\n" for n in range(20)))
    visits = "".join(f"{n},{n % 20}\n" for n in range(50))
    (tmp_path / "visits_20260101.csv").write_text("visit_id,customer_id\n" + visits)
    (tmp_path / "visits_20260102.csv").write_text("Visit_ID,customer_id,room\n50,1,a\n51,2,b\n")
    result = discover([str(tmp_path)], "file:///model/")
    assert [(r.child, r.parent) for r in result.relationships.declared] == [("visits", "customers")]
    visits_text = result.files["sources.yaml"].partition("name: visits")[2]
    assert "schemaFields" in visits_text
    assert "name: room" in visits_text
    assert "{string: {}}" not in result.files["relationships.yaml"]


@pytest.mark.parametrize("column", ["author_id", "created_by", "assignee_id", "ReviewerId"])
def test_what_a_person_does_refers_to_the_table_of_persons(tmp_path: Path, column: str) -> None:
    (tmp_path / "users.csv").write_text("id,login\n" + "".join(f"{n},u{n}\n" for n in range(1, 40)))
    (tmp_path / "rooms.csv").write_text("id,name\n" + "".join(f"{n},r{n}\n" for n in range(1, 40)))
    posts = "".join(f"{n},{n % 39 + 1}\n" for n in range(1, 90))
    (tmp_path / "posts.csv").write_text(f"id,{column}\n{posts}")
    found = discover([str(tmp_path)], "file:///m/").relationships.declared
    links = [(r.child_columns, r.parent) for r in found]
    assert links == [((column,), "users")]


@pytest.mark.parametrize(("step", "number"), [(3, 2), (1, 0)])
def test_only_keys_with_gaps_are_found_by_values(tmp_path: Path, step: int, number: int) -> None:
    keys = [100_000 + n // 2 * step + n % 2 for n in range(900)]
    keyed = "".join(f"{key},t{key % 7}\n" for key in sorted({*keys}))
    (tmp_path / "entrants.csv").write_text("entrant_id,town\n" + keyed)
    matches = "".join(f"{n},{keys[n * 7 % 800]},{keys[n * 11 % 800]}\n" for n in range(1_600))
    (tmp_path / "matches.csv").write_text(f"match_id,winner_id,loser_id\n{matches}")
    found = discover([str(tmp_path)], "file:///m/")
    assert [len(found.relationships.declared), len(found.guesses)] == [number, number]


def test_numbers_far_from_all_others_are_found_by_values(tmp_path: Path) -> None:
    sites = "".join(f"{n * 7},{n % 60 * 7},s{n}\n" for n in range(200))
    (tmp_path / "sites.csv").write_text(f"site_id,currency,town\n{sites}")
    accounts = "".join(f"{10_000_000 + n},t{n % 7}\n" for n in range(900))
    (tmp_path / "accounts.csv").write_text("account_id,town\n" + accounts)
    sold = "".join(f"{n},{10_000_000 + n * 7 % 800}\n" for n in range(1_600))
    (tmp_path / "sales.csv").write_text(f"sale_no,seller_id\n{sold}")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert (one.source, one.target) == ("sales.seller_id", "accounts.account_id")
    assert one.is_guess


def test_tables_with_the_same_persons_are_joined_as_a_guess(tmp_path: Path) -> None:
    for name, columns in {"employee_jobs": "job", "employee_reviews": "mark"}.items():
        rows = "".join(f"E{n * 7:05},x{n % 9}\n" for n in range(90))
        (tmp_path / f"{name}.csv").write_text(f"employee_id,{columns}\n{rows}")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert (one.is_one_to_one, one.is_guess) == (True, True)


def test_a_key_in_a_role_is_a_reference_though_each_is_there_once(tmp_path: Path) -> None:
    partners = "".join(f"{100_000 + n},c{n % 9}\n" for n in range(40))
    (tmp_path / "business_partners.csv").write_text("partner_no,town\n" + partners)
    goods = "".join(f"P{n},{100_000 + n},{n % 4}\n" for n in range(35))
    (tmp_path / "goods.csv").write_text(f"goods_id,supplier_partner_no,size\n{goods}")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert one.source == "goods.supplier_partner_no"


def test_when_rows_were_changed_is_no_part_of_a_reference(tmp_path: Path) -> None:
    days = [f"{n % 30},2026-0{1 + n // 30 + n % 3}-01,{n % 7}\n" for n in range(90)]
    workers = "".join(f"{n},n{n % 9}\n" for n in range(30))
    (tmp_path / "workers.csv").write_text(f"worker_no,name\n{workers}")
    for name, kept in {"hours": days, "reviews": days[10:60]}.items():
        (tmp_path / f"{name}.csv").write_text(f"worker_no,modified_date,{name}\n{''.join(kept)}")
    found = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert [(r.child, r.parent) for r in found] == [("hours", "workers"), ("reviews", "workers")]


def test_accounts_that_know_who_changed_them_are_no_copy_of_their_types(tmp_path: Path) -> None:
    audit = "language,created_by,created_at,changed_by,changed_at"
    who = "EN,4,20260603,4,20260604"
    types = "".join(f"T{n}X,{who}\n" for n in range(6))
    accounts = "".join(f"A{n},T{n % 5}X,{who}\n" for n in range(40))
    (tmp_path / "ledger_type.csv").write_text(f"accounttypeid,{audit}\n{types}")
    (tmp_path / "accounts.csv").write_text(f"account_id,accounttypeid,{audit}\n{accounts}")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert (one.source, one.parent) == ("accounts.accounttypeid", "ledger_type")


def test_rows_with_two_numbers_are_referred_to_by_either(tmp_path: Path) -> None:
    visits = "\n".join(f"{i},{7 * (i % 90) + 1001},{i % 3}" for i in range(300))
    people = "\n".join(f"{i},{7 * i + 1001},{i % 9}" for i in range(90))
    (tmp_path / "visits.csv").write_text(f"row_id,subject_id,ward\n{visits}\n")
    (tmp_path / "patients.csv").write_text(f"row_id,subject_id,born\n{people}\n")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert (one.source, one.target) == ("visits.subject_id", "patients.subject_id")
    assert not one.is_guess


def test_of_two_tables_of_persons_none_is_taken(tmp_path: Path) -> None:
    for name in ("users", "employees", "posts"):
        column = "author_id" if name == "posts" else "age"
        rows = "".join(f"{n},{n % 39 + 1}\n" for n in range(1, 60))
        (tmp_path / f"{name}.csv").write_text(f"id,{column}\n{rows}")
    assert discover([str(tmp_path)], "file:///m/").relationships.declared == ()


def test_a_measure_that_is_called_after_a_table_is_no_reference(tmp_path: Path) -> None:
    (tmp_path / "rental.csv").write_text(
        "rental_id,at\n" + "".join(f"{n},x\n" for n in range(1, 90))
    )
    films = "".join(f"{n},{n % 7 + 1}\n" for n in range(1, 60))
    (tmp_path / "film.csv").write_text("film_id,rental_duration\n" + films)
    assert discover([str(tmp_path)], "file:///m/").relationships.declared == ()


def test_numbers_of_rows_are_no_key_of_another_table(tmp_path: Path) -> None:
    for name, rows in {"NOTES": 60, "EVENTS": 90}.items():
        text = "".join(f"{n},{n * 7 % 13}.5\n" for n in range(1, rows))
        (tmp_path / f"{name}.csv").write_text(f"ROW_ID,VALUE\n{text}")
    assert discover([str(tmp_path)], "file:///m/").relationships.declared == ()


def test_the_key_of_a_table_with_a_schema_in_its_name_refers_to_nothing(tmp_path: Path) -> None:
    for name, rows in {
        "Production_ProductCategory": 5,
        "Production_ProductSubcategory": 40,
    }.items():
        key = name.partition("_")[2] + "ID"
        text = "".join(f"{n},{n % 5 + 1},n{n}\n" for n in range(1, rows))
        header = f"{key},ProductCategoryID,Name" if "Sub" in name else f"{key},Rank,Name"
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{text}")
    (one,) = discover([str(tmp_path)], "file:///m/").relationships.declared
    assert one.child == "Production_ProductSubcategory"


def _declared(folder: Path, **texts: str) -> set[str]:
    """The relationships of files, in braces those that are stated."""
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    found = discover([str(folder)], "file:///model/").relationships.declared
    shown = ((f"{one.source} > {one.target}", one.is_guess) for one in found)
    return {f"({each})" if is_guess else each for each, is_guess in shown}


def test_whole_numbers_that_are_written_as_fractions_are_keys(tmp_path: Path) -> None:
    keys = [None if n % 7 == 0 else 100.0 + n % 60 for n in range(200)]
    orders = pa.table({"order_id": [*range(200)], "customer_id": keys})
    pq.write_table(orders.append_column("paid_id", pa.array([0.5] * 200)), tmp_path / "o.parquet")
    notes = [{"note_id": n, "customer_id": 100 + n if n % 2 else 100.0 + n} for n in range(60)]
    (tmp_path / "notes.json").write_text("\n".join(map(json.dumps, notes)))
    customers = "".join(f"{n},n{n}\n" for n in range(100, 160))
    found = _declared(tmp_path, customers="customer_id,name\n" + customers)
    target = "customers.customer_id"
    assert {f"o.customer_id > {target}", f"notes.customer_id > {target}"} <= found
    assert not any("paid_id" in each for each in found)


def test_a_code_within_a_country_is_of_the_state_that_its_name_names(tmp_path: Path) -> None:
    states = [f"{n % 9:02},C{n // 9},s{n}\n" for n in range(81)]
    cities = "".join(states[n * 7 % 81].replace("s", f"c{n}x") for n in range(300))
    state = "iso_code,country_code,name\n" + "".join(states)
    found = _declared(tmp_path, state=state, city="state_code,country_code,name\n" + cities)
    assert found == {"city.(state_code, country_code) > state.(iso_code, country_code)"}


def test_a_list_with_the_measures_of_its_parent_is_no_copy_of_it(tmp_path: Path) -> None:
    head = "tracker,reach,hits,bytes,frames,images,media\n"
    rows = [f"t{n:03},{n}.5,{n},{n}.25,0.1,0.2,0.3\n" for n in range(80)]
    lists = "".join(f"site{n % 40}," + rows[n * 3 % 80] for n in range(400))
    found = _declared(
        tmp_path, trackers=head + "".join(rows), sites_trackers="site," + head + lists
    )
    assert found == {"sites_trackers.tracker > trackers.tracker"}


def test_small_numbers_among_dense_keys_are_stated(tmp_path: Path) -> None:
    types = "".join(f"{n},kind {n}\n" for n in [*range(1, 90), *range(350_000, 350_400)])
    rows = "".join(f"{n * 3},{n % 12 + 1}\n" for n in range(400))
    texts = {"types": "type_id,name\n" + types, "attributes": "attribute_id,dataType\n" + rows}
    assert _declared(tmp_path, **texts) == {"(attributes.dataType > types.type_id)"}


def test_of_two_columns_with_the_same_keys_one_is_referred_to(tmp_path: Path) -> None:
    skins = "_key,skinID,label\n" + "".join(f"{n},{n},skin {n}\n" for n in range(10, 600, 3))
    uses = "licenceID,skinID\n" + "".join(f"{n},{10 + 3 * (n % 190)}\n" for n in range(900))
    assert len(_declared(tmp_path, skins=skins, licences=uses)) == 1


def test_of_two_numbers_of_a_row_the_one_of_the_same_name_is_meant(tmp_path: Path) -> None:
    rows = "pk,jsondata,id,name\n" + "".join(f"{n},,{n + 2 * (n > 9)},s{n}\n" for n in range(1, 80))
    parts = "part_no,survey_pk\n" + "".join(f"{n * 3},{n % 79 + 1}\n" for n in range(300))
    found = _declared(tmp_path, surveys=rows, parts=parts)
    assert found == {"parts.survey_pk > surveys.pk"}


def test_a_list_with_columns_of_its_parent_is_no_copy_of_it(tmp_path: Path) -> None:
    names = [f"R-{n:03},n{n},c{n % 9}" for n in range(60)]
    judges = "key_id,judge_id,name,club\n" + "".join(f"{n},{r}\n" for n, r in enumerate(names, 1))
    uses = "".join(f"{n},{names[n * 7 % 60]}\n" for n in range(1, 200))
    found = _declared(tmp_path, judges=judges, appointments="key_id,judge_id,name,club\n" + uses)
    assert "appointments.judge_id > judges.judge_id" in found


def test_years_refer_to_a_list_of_the_same_years_as_a_guess(tmp_path: Path) -> None:
    seasons = "year,url\n" + "".join(f"{n},u{n}\n" for n in range(1950, 2020))
    races = "race_no,year\n" + "".join(f"{n},{1950 + n % 70}\n" for n in range(300))
    found = _declared(tmp_path, seasons=seasons, races=races)
    assert found == {"(races.year > seasons.year)"}


def test_a_table_is_known_by_the_column_that_it_is_called_for(tmp_path: Path) -> None:
    periods = "sequence,period,flag\n" + "".join(f"{n},{1970 + 10 * n},f\n" for n in range(7))
    costs = "cost_no,period\n" + "".join(f"{n},{1990 + 10 * (n % 3)}\n" for n in range(80))
    found = _declared(tmp_path, time_period=periods, costs=costs)
    assert found == {"costs.period > time_period.period"}


def test_a_common_name_refers_to_the_table_that_has_it(tmp_path: Path) -> None:
    flags = "flag,meaning\n" + "".join(f"{n},m{n}\n" for n in range(1, 12))
    ants = "ant,flag\n" + "".join(f"a{n},{n % 11 + 1}\n" for n in range(90))
    found = _declared(tmp_path, ant_dataflags=flags, ants=ants)
    assert found == {"(ants.flag > ant_dataflags.flag)"}


def test_many_texts_are_evidence_whatever_their_lengths(tmp_path: Path) -> None:
    keys = [f"{'x' * (n // 9)}-{n}" for n in range(300)]
    spells = "pk,level\n" + "".join(f"{key},{n % 9}\n" for n, key in enumerate(keys))
    options = "option_no,parent\n" + "".join(f"{n},{keys[n * 7 % 240]}\n" for n in range(500))
    found = _declared(tmp_path, spells=spells, options=options)
    assert found == {"(options.parent > spells.pk)"}


def test_one_uuid_is_evidence_whatever_the_names(tmp_path: Path) -> None:
    keys = [uuid5(NAMESPACE_DNS, str(n)).hex for n in range(40)]
    rows = "guid,mnemonic\n" + "".join(f"{key},c{key[:3]}\n" for key in keys[:4])
    posts = "guid,currency_guid\n" + "".join(f"{key},{keys[0]}\n" for key in keys[4:])
    found = _declared(tmp_path, commodities=rows, posts=posts)
    assert found == {"(posts.currency_guid > commodities.guid)"}


def test_codes_that_are_padded_to_the_length_of_a_uuid_are_no_evidence(tmp_path: Path) -> None:
    kinds = "code,label\n" + "".join(f"{c:<32},{c}{c}\n" for c in "ABCDEFGHIJKL")
    jobs = "job_id,grade\n" + "".join(f"{n * 7},{'A':<32}\n" for n in range(300))
    assert _declared(tmp_path, kinds=kinds, jobs=jobs) == set()


def test_the_name_of_one_thing_is_not_that_of_another(tmp_path: Path) -> None:
    agency = "agency_id,agency_name,agency_url\n1,Blue Lines,http://x\n"
    feed_info = "feed_publisher_name,feed_lang\nBlue Lines,en\n"
    assert _declared(tmp_path, agency=agency, feed_info=feed_info) == set()


@pytest.mark.parametrize("name", ["book.gnucash", "000000_0"])
def test_a_file_without_a_known_ending_is_read_by_its_first_bytes(tmp_path, name):
    if name == "000000_0":
        pq.write_table(pa.table({"guid": ["a", "b"]}), tmp_path / name)
    else:
        with closing(sqlite3.connect(tmp_path / name)) as opened:
            opened.execute("CREATE TABLE accounts AS SELECT 'a' AS guid")
            opened.commit()
    (tmp_path / "notes.md").write_text("# PAR")
    found = discover([str(tmp_path)], "file:///model/")
    assert f"{tmp_path.as_uri()}/{name}" in found.files["sources.yaml"]


@pytest.mark.parametrize("ending", ["asc", "dat"])
def test_text_in_columns_is_read_whatever_its_ending(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"loan.{ending}").write_text('"loan_id";"amount"\n1;80\n2;95\n')
    (tmp_path / f"memo.{ending}").write_text("Call Ada\nCall Bob\n")
    found = discover([str(tmp_path)], "file:///model/")
    assert [profile.name for profile in found.profiles] == ["loan"]


def test_lines_that_end_in_two_ways_are_read(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_bytes(b"vote,film\r\n1,7\r\n2,8\n3,9\r\n")
    (found,) = discover([str(tmp_path)], "file:///model/").profiles
    assert [found.rows, *(column.type.family.name for column in found.columns)] == [
        3,
        "WHOLE",
        "WHOLE",
    ]


def test_records_that_end_with_a_carriage_return_are_declared_so(tmp_path: Path) -> None:
    (tmp_path / "types_2026-01-01.csv").write_bytes(b"type,note\ra,one\rb,two\r")
    sources = discover([str(tmp_path)], "file:///model/").files["sources.yaml"]
    assert 'lineSep: "\\r"' in sources
    (tmp_path / "types_2026-01-02.csv").write_bytes(b"type,note\nc,three\n")
    with pytest.raises(SourceNotReadable, match=r"end with CR in .*, and with LF in "):
        discover([str(tmp_path)], "file:///model/")
