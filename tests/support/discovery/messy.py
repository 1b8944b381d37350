# ruff: noqa: E501 - rows are shorter to read on one line
"""Data sets as people have them: exports of three systems, each with its habits and its accidents."""

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from support.discovery.datasetfiles import DataSet, Row, Table, links
from support.discovery.datasets import CITIES, table

WEEKS = 4


def comma(cents: int) -> str:
    """An amount as it is written in German."""
    return f"{cents // 100},{cents % 100:02d}"


def haendler() -> DataSet:
    """A merchandise system: semicolons, decimal commas, leading zeros, ISO weeks, mixed capitals."""
    r = random.Random(21)
    kunden = table(
        220,
        lambda i: {
            "KundenNr": f"{i * 7:06d}",
            "Name": f"Kunde {i}",
            "PLZ": f"{r.randint(1000, 99999):05d}",
            "Kreditlimit": comma(r.randint(0, 900_000)),
            "WerberNr": f"{r.randint(1, i - 1) * 7:06d}" if i > 9 and i % 3 == 0 else "",
        },
    )
    artikel = table(
        90,
        lambda i: {
            "ArtikelNr": f"{i:05d}",
            "Bezeichnung": f"Artikel {i}",
            "Preis": comma(r.randint(99, 99_999)),
            "WgrNr": r.randint(1, 9),
        },
    )
    gruppen = table(9, lambda i: {"WgrNr": i, "Warengruppe": f"Gruppe {i}"})
    filialen = table(
        14,
        lambda i: {"FilialNr": i + 100, "Ort": r.choice(CITIES), "Leiter": 5000 + r.randint(1, 40)},
    )
    mitarbeiter = table(
        40,
        lambda i: {
            "PersonalNr": 5000 + i,
            "Nachname": f"Name{i}",
            "VorgesetzterNr": 5000 + r.randint(1, i - 1) if i > 2 else "",
            "FilialNr": r.randint(101, 114),
        },
    )
    bestellungen: list[list[Row]] = []
    positionen: list[list[Row]] = []
    number = 0
    for week in range(WEEKS):
        of_week: list[Row] = []
        lines: list[Row] = []
        for _ in range(120):
            number += 1
            day = date(2026, 1, 1) + timedelta(days=7 * week + r.randint(0, 6))
            of_week.append(
                {
                    "BestellNr": f"B{number:07d}",
                    "KundenNr": r.choice(kunden)["KundenNr"],
                    "Bestelldatum": day.strftime("%d.%m.%Y"),
                    "VersandFilialNr": r.randint(101, 114),
                    "AbholFilialNr": r.randint(101, 114),
                    "Betrag": comma(r.randint(100, 90_000)),
                    "Rabatt %": r.randint(0, 20),
                }
            )
            lines.extend(
                {
                    "BestellNr": f"B{number:07d}",
                    "PosNr": pos,
                    "ArtikelNr": f"{r.randint(1, 90):05d}",
                    "Menge": r.randint(1, 9),
                }
                for pos in range(1, r.randint(2, 5))
            )
        bestellungen.append(of_week)
        positionen.append(lines)

    def german(name: str, path: str, days: list[list[Row]], encoding: str = "utf-8") -> Table:
        return Table(name, path, days, separator=";", encoding=encoding, step=7)

    return DataSet(
        "haendler",
        [german("Kunden", "Stammdaten/Kunden.csv", [kunden], "latin-1"),
         german("Artikel", "Stammdaten/Artikel.csv", [artikel]),
         german("Warengruppen", "Stammdaten/Warengruppen.csv", [gruppen]),
         german("Filialen", "Stammdaten/Filialen.csv", [filialen]),
         german("Mitarbeiter", "Stammdaten/Mitarbeiter.csv", [mitarbeiter]),
         german("Bestellungen", "Bewegungen/Bestellungen_{week}.csv", bestellungen),
         german("Bestellpositionen", "Bewegungen/Bestellpositionen_{week}.csv", positionen)],
        links("Artikel.WgrNr > Warengruppen.WgrNr", "Mitarbeiter.VorgesetzterNr > Mitarbeiter.PersonalNr",
              "Mitarbeiter.FilialNr > Filialen.FilialNr", "Bestellungen.KundenNr > Kunden.KundenNr",
              "Bestellungen.VersandFilialNr > Filialen.FilialNr", "Bestellungen.AbholFilialNr > Filialen.FilialNr",
              "Bestellpositionen.BestellNr > Bestellungen.BestellNr", "Bestellpositionen.ArtikelNr > Artikel.ArtikelNr"),
        links("Filialen.Leiter > Mitarbeiter.PersonalNr", "Kunden.WerberNr > Kunden.KundenNr"),
        junk={"Stammdaten/leer.csv": b"", "Stammdaten/Lieferanten.csv": b"LieferantenNr;Firma\r\n",
              "Bewegungen/Thumbs.db": b"\0\1", "Stammdaten/~$Kunden.xlsx": b"PK"},
    )  # fmt: skip


