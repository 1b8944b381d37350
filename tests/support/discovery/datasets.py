# ruff: noqa: E501 - rows are shorter to read on one line
"""Data sets of known truth: names of several languages and habits, and numbers that mislead.

In most of them every table has numbers from 1 on, so that values of one key are values of nearly
all others as well, beside columns that hold numbers of something else (quantities, ages, places).
"""

import random
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from support.discovery.datasetfiles import DataSet, Row, Table, links

DAYS = 10
CITIES = ("Berlin", "Hamburg", "Köln", "Leipzig", "Wien", "Zürich", "Bern", "Graz")


def table(number: int, row: Callable[[int], Row], start: int = 1) -> list[Row]:
    return [row(index) for index in range(start, start + number)]


def growing(rows: Sequence[Row], days: int = DAYS) -> list[Sequence[Row]]:
    least = max(1, len(rows) * 3 // 4)
    return [rows[: least + (len(rows) - least) * (day + 1) // days] for day in range(days)]


def spread(rows: Sequence[Row], days: int = DAYS) -> list[Sequence[Row]]:
    """Events: each day has its own rows."""
    size = len(rows) // days
    return [rows[day * size : (day + 1) * size] for day in range(days)]


def shop() -> DataSet:
    """A web shop: two addresses an order, categories below categories, files by date."""
    r = random.Random(1)
    categories = table(
        12,
        lambda i: {
            "id": i,
            "name": f"Category {i}",
            "parent_id": r.randint(1, i - 1) if i > 4 else None,
        },
    )
    products = table(
        150,
        lambda i: {
            "id": i,
            "category_id": r.randint(1, 12),
            "name": f"Product {i}",
            "price": r.randint(100, 9999) / 100,
            "stock": r.randint(0, 90),
        },
    )
    customers = table(
        300,
        lambda i: {
            "id": i,
            "name": f"Customer {i}",
            "age": r.randint(18, 90),
            "email": f"c{i}@example.org",
        },
    )
    addresses = table(
        400,
        lambda i: {
            "id": i,
            "customer_id": r.randint(1, 200),
            "city": r.choice(CITIES),
            "zip": f"{r.randint(1000, 99999):05d}",
        },
    )
    stores = table(6, lambda i: {"id": i, "city": CITIES[i], "size": r.randint(1, 3)})
    orders = table(
        1000,
        lambda i: {
            "id": i,
            "customer_id": r.randint(1, 200),
            "store_id": r.randint(1, 6),
            "billing_address_id": r.randint(1, 280),
            "shipping_address_id": r.randint(1, 280),
            "status": r.choice(["new", "paid", "sent"]),
            "total": r.randint(100, 99999) / 100,
        },
    )
    items: list[Row] = [
        {"order_id": order["id"], "line": line, "product_id": r.randint(1, 110),
         "quantity": r.randint(1, 9), "unit_price": r.randint(100, 9999) / 100}
        for order in orders for line in range(1, r.randint(2, 5))
    ]  # fmt: skip
    of_day = [
        [i for i in items if i["order_id"] in {o["id"] for o in day}] for day in spread(orders)
    ]
    return DataSet(
        "shop",
        [Table("categories", "categories.csv", [categories]),
         Table("stores", "stores.csv", [stores]),
         Table("products", "products/dt={day}/part-00000-5d3f.snappy.parquet", growing(products)),
         Table("customers", "customers/dt={day}/part-00000-5d3f.snappy.parquet", growing(customers)),
         Table("addresses", "addresses/addresses_{compact}.csv", growing(addresses)),
         Table("orders", "orders_{compact}.csv", spread(orders)),
         Table("order_items", "order_items_{compact}.csv", of_day)],
        links("orders.customer_id > customers.id", "orders.store_id > stores.id",
              "orders.billing_address_id > addresses.id", "orders.shipping_address_id > addresses.id",
              "order_items.order_id > orders.id", "order_items.product_id > products.id",
              "products.category_id > categories.id", "addresses.customer_id > customers.id",
              "categories.parent_id > categories.id"),
        junk={"README.md": b"# Exports\n", "orders/_SUCCESS": b"", ".DS_Store": b"x",
              "products/dt=2026-01-01/.part-00000.crc": b"crc", "empty.csv": b"",
              "notes.txt": b"Call Mary about the export.\n", "archive.zip": b"PK"},
    )  # fmt: skip


def hospital() -> DataSet:
    """A hospital: two physicians an encounter, codes of diagnoses, measurements by day."""
    r = random.Random(2)
    icd = [
        f"{letter}{number:02d}.{digit}"
        for letter in "EIJK"
        for number in range(10, 40)
        for digit in (0, 9)
    ]
    diagnoses = [
        {"icd_code": code, "title": f"Diagnosis {code}", "chapter": code[0]} for code in icd
    ]
    wards = table(
        12,
        lambda i: {
            "ward_id": i,
            "ward_name": f"Ward {i}",
            "beds": r.randint(8, 40),
            "floor": r.randint(0, 6),
        },
    )
    physicians = table(
        60, lambda i: {"physician_id": i, "last_name": f"Name{i}", "ward_id": r.randint(1, 12)}
    )
    patients = table(
        500,
        lambda i: {
            "patient_id": i,
            "sex": r.choice("MF"),
            "birth_date": f"{r.randint(1930, 2015)}-0{r.randint(1, 9)}-1{r.randint(0, 9)}",
        },
    )
    encounters = table(
        800,
        lambda i: {
            "encounter_id": i,
            "patient_id": r.randint(1, 380),
            "ward_id": r.randint(1, 12),
            "attending_physician_id": r.randint(1, 60),
            "referring_physician_id": r.randint(1, 60),
            "primary_icd": r.choice(icd),
            "length_of_stay": r.randint(1, 20),
        },
    )
    labs = table(
        3000,
        lambda i: {
            "lab_id": i,
            "encounter_id": (i - 1) * 800 // 3000 + 1,
            "test_code": r.choice(["HB", "NA", "K", "CRP"]),
            "value": r.random() * 100,
        },
    )
    return DataSet(
        "hospital",
        [Table("diagnoses", "reference/diagnoses.csv", [diagnoses]),
         Table("wards", "reference/wards.csv", [wards]),
         Table("physicians", "{day}/physicians.csv", growing(physicians)),
         Table("patients", "{day}/patients.csv", growing(patients)),
         Table("encounters", "{day}/encounters.csv", spread(encounters)),
         Table("lab_results", "{day}/lab_results.jsonl", spread(labs))],
        links("encounters.patient_id > patients.patient_id", "encounters.ward_id > wards.ward_id",
              "encounters.attending_physician_id > physicians.physician_id",
              "encounters.referring_physician_id > physicians.physician_id",
              "encounters.primary_icd > diagnoses.icd_code", "physicians.ward_id > wards.ward_id",
              "lab_results.encounter_id > encounters.encounter_id"),
    )  # fmt: skip


def logistik() -> DataSet:
    """A carrier in German: semicolons, decimal commas, dates in three folders."""
    r = random.Random(3)
    gruppen = [{"kuerzel": f"WG{i:02d}", "bezeichnung": f"Warengruppe {i}"} for i in range(1, 16)]
    artikel = table(
        200,
        lambda i: {
            "artikelnr": 10_000 + i,
            "bezeichnung": f"Artikel {i}",
            "warengruppe": f"WG{r.randint(1, 15):02d}",
            "gewicht_kg": f"{r.randint(1, 90)},5",
        },
    )
    kunden = table(
        250, lambda i: {"kundennr": i, "firma": f"Firma {i} GmbH", "ort": r.choice(CITIES)}
    )
    lager = table(
        9, lambda i: {"lager_nr": i, "ort": r.choice(CITIES), "flaeche": r.randint(100, 900)}
    )
    fahrzeuge = [
        {
            "kennzeichen": f"HH-{chr(65 + i % 26)}{chr(66 + i % 20)} {100 + i}",
            "baujahr": 2010 + i % 12,
            "nutzlast": r.randint(1, 20),
        }
        for i in range(40)
    ]
    fahrer = table(
        35, lambda i: {"fahrer_id": i, "nachname": f"Name {i}", "fuehrerschein": r.choice("BCE")}
    )
    touren = table(
        200,
        lambda i: {
            "tour_id": i,
            "kennzeichen": r.choice(fahrzeuge)["kennzeichen"],
            "fahrer": r.randint(1, 35),
            "stopps": r.randint(1, 30),
        },
    )
    auftraege = table(
        600,
        lambda i: {
            "auftragsnr": i,
            "kundennr": r.randint(1, 187),
            "abgangslager": r.randint(1, 9),
            "ziellager": r.randint(1, 9),
            "tour_id": (i - 1) * 200 // 600 + 1,
            "prioritaet": r.randint(1, 3),
        },
    )
    positionen = [
        {
            "auftragsnr": a["auftragsnr"],
            "pos": p,
            "artikelnr": 10_000 + r.randint(1, 150),
            "menge": r.randint(1, 50),
        }
        for a in auftraege
        for p in range(1, r.randint(2, 5))
    ]
    of_day = [
        [p for p in positionen if p["auftragsnr"] in {a["auftragsnr"] for a in day}]
        for day in spread(auftraege)
    ]
    path = "{year}/{month}/{dd}/"
    german = {"separator": ";", "encoding": "utf-8-sig"}
    return DataSet(
        "logistik",
        [Table("warengruppen", "stammdaten/warengruppen.csv", [gruppen], **german),
         Table("lager", "stammdaten/lager.csv", [lager], **german),
         Table("fahrer", "stammdaten/fahrer.csv", [fahrer], **german),
         Table("fahrzeuge", "stammdaten/fahrzeuge.csv", [fahrzeuge], **german),
         Table("artikel", path + "artikel.csv", growing(artikel), **german),
         Table("kunden", path + "kunden.csv", growing(kunden), **german),
         Table("touren", path + "touren.csv", spread(touren), **german),
         Table("auftraege", path + "auftraege.csv", spread(auftraege), **german),
         Table("auftragspositionen", path + "auftragspositionen.csv", of_day, **german)],
        links("artikel.warengruppe > warengruppen.kuerzel", "touren.kennzeichen > fahrzeuge.kennzeichen",
              "touren.fahrer > fahrer.fahrer_id", "auftraege.kundennr > kunden.kundennr",
              "auftraege.abgangslager > lager.lager_nr", "auftraege.ziellager > lager.lager_nr",
              "auftraege.tour_id > touren.tour_id", "auftragspositionen.auftragsnr > auftraege.auftragsnr",
              "auftragspositionen.artikelnr > artikel.artikelnr"),
    )  # type: ignore[arg-type]  # fmt: skip


def telemetry() -> DataSet:
    """Devices that measure: unique texts as keys, a compound key with a time, folders of Hive."""
    r = random.Random(4)
    sites = [
        {"site_code": f"S{i:03d}", "city": r.choice(CITIES), "lat": 50 + r.random()}
        for i in range(25)
    ]
    models = table(
        8,
        lambda i: {
            "model_id": i,
            "vendor": r.choice(["ACME", "Umbrella"]),
            "channels": r.randint(1, 4),
        },
    )
    devices = [
        {
            "device_id": str(uuid.UUID(int=r.getrandbits(128))),
            "model_id": r.randint(1, 8),
            "site_code": r.choice(sites)["site_code"],
            "battery": r.randint(1, 100),
        }
        for i in range(60)
    ]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    readings = [
        {
            "device_id": d["device_id"],
            "ts": start + timedelta(hours=h),
            "temperature": r.random() * 40,
            "humidity": r.randint(1, 100),
        }
        for h in range(24 * DAYS)
        for d in devices[:30]
    ]
    alerts = [
        {"alert_id": i + 1, "device_id": x["device_id"], "ts": x["ts"], "severity": r.randint(1, 5)}
        for i, x in enumerate(sorted(r.sample(readings, 600), key=lambda x: str(x["ts"])))
    ]
    of_day = [[a for a in alerts if a["ts"].day == day + 1] for day in range(DAYS)]
    hive = "year={year}/month={month}/day={dd}/"
    return DataSet(
        "telemetry",
        [Table("sites", "sites.json", [sites]),
         Table("device_models", "device_models.csv", [models]),
         Table("devices", "devices/" + hive + "devices.parquet", growing(devices)),
         Table("readings", "readings/" + hive + "readings.parquet", spread(readings)),
         Table("alerts", "alerts/" + hive + "alerts.parquet", of_day)],
        links("devices.model_id > device_models.model_id", "devices.site_code > sites.site_code",
              "readings.device_id > devices.device_id", "alerts.device_id+ts > readings.device_id+ts"),
        links("alerts.device_id > devices.device_id"),
    )  # fmt: skip


def university() -> DataSet:
    """A university in abbreviations, with compound keys of three columns."""
    r = random.Random(5)
    fak = table(7, lambda i: {"fak_id": i, "name": f"Fakultät {i}"})
    doz = table(
        80, lambda i: {"doz_nr": 500 + i, "nachname": f"Name {i}", "fak_id": r.randint(1, 7)}
    )
    crs = [
        {
            "crs_no": f"C{i:04d}",
            "title": f"Course {i}",
            "credits": r.randint(2, 10),
            "doz_nr": 500 + r.randint(1, 80),
        }
        for i in range(120)
    ]
    stud = table(
        400,
        lambda i: {
            "matnr": 7_000_000 + i * 7,
            "name": f"Student {i}",
            "sem": r.randint(1, 12),
            "fak_id": r.randint(1, 7),
        },
    )
    enr: dict[tuple[object, ...], Row] = {}
    for _ in range(3000):
        row = {
            "matnr": r.choice(stud)["matnr"],
            "crs_no": r.choice(crs)["crs_no"],
            "term": r.choice(["WS25", "SS26"]),
            "attempt": r.randint(1, 3),
        }
        enr[row["matnr"], row["crs_no"], row["term"]] = row
    grd = [
        {
            "matnr": e["matnr"],
            "crs_no": e["crs_no"],
            "term": e["term"],
            "grade": r.randint(10, 50) / 10,
        }
        for e in list(enr.values())[::2]
    ]
    rooms = [{"room_code": f"H{i:02d}", "seats": r.randint(20, 400)} for i in range(30)]
    slots = table(
        200,
        lambda i: {
            "slot_id": i,
            "crs_no": r.choice(crs)["crs_no"],
            "room": f"H{r.randint(0, 29):02d}",
            "weekday": r.randint(1, 5),
        },
    )
    month = 31
    return DataSet(
        "university",
        [Table("fak", "fak.csv", [fak]), Table("rooms", "rooms.csv", [rooms]),
         Table("doz", "doz/doz-{day}.csv", [doz, doz], step=month),
         Table("crs", "crs/crs-{day}.csv", [crs, crs], step=month),
         Table("stud", "stud/stud-{day}.orc", [stud, stud], step=month),
         Table("enr", "enr/enr-{day}.arrow", [list(enr.values())] * 2, step=month),
         Table("grd", "grd/grd-{day}.csv.gz", [grd, grd], step=month),
         Table("slots", "slots/slots-{day}.csv", [slots, slots], step=month)],
        links("doz.fak_id > fak.fak_id", "crs.doz_nr > doz.doz_nr", "stud.fak_id > fak.fak_id",
              "enr.matnr > stud.matnr", "enr.crs_no > crs.crs_no", "slots.room > rooms.room_code",
              "grd.matnr+crs_no+term > enr.matnr+crs_no+term", "slots.crs_no > crs.crs_no"),
        links("grd.matnr > stud.matnr", "grd.crs_no > crs.crs_no"),
    )  # fmt: skip


def bank() -> DataSet:
    """A bank in camel case: JSON, every key called id, two accounts a transfer."""
    r = random.Random(6)
    branches = table(
        20, lambda i: {"id": i, "city": r.choice(CITIES), "employees": r.randint(3, 20)}
    )
    clients = table(
        300, lambda i: {"id": i, "fullName": f"Client {i}", "homeBranchId": r.randint(1, 20)}
    )
    accounts = table(
        420,
        lambda i: {
            "id": i,
            "clientId": r.randint(1, 220),
            "currencyCode": r.choice(["EUR", "CHF", "USD"]),
            "balance": r.randint(0, 9_999_999) / 100,
        },
    )
    cards = table(
        350, lambda i: {"id": i, "accountId": r.randint(1, 310), "expiryYear": r.randint(26, 31)}
    )
    transfers = table(
        2000,
        lambda i: {
            "id": i,
            "sourceAccountId": r.randint(1, 310),
            "targetAccountId": r.randint(1, 310),
            "amountCents": r.randint(1, 100_000),
        },
    )
    currencies = [
        {"code": code, "name": name, "digits": 2}
        for code, name in (
            ("EUR", "Euro"),
            ("CHF", "Franken"),
            ("USD", "Dollar"),
            ("GBP", "Pound"),
            ("SEK", "Krona"),
        )
    ]
    return DataSet(
        "bank",
        [Table("Currencies", "Currencies.json", [currencies]), Table("Branches", "Branches.json", [branches]),
         Table("Clients", "{day}/Clients.json.gz", growing(clients)),
         Table("Accounts", "{day}/Accounts.json.gz", growing(accounts)),
         Table("Cards", "{day}/Cards.json.gz", growing(cards)),
         Table("Transfers", "{day}/Transfers.json.gz", spread(transfers))],
        links("Clients.homeBranchId > Branches.id", "Accounts.clientId > Clients.id",
              "Accounts.currencyCode > Currencies.code", "Cards.accountId > Accounts.id",
              "Transfers.sourceAccountId > Accounts.id", "Transfers.targetAccountId > Accounts.id"),
    )  # fmt: skip


def staff() -> DataSet:
    """Employees with managers, in tables whose columns have the table's letter in front."""
    r = random.Random(7)
    departments = table(
        9, lambda i: {"d_id": i, "d_name": f"Department {i}", "d_budget": r.randint(1, 99)}
    )
    employees = table(
        250,
        lambda i: {
            "e_id": i,
            "e_name": f"Name {i}",
            "e_dept_id": r.randint(1, 9),
            "e_manager_id": r.randint(1, i - 1) if i > 3 else None,
            "e_level": r.randint(1, 6),
        },
    )
    projects = table(
        40, lambda i: {"p_id": i, "p_title": f"Project {i}", "p_dept_id": r.randint(1, 9)}
    )
    hours = table(
        1500,
        lambda i: {
            "h_emp_id": r.randint(1, 187),
            "h_project_id": r.randint(1, 30),
            "h_hours": r.randint(1, 8),
        },
    )
    salaries = table(
        250, lambda i: {"s_emp_id": i, "s_amount": r.randint(30_000, 90_000), "s_currency": "EUR"}
    )
    return DataSet(
        "staff",
        [Table("departments", "departments.csv", [departments], separator="\t"),
         Table("employees", "employees/{german}.csv", growing(employees), separator="|"),
         Table("projects", "projects/{german}.csv", growing(projects), separator="|"),
         Table("hours", "hours/{german}.csv", spread(hours), separator="|"),
         Table("salaries", "salaries/{german}.csv", growing(salaries), separator="|")],
        links("employees.e_dept_id > departments.d_id", "employees.e_manager_id > employees.e_id",
              "projects.p_dept_id > departments.d_id", "hours.h_emp_id > employees.e_id",
              "hours.h_project_id > projects.p_id", "salaries.s_emp_id > employees.e_id"),
    )  # fmt: skip


DATA_SETS: tuple[Callable[[], DataSet], ...] = (
    shop,
    hospital,
    logistik,
    telemetry,
    university,
    bank,
    staff,
)
"""Those that are made here; flights, TPC-H and the customers of the examples come beside them."""
