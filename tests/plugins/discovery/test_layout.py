"""Sources by the names of their files: dates, parts, values of folders, and what is left out."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unicodedata import normalize
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snaploom.files.stores import open_store
from snaploom.plugins.discovery.dates import Unit, fitting, orders_of
from snaploom.plugins.discovery.foundfiles import (
    Ask,
    FoundFile,
    Place,
    Question,
    list_files,
    nobody,
)
from snaploom.plugins.discovery.layout import Layout, globs_of, layouts_of, table_folders
from snaploom.plugins.discovery.paths import Kind, parse_path

MAY = [date(2024, 5, day) for day in range(1, 32)]
UUIDS_LIKE_DATES = [
    UUID(text)
    for text in (
        "4ffe9d9b-46f4-4ead-8d92-926c2024abcd",
        "20260203-46f4-4ead-8d92-926c0000abcd",
        "a2026b9b-2026-4ead-8d92-926c0000ab20",
        "abcdef9b-1234-4123-8212-202602031200",
    )
]
"""With digits that are a year, a day or a month outside of a UUID."""


def layouts(folder: Path, *names: str) -> dict[str, Layout]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a,b\n1,2\n")
    return {layout.name: layout for layout in layouts_of(list_files([str(folder)]).files)[0]}


@pytest.mark.parametrize(
    ("path", "name", "unit"),
    [
        ("2026-02-03/orders.csv", "orders", Unit.DAY),
        ("orders/2026-02-03.csv", "orders", Unit.DAY),
        ("orders/dt=2026-02-03/part-00000-c000.snappy.parquet", "orders", Unit.DAY),
        ("orders/2026/02/03/0001.csv.gz", "orders", Unit.DAY),
        ("orders/2026/02-03/a.csv", "orders", Unit.DAY),
        ("orders/year=2026/month=2/day=3/data.json", "orders", Unit.DAY),
        ("orders/dt=2026-02-03/hour=00/x_1.csv", "orders", Unit.HOUR),
        ("orders_20260203.csv", "orders", Unit.DAY),
        ("orders-2026-02-03.jsonl", "orders", Unit.DAY),
        ("bestellungen_03.02.2026.csv", "bestellungen", Unit.DAY),
        ("export/orders_export_2026_02_03.tsv", "orders", Unit.DAY),
        ("orders/snapshot_epoch=1770076800000/a.parquet", "orders", Unit.SECOND),
        ("orders_20260203T000000Z.csv", "orders", Unit.SECOND),
    ],
)
def test_dates_in_paths_are_found(tmp_path: Path, path: str, name: str, unit: Unit) -> None:
    found = layouts(tmp_path, path)
    assert list(found) == [name]
    assert found[name].snapshots == (datetime(2026, 2, 3, tzinfo=UTC),)
    assert found[name].unit is unit


def test_months_and_years_begin_on_their_first_day(tmp_path: Path) -> None:
    found = layouts(tmp_path, "sales_2026-02.csv", "staff/2026.csv", "stock_202603.csv")
    starts = {name: layout.snapshots[0].date().isoformat() for name, layout in found.items()}
    assert starts == {"sales": "2026-02-01", "staff": "2026-01-01", "stock": "2026-03-01"}


@pytest.mark.parametrize(
    "months",
    [{1: (6, 7, 8, 10, 13)}, {1: (2, 3, 4, 5, 9, 30), 2: (1, 2)}, {2: range(1, 29)}],
    ids=["a day is missing", "two months", "a whole month"],
)
@pytest.mark.parametrize("folder", ["2026/{:02}", "year=2026/month={}"])
def test_day_in_a_name_below_year_and_month_is_found(tmp_path, months, folder):
    dates = [(month, day) for month, days in months.items() for day in days]
    names = [f"visits/{folder.format(month)}/visits-{day:02}.csv" for month, day in dates]
    found = layouts(tmp_path, *names)["visits"]
    assert found.unit is Unit.DAY
    assert [(time.month, time.day) for time in found.snapshots] == dates


@pytest.mark.parametrize(
    "months",
    [
        {1: range(1, 9)},
        {1: (3, 7)},
        {1: (2, 5, 8, 11, 14), 2: (2, 5, 8, 11, 14)},
        {2: (6, 7, 8, 10, 30)},
    ],
    ids=["counted from 1", "two numbers", "the same every month", "no day of February"],
)
def test_number_in_a_name_that_may_be_of_a_part_is_no_day(tmp_path, months):
    dates = [(month, day) for month, days in months.items() for day in days]
    names = [f"visits/2026/{month:02}/visits-{day:02}.csv" for month, day in dates]
    found = layouts(tmp_path, *names)["visits"]
    assert found.unit is Unit.MONTH
    assert len(found.snapshots) == len(months)


@pytest.mark.parametrize(
    ("form", "hours", "unit", "is_stated"),
    [
        ("log_2026-02-0{}-{:02}", range(24), Unit.HOUR, False),
        ("log_2026-02-0{}_{:02}", range(24), Unit.HOUR, False),
        ("log_2026-02-0{}T{:02}", range(3), Unit.HOUR, False),
        ("log_2026020{}T{:02}30", range(3), Unit.SECOND, False),
        ("log_2026-02-0{}_{:02}h", range(8, 21), Unit.HOUR, False),
        ("log_2026020{}T{:02}h30m15s", range(3), Unit.SECOND, False),
        ("log_2026-02-0{}-{:02}", range(8, 21), Unit.DAY, True),
        ("log_2026020{}_{:02}30", range(24), Unit.DAY, True),
        ("log_2026-02-0{}-{:02}", range(8), Unit.DAY, False),
        ("log_2026-02-0{}-part-{:02}", range(24), Unit.DAY, False),
        ("log_2026-02-0{}-{:02}", range(25), Unit.DAY, False),
        ("log_2026-02-0{0} {1:02}.{1:02}", (7, 14), Unit.DAY, True),
        ("log_2026-02-0{}T{:02}3000+0200", (7, 14), Unit.SECOND, True),
        ("log_2026-02-0{} {:02}-30-00 PM", (2, 7), Unit.DAY, True),
    ],
)
def test_hours_behind_a_day_are_found_or_a_guess(
    tmp_path: Path, form: str, hours: Sequence[int], unit: Unit, is_stated: bool
) -> None:
    names = [f"{form.format(day, hour)}.csv" for day in (3, 4) for hour in hours]
    (found,) = layouts(tmp_path, *names).values()
    assert len(found.snapshots) == (2 if unit is Unit.DAY else 2 * len(hours))
    assert (found.unit, found.guess is not None) == (unit, is_stated)


@pytest.mark.parametrize(
    "name", ["{}/part_{}", "{}/part{}", "orders_{}_part000{}", "orders-{}.chunk{}"]
)
def test_files_that_differ_in_dates_and_parts_are_one_source(tmp_path: Path, name: str) -> None:
    files = [name.format(f"2026-02-0{day}", part) for day in (1, 2) for part in (1, 2)]
    days = [f"orders/{file}.csv" for file in files]
    found = layouts(tmp_path, *days, "orders_2.csv", "customers.csv")
    assert {name: len(layout.files) for name, layout in found.items()} == {
        "orders": 4,
        "orders_2": 1,
        "customers": 1,
    }


def test_a_table_whose_name_begins_like_a_part_is_a_table(tmp_path: Path) -> None:
    found = layouts(tmp_path, "part_categories.csv", "part_suppliers.csv", "sales/part-00000.csv",
                    "sales/part-00001.csv", "returns/part-r-00000.csv")  # fmt: skip
    assert set(found) == {"part_categories", "part_suppliers", "sales", "returns"}


@given(unique=st.uuids() | st.sampled_from(UUIDS_LIKE_DATES))
def test_a_uuid_in_a_name_is_no_date(unique: UUID) -> None:
    names = f"sales/part-00000-{unique}-c000.zstandard.avro", f"sales/{unique}_rows.csv"
    for name in (*names, f"dt=2026-02-03/{unique}.parquet"):
        kinds = [piece.kind for piece in parse_path(name).pieces]
        assert (Kind.DATE in kinds) == name.startswith("dt=")
        assert Kind.ANY in kinds


@pytest.mark.parametrize(
    "text", ["20261345", "99999999", "123456", "240501", "12-31-24", "1.2.10", "2025-W53"]
)
def test_a_text_that_is_no_date_is_none_by_itself(text: str) -> None:
    shown = [form for form in fitting(orders_of(text), [text]) if not form.has_short_year]
    assert shown == []


@given(names=st.lists(st.sampled_from("ab"), min_size=1, max_size=2), start=st.integers(1, 9))
def test_numbers_of_versions_are_no_dates(names: list[str], start: int) -> None:
    found = sources([f"{name}-1.2.{n}.csv" for name in set(names) for n in range(start, start + 9)])
    assert not any(layout.is_dated for layout in found)


def test_globs_match_the_files_of_their_own_source_only(tmp_path: Path) -> None:
    found = layouts(
        tmp_path, "order_20260203.csv", "order_returned.csv", "order_items_20260203.csv"
    )
    everything = [file for layout in found.values() for file in layout.files]
    globs = {name: globs_of(layout, everything) for name, layout in found.items()}
    assert globs["order"] == ("order_[0-9]*.csv",)
    assert globs["order_items"] == ("order_items_????????.csv",)


def test_packed_days_are_of_the_source_of_plain_ones_unless_they_are_there_twice(tmp_path: Path):
    names = ["sales_2026-02-03.csv.gz", "sales_2026-02-04.csv", "sales_2026-02-05.csv"]
    (found,) = layouts(tmp_path, *names).values()
    assert (found.name, len(found.snapshots)) == ("sales", 3)
    assert globs_of(found, found.files) == ("sales_????-??-??.csv", "sales_????-??-??.csv.gz")
    twice = layouts(tmp_path, "sales_2026-02-03.csv")
    assert sorted(len(layout.files) for layout in twice.values()) == [1, 3]


@pytest.mark.parametrize("form", ["sales_%a_%d_%m_%Y.csv", "%A, %m-%d-%Y/sales.csv"])
def test_days_of_the_week_beside_dates_make_one_source(form: str) -> None:
    (found,) = sources([f"{day:{form}}" for day in MAY])
    assert (found.name, len(found.snapshots)) == ("sales", 31)


def test_words_that_are_other_days_of_the_week_are_names() -> None:
    found = sources([f"{name}_{day:%Y-%m-%d}.csv" for name in ("sun", "mon") for day in MAY])
    assert [(layout.name, len(layout.snapshots)) for layout in found] == [("mon", 31), ("sun", 31)]


def test_letters_of_globs_in_names_are_escaped() -> None:
    (found,) = sources([f"{{a}}*[b]?\\c\n/sales_{day:%d-%m-%Y}.csv" for day in MAY])
    (glob,) = globs_of(found, found.files)
    assert glob == "\\{a\\}\\*\\[b\\]\\?\\\\c\n/sales_??-??-????.csv"


def test_junk_is_left_out_with_the_reason(tmp_path: Path) -> None:
    for name in ("README.md", "_SUCCESS", ".orders.csv.crc", "x.zip", "_tmp/orders.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "$(a).csv").write_text("a,b\n1,2\n")
    (tmp_path / "\udcff.csv").write_text("a,b\n1,2\n")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    listing = list_files([str(tmp_path)])
    found, left_out = layouts_of(listing.files)
    reasons = {each.what.rpartition("/")[2]: each.why for each in (*listing.left_out, *left_out)}
    assert found == ()
    assert {"$(a).csv", "\udcff.csv"} < set(reasons)
    assert len(reasons) == 7
    assert reasons["link.csv"] == "a link, pipe or device, which is not followed"


@pytest.mark.parametrize(
    "path",
    ["orders_2026-W06.csv", "orders_2026w06.csv", "orders/week=2026-W06/a.csv",
     "2026W06/orders.csv", "orders_2026-KW06.csv", "orders/2026/W06/a.csv",
     "orders/year=2026/week=6/a.csv"],
)  # fmt: skip
def test_iso_weeks_begin_on_their_monday(tmp_path: Path, path: str) -> None:
    (found,) = layouts(tmp_path, path).values()
    assert found.unit is Unit.WEEK
    assert found.snapshots == (datetime(2026, 2, 2, tzinfo=UTC),)


def test_weeks_that_a_year_has_are_dates() -> None:
    assert fitting(orders_of("2026-W53"), ["2026-W53"])


# Orders of day and month, which all files of a series decide together.

FORMS = [
    "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%Y-%d-%m", "%-d-%-m-%Y", "%-m-%-d-%Y", "%Y-%-m-%-d",
    "%d-%b-%Y", "%b-%d-%Y", "%-d-%B-%Y", "%Y-%b-%-d", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%Y-%j",
    "%d-%m-%Y_%H%M%S", "%m-%d-%Y %H-%M-%S",
]  # fmt: skip
PLACES = ["sales_{}.csv", "{}/sales.csv", "sales/day={}/a.csv", "sales/x/{} north.csv.gz"]


def sources(names: Iterable[str], ask: Ask = nobody) -> tuple[Layout, ...]:
    place = Place("file:///data/", open_store("memory:", create=False))
    found, left_out = layouts_of([FoundFile(place, name, 9) for name in names], ask)
    assert left_out == ()
    return found


def written(days: Iterable[date], form: str, separator: str, place: str) -> list[str]:
    separated = form.replace("-%", f"{separator}%")  # and not `%-d`, a day without zero
    return [place.format(day.strftime(separated)) for day in days]


@given(
    start=st.dates(date(2001, 1, 1), date(2090, 1, 1)),
    gaps=st.lists(st.sampled_from([1, 1, 1, 2, 3, 7, 28, 31]), min_size=1, max_size=50),
    form=st.sampled_from(FORMS),
    separator=st.sampled_from(["-", "_", ".", " "]),
    place=st.sampled_from(PLACES),
)
def test_days_of_names_are_found_whatever_their_form(start, gaps, form, separator, place):
    days = [start + timedelta(days=sum(gaps[:n])) for n in range(len(gaps) + 1)]
    shows_order = any(day.day > 12 for day in days)
    assume(shows_order or not form.startswith("%Y-%d"))
    (found,) = sources(written(days, form, separator, place))
    assert len(found.files) == len(days)
    if found.guess is None or (shows_order and "%y" not in form):
        assert [time.date() for time in found.snapshots] == days
        assert found.guess is None
    else:
        options = f"{found.guess.chosen} {found.guess.others}"
        assert not shows_order or "%y" in form
        assert f"{days[0]} to {days[-1]}" in options


@pytest.mark.parametrize(
    "form", ["%m%d%Y", "%d%m%Y", "%Y%d%m", "%Y%m%d", "%y%m%d", "%d%m%y", "%b%d%Y", "%d%b%Y",
             "%-d%b%Y", "%Y%j", "%Y-%m%d", "%Y_%d%m", "%-d.%b %Y", "%B %d, %Y"],
)  # fmt: skip
def test_days_without_separators_are_found(form: str) -> None:
    (found,) = sources(f"sales_{day.strftime(form)}.csv" for day in MAY)
    assert [time.date() for time in found.snapshots] == MAY
    assert found.guess is None


@pytest.mark.parametrize(
    "form", ["%Y/%m/sales_%Y-%m-%d.csv", "year=%Y/month=%m/%d.%m.%Y.csv",
             "%Y-%m-%d/census_2020.csv", "%Y/%m/%d/budget_%Y.csv", "%Y/%b/%d/sales.csv",
             "%Y/%B/%-d/sales.csv", "%m-%Y/sales_%d.csv",
             "year=%Y/month=%b/day=%d/a.csv", "x/%Y/%d/%m/a.csv", "%m/%d/%Y/a.csv",
             "%d/%m/%Y/07/a.csv", "%-d/%b/%Y/a.csv", "d=%-d/m=%-m/y=%Y/a.csv"],
)  # fmt: skip
def test_days_of_several_folders_are_found(form: str) -> None:
    (found,) = sources(day.strftime(form) for day in MAY)
    assert [time.date() for time in found.snapshots] == MAY
    assert (found.unit in (Unit.DAY, Unit.HOUR), found.guess) == (True, None)


MONTHS_OF_LANGUAGES = [
    "Jan Februar März Apr. Mai Juni Jul Aug Sept Okt Nov Dezember",
    "january Feb MAR April may Jun july aug Sep October nov dec",
    "janvier févr. mars avril mai juin juillet août sept. octobre novembre décembre",
    "janv. fév mars avr. mai juin juil. aout sep oct nov déc",
    "enero febrero marzo abr mayo jun julio ago septiembre octubre nov diciembre",
    "gen feb mar apr mag giu lug ago set ott nov dic",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
]  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "path",
    [
        "umsatz_2024-{}.csv",
        "x_{}24.csv",
        "{}-24/x.csv",
        "{} 2024/x.csv",
        "1. {} 2024/x.csv",
        "2024/{}/x.csv",
        "x_01-{}-24.csv",
    ],
)
@pytest.mark.parametrize("names", MONTHS_OF_LANGUAGES)
def test_months_with_names_of_many_languages_are_found(names: str, path: str, form: str) -> None:
    (found,) = sources(path.format(normalize(form, name)) for name in names.split())
    assert [time.date() for time in found.snapshots] == [date(2024, n, 1) for n in range(1, 13)]


@pytest.mark.parametrize(
    "names", [[f"May-{n:02}" for n in range(1, 32)], ["Apr-29", "Apr-30", "May-01"]]
)
def test_days_without_a_year_are_no_months(names: Sequence[str]) -> None:
    assert not any(layout.is_dated for layout in sources(f"sales_{name}.csv" for name in names))


@pytest.mark.parametrize("name", ["out_{}.csv", "{}/set.csv", "mag-{}.csv"])
def test_words_that_are_months_elsewhere_are_no_months_by_themselves(name: str) -> None:
    (found,) = sources(name.format(year) for year in (2023, 2024))
    assert [time.date() for time in found.snapshots] == [date(2023, 1, 1), date(2024, 1, 1)]


@pytest.mark.parametrize(
    "path",
    ["s_{y}Q{q}.csv", "s {y}-q{q}.csv", "Q{q}_{y}.csv", "{q}Q{y}/s.csv", "s/{y}/Q{q}/a.csv",
     "year={y}/quarter={q}/a.csv", "quarter={y}Q{q}/a.csv"],
)  # fmt: skip
def test_quarters_begin_with_their_first_month(path: str) -> None:
    (found,) = sources(path.format(y=2023 + n // 4, q=n % 4 + 1) for n in range(6))
    assert found.unit is Unit.QUARTER
    assert [f"{time:%Y-%m-%d}" for time in found.snapshots] == [
        "2023-01-01", "2023-04-01", "2023-07-01", "2023-10-01", "2024-01-01", "2024-04-01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "numbers"),
    [("sales_2024_{}.csv", range(1, 21)), ("2024/sales_{}.csv", [3, 7, 40]),
     ("year=2024/sales-{:02}.csv", range(1, 6)), ("sales_2024_quarter_{}.csv", range(1, 5)),
     ("climate_{}.csv", range(1960, 1980)), ("export_{:04}.csv", range(900, 2200, 100))],
)  # fmt: skip
def test_a_year_beside_other_numbers_is_no_date(form: str, numbers: Sequence[int]) -> None:
    (found,) = sources(form.format(n) for n in numbers)
    assert found.snapshots == ()
    assert found.guess is not None


@pytest.mark.parametrize(
    "form", ["%B %Y/s_%d.csv", "s_%G-W%V-%u.csv", "load=2024-06-02/%Y%m%d.csv"]
)
def test_what_else_dates_may_mean_is_a_guess(form: str) -> None:
    (found,) = sources(day.strftime(form) for day in MAY)
    assert found.guess is not None


def test_one_odd_name_among_dates_ends_no_file() -> None:
    days = written(MAY, "%m-%d-%Y", "-", "sales_{}.csv")
    (found,) = sources([*days, "sales_02-30-2024.csv"])
    assert len(found.files) == 32
    assert found.guess.evidence.startswith("02-30-2024 is no MM-dd-yyyy, as 31 others are")


def test_an_order_that_one_series_proves_is_that_of_others() -> None:
    proving, other = written(MAY, "%m-%d-%Y", "-", "a_{}.csv"), ["b_03-04-2024.csv"]
    found = sources([*proving, *other])[1]
    assert [time.isoformat()[:10] for time in found.snapshots] == ["2024-03-04"]
    assert found.guess.evidence == "as in a_05-01-2024.csv"


def test_a_person_is_asked_once_for_an_order_that_nothing_proves() -> None:
    asked: list[Question] = []

    def ask(questions: Sequence[Question]) -> Sequence[int]:
        asked.extend(questions)
        return [1]

    found = sources(["a_03-04-2024.csv", "b_05-06-2024.csv"], ask)
    assert [one.options for one in asked] == [
        ("dd-MM-yyyy, 2024-04-03 to 2024-04-03", "MM-dd-yyyy, 2024-03-04 to 2024-03-04")
    ]
    assert [time.month for layout in found for time in layout.snapshots] == [3, 5]
    assert all(layout.guess is None for layout in found)


def test_tables_and_own_outputs_are_no_folders_of_files(tmp_path: Path) -> None:
    found = layouts(
        tmp_path, "lake/_delta_log/0.json", "lake/a.parquet", "ice/metadata/v1.metadata.json",
        "ice/data/a.parquet", "wide/snaploom.json", "wide/data/t=1/a.parquet",
        "wide/iceberg/metadata/v1.metadata.json", "plain.csv",
    )  # fmt: skip
    assert list(found) == ["plain"]
    tables = table_folders(list_files([str(tmp_path)]).files)
    assert [(table.name, table.data_format) for table in tables] == [
        ("ice", "iceberg"),
        ("lake", "delta"),
    ]