def saas() -> DataSet:
    """A service: JSON lines with objects in them, gzip, text keys, members of teams, two roles."""
    r = random.Random(22)
    orgs = table(
        30,
        lambda i: {
            "id": f"org_{i:04x}",
            "name": f"Org {i}",
            "plan": r.choice(["free", "pro"]),
            "address": {"city": r.choice(CITIES), "zip": f"{i:05d}"},
        },
    )
    users = table(
        240,
        lambda i: {
            "id": f"usr_{i:06x}",
            "email": f"u{i}@example.org",
            "orgId": f"org_{r.randint(1, 30):04x}",
            "profile": {"age": r.randint(18, 80), "tags": ["a"] * r.randint(0, 2)},
        },
    )
    teams = table(
        25, lambda i: {"id": i, "name": f"Team {i}", "orgId": f"org_{r.randint(1, 30):04x}"}
    )
    members = [
        {"teamId": t, "userId": u["id"], "role": r.choice(["owner", "member"])}
        for t in range(1, 26)
        for u in r.sample(users, 9)
    ]
    invites = table(
        150,
        lambda i: {
            "inviteId": i,
            "inviterId": r.choice(users)["id"],
            "inviteeId": r.choice(users)["id"],
            "teamId": r.randint(1, 25),
            "accepted": r.random() > 0.5,
        },
    )
    start = datetime(2026, 2, 2, 7, tzinfo=UTC)
    events = table(
        3000,
        lambda i: {
            "eventId": f"evt_{i:08x}",
            "type": r.choice(["login", "view"]),
            "userId": r.choice(users)["id"],
            "occurredAt": (start + timedelta(minutes=3 * i)).isoformat().replace("+00:00", "Z"),
            "context": {"ip": "10.0.0.1", "page": {"path": f"/{i % 7}"}},
        },
    )
    return DataSet(
        "saas",
        [Table("organizations", "organizations.jsonl", [orgs]), Table("users", "users.jsonl.gz", [users]),
         Table("teams", "teams.ndjson", [teams]), Table("team_members", "team_members.csv.gz", [members]),
         Table("invites", "invites.jsonl", [invites]),
         *[Table("events", f"events/part-0000{n}.jsonl.gz", [events[n * 1000 : (n + 1) * 1000]]) for n in range(3)]],
        links("users.orgId > organizations.id", "teams.orgId > organizations.id", "team_members.teamId > teams.id",
              "team_members.userId > users.id", "invites.inviterId > users.id", "invites.inviteeId > users.id",
              "invites.teamId > teams.id", "events.userId > users.id"),
        junk={"settings.json": json.dumps({"version": 3, "features": {"x": True}}, indent=1).encode()},
    )  # fmt: skip


def fleet() -> DataSet:
    """A fleet: a register by day in one file, a compound key, two roles, a file with more columns."""
    r = random.Random(23)
    depots = table(8, lambda i: {"depot_id": i, "depot_name": f"Depot {i}", "city": CITIES[i - 1]})
    drivers = table(
        60,
        lambda i: {
            "driver_id": i,
            "last_name": f"Driver {i}",
            "license_no": f"L{i * 31:05d}",
            "birth_date": date(1960 + i % 40, 1 + i % 12, 1 + i % 28),
        },
    )
    vehicles = table(
        45,
        lambda i: {
            "vin": f"WV{i * 7919:09d}X",
            "model": r.choice(["A", "B"]),
            "home_depot": r.randint(1, 8),
        },
    )
    assignments = [
        {"driver_id": d, "vin": v["vin"]} for d in range(1, 61) for v in r.sample(vehicles, 2)
    ]
    sensors = [
        {"vin": v["vin"], "sensor_no": n, "kind": r.choice(["temp", "fuel"])}
        for v in vehicles
        for n in range(1, 4)
    ]
    readings = [
        {"vin": s["vin"], "sensor_no": s["sensor_no"], "minute": m, "value": r.random()}
        for s in sensors
        for m in range(12)
    ]
    stock = [
        {
            "snapshot_date": date(2026, 3, 1) + timedelta(days=d),
            "depot_id": depot,
            "part_no": f"P-{p:04d}",
            "on_hand": r.randint(0, 60),
        }
        for d in range(10)
        for depot in range(1, 9)
        for p in range(1, 16)
    ]
    parts = table(15, lambda i: {"part_no": f"P-{i:04d}", "part_name": f"Part {i}"})
    trips = table(
        900,
        lambda i: {
            "trip_id": i,
            "trip_date": date(2026, 3, 1) + timedelta(days=i // 90),
            "driver_id": r.randint(1, 60),
            "vin": r.choice(vehicles)["vin"],
            "start_depot_id": r.randint(1, 8),
            "end_depot_id": r.randint(1, 8),
            "km": r.randint(1, 900),
        },
    )
    newer = [{**trip, "toll": r.randint(0, 30)} for trip in trips[600:]]
    return DataSet(
        "fleet",
        [Table("depots", "depots.csv", [depots], separator="\t"), Table("drivers", "drivers.parquet", [drivers]),
         Table("vehicles", "vehicles.orc", [vehicles]), Table("driver_vehicles", "driver_vehicles.csv", [assignments]),
         Table("sensors", "sensors.csv", [sensors]), Table("sensor_readings", "sensor_readings.parquet", [readings]),
         Table("stock", "stock.parquet", [stock]), Table("parts", "parts.csv", [parts]),
         Table("trips", "trips/trips_1.parquet", [trips[:600]]), Table("trips", "trips/trips_2.parquet", [newer])],
        links("vehicles.home_depot > depots.depot_id", "driver_vehicles.driver_id > drivers.driver_id", "driver_vehicles.vin > vehicles.vin",
              "sensors.vin > vehicles.vin", "sensor_readings.vin+sensor_no > sensors.vin+sensor_no", "stock.depot_id > depots.depot_id",
              "stock.part_no > parts.part_no", "trips.driver_id > drivers.driver_id", "trips.vin > vehicles.vin",
              "trips.start_depot_id > depots.depot_id", "trips.end_depot_id > depots.depot_id"),
        links("sensor_readings.vin > vehicles.vin"),
    )  # fmt: skip


MESSY_SETS: tuple[Callable[[], DataSet], ...] = (haendler, saas, fleet)
"""Written when thresholds and names of the other sets stood."""
