"""Data sets in the shape of well-known ones, written after the thresholds were chosen."""

from __future__ import annotations

import random
from collections.abc import Callable

from support.discovery.datasetfiles import DataSet, Row, Table, links
from support.discovery.datasets import spread, table


def chinook() -> DataSet:
    """A shop of music: the key of an agent is called otherwise."""
    r = random.Random(7)
    artists = table(80, lambda i: {"ArtistId": i, "Name": f"A{i}"})
    albums = table(120, lambda i: {"AlbumId": i, "Title": f"T{i}", "ArtistId": r.randint(1, 80)})
    genres = table(25, lambda i: {"GenreId": i, "Name": f"G{i}"})
    media = table(5, lambda i: {"MediaTypeId": i, "Name": f"M{i}"})
    tracks = table(
        1000,
        lambda i: {
            "TrackId": i,
            "Name": f"N{i}",
            "AlbumId": r.randint(1, 120),
            "MediaTypeId": r.randint(1, 5),
            "GenreId": r.randint(1, 25),
            "Milliseconds": r.randint(1000, 400000),
            "Bytes": r.randint(10**5, 10**7),
        },
    )
    emp = table(
        8,
        lambda i: {
            "EmployeeId": i,
            "LastName": f"L{i}",
            "ReportsTo": None if i == 1 else r.randint(1, 3),
            "City": r.choice("ABCD"),
        },
    )
    cust = table(
        59,
        lambda i: {
            "CustomerId": i,
            "LastName": f"K{i}",
            "Email": f"e{i}",
            "SupportRepId": r.randint(3, 5),
            "Country": r.choice(["USA", "Canada", "Brazil"]),
        },
    )
    inv = table(
        400,
        lambda i: {
            "InvoiceId": i,
            "CustomerId": r.randint(1, 59),
            "BillingCountry": r.choice(["USA", "Canada", "Brazil"]),
            "Total": r.random(),
        },
    )
    il = table(
        2000,
        lambda i: {
            "InvoiceLineId": i,
            "InvoiceId": (i - 1) // 5 + 1,
            "TrackId": r.randint(1, 1000),
            "Quantity": 1,
        },
    )
    pl = table(18, lambda i: {"PlaylistId": i, "Name": f"P{i}"})
    pt: list[Row] = [
        {"PlaylistId": p, "TrackId": t} for p in range(1, 19) for t in r.sample(range(1, 1001), 50)
    ]
    return DataSet(
        "chinook",
        [
            Table(n, f"{n}.csv", [x])
            for n, x in {
                "Artist": artists,
                "Album": albums,
                "Genre": genres,
                "MediaType": media,
                "Track": tracks,
                "Employee": emp,
                "Customer": cust,
                "Invoice": inv,
                "InvoiceLine": il,
                "Playlist": pl,
                "PlaylistTrack": pt,
            }.items()
        ],
        links(
            "Album.ArtistId > Artist.ArtistId",
            "Track.AlbumId > Album.AlbumId",
            "Track.GenreId > Genre.GenreId",
            "Track.MediaTypeId > MediaType.MediaTypeId",
            "Employee.ReportsTo > Employee.EmployeeId",
            "Invoice.CustomerId > Customer.CustomerId",
            "InvoiceLine.InvoiceId > Invoice.InvoiceId",
            "InvoiceLine.TrackId > Track.TrackId",
            "PlaylistTrack.PlaylistId > Playlist.PlaylistId",
            "PlaylistTrack.TrackId > Track.TrackId",
            "Customer.SupportRepId > Employee.EmployeeId",
        ),
    )


def gtfs() -> DataSet:
    """A timetable: text files, stations inside stations."""
    r = random.Random(4)
    ag: list[Row] = [{"agency_id": f"AG{i}", "agency_name": f"N{i}"} for i in range(3)]
    routes: list[Row] = [
        {
            "route_id": f"R{i}",
            "agency_id": f"AG{i % 3}",
            "route_short_name": str(i),
            "route_type": i % 4,
        }
        for i in range(40)
    ]
    cal: list[Row] = [
        {"service_id": f"SV{i}", "monday": 1, "start_date": "20260101", "end_date": "20261231"}
        for i in range(6)
    ]
    stops: list[Row] = [
        {
            "stop_id": f"ST{i}",
            "stop_name": f"Stop {i}",
            "parent_station": f"ST{i % 10}" if i > 10 else None,
        }
        for i in range(200)
    ]
    trips: list[Row] = [
        {
            "route_id": f"R{r.randint(0, 39)}",
            "service_id": f"SV{r.randint(0, 5)}",
            "trip_id": f"T{i}",
            "direction_id": r.randint(0, 1),
        }
        for i in range(500)
    ]
    st: list[Row] = [
        {
            "trip_id": t["trip_id"],
            "arrival_time": f"{8 + k // 6:02d}:{k % 6}0:00",
            "stop_id": f"ST{r.randint(0, 199)}",
            "stop_sequence": k,
        }
        for t in trips
        for k in range(8)
    ]
    return DataSet(
        "gtfs",
        [
            Table(n, f"{n}.txt", [x])
            for n, x in {
                "agency": ag,
                "routes": routes,
                "calendar": cal,
                "stops": stops,
                "trips": trips,
                "stop_times": st,
            }.items()
        ],
        links(
            "routes.agency_id > agency.agency_id",
            "trips.route_id > routes.route_id",
            "trips.service_id > calendar.service_id",
            "stops.parent_station > stops.stop_id",
            "stop_times.trip_id > trips.trip_id",
            "stop_times.stop_id > stops.stop_id",
        ),
    )


def imdb() -> DataSet:
    """Films: names with points, one row a film in several tables."""
    r = random.Random(4)
    nb: list[Row] = [
        {"nconst": f"nm{i:07d}", "primaryName": f"N{i}", "birthYear": r.randint(1900, 2000)}
        for i in range(800)
    ]
    tb: list[Row] = [
        {
            "tconst": f"tt{i:07d}",
            "titleType": r.choice(["movie", "tvEpisode"]),
            "startYear": r.randint(1950, 2020),
        }
        for i in range(1000)
    ]
    tr: list[Row] = [
        {"tconst": t["tconst"], "averageRating": r.random() * 10, "numVotes": r.randint(1, 10**6)}
        for t in tb[::2]
    ]
    te: list[Row] = [
        {
            "tconst": t["tconst"],
            "parentTconst": r.choice(tb)["tconst"],
            "seasonNumber": r.randint(1, 9),
            "episodeNumber": r.randint(1, 20),
        }
        for t in tb[500:]
    ]
    tp: list[Row] = [
        {
            "tconst": t["tconst"],
            "ordering": o,
            "nconst": r.choice(nb)["nconst"],
            "category": r.choice(["actor", "director"]),
        }
        for t in tb
        for o in range(1, 5)
    ]
    return DataSet(
        "imdb",
        [
            Table(n, "{day}/" + n + ".tsv.gz", [x], separator="\t")
            for n, x in {
                "name.basics": nb,
                "title.basics": tb,
                "title.ratings": tr,
                "title.episode": te,
                "title.principals": tp,
            }.items()
        ],
        links(
            "title_ratings.tconst > title_basics.tconst",
            "title_episode.tconst > title_basics.tconst",
            "title_episode.parentTconst > title_basics.tconst",
            "title_principals.tconst > title_basics.tconst",
            "title_principals.nconst > name_basics.nconst",
        ),
    )


def football() -> DataSet:
    """Matches: two teams a match, columns without id."""
    r = random.Random(8)
    teams = table(20, lambda i: {"id": i, "name": f"T{i}", "founded": r.randint(1880, 1960)})
    players = table(
        440,
        lambda i: {
            "id": i,
            "team_id": (i - 1) // 22 + 1,
            "shirt_number": r.randint(1, 99),
            "position": r.choice(["GK", "DF"]),
        },
    )
    refs = table(15, lambda i: {"id": i, "name": f"R{i}"})
    stad = table(20, lambda i: {"id": i, "name": f"S{i}", "capacity": r.randint(1000, 80000)})
    matches = table(
        380,
        lambda i: {
            "id": i,
            "home_team_id": r.randint(1, 20),
            "away_team_id": r.randint(1, 20),
            "stadium": r.randint(1, 20),
            "referee": r.randint(1, 15),
            "home_goals": r.randint(0, 5),
            "away_goals": r.randint(0, 5),
            "round": (i - 1) // 10 + 1,
        },
    )
    ev = table(
        3000,
        lambda i: {
            "id": i,
            "match_id": (i - 1) // 8 + 1,
            "player_id": r.randint(1, 440),
            "minute": r.randint(1, 90),
            "type": r.choice(["goal", "foul"]),
        },
    )
    return DataSet(
        "football",
        [
            Table("teams", "teams/season=2025/teams.parquet", [teams]),
            Table("players", "players.parquet", [players]),
            Table("referees", "referees.parquet", [refs]),
            Table("stadiums", "stadiums.parquet", [stad]),
            Table("matches", "matches_{compact}.parquet", spread(matches)),
            Table(
                "match_events",
                "match_events_{compact}.parquet",
                [[e for e in ev if (int(str(e["match_id"])) - 1) // 38 == d] for d in range(10)],
            ),
        ],
        links(
            "players.team_id > teams.id",
            "matches.home_team_id > teams.id",
            "matches.away_team_id > teams.id",
            "matches.stadium > stadiums.id",
            "matches.referee > referees.id",
            "match_events.match_id > matches.id",
            "match_events.player_id > players.id",
        ),
    )


def erp() -> DataSet:
    """Orders of an ERP: five letters a name, a client in every key."""
    r = random.Random(3)
    kna1: list[Row] = [
        {
            "MANDT": "100",
            "KUNNR": f"{i:010d}",
            "NAME1": f"N{i}",
            "LAND1": r.choice(["DE", "AT", "CH", "FR", "IT"]),
        }
        for i in range(1, 200)
    ]
    t005: list[Row] = [
        {"MANDT": "100", "LAND1": c, "WAERS": "EUR"} for c in ["DE", "AT", "CH", "FR", "IT", "ES"]
    ]
    mara: list[Row] = [
        {"MANDT": "100", "MATNR": f"{i:018d}", "MTART": r.choice(["FERT", "HAWA"]), "MEINS": "ST"}
        for i in range(1, 300)
    ]
    vbak: list[Row] = [
        {
            "MANDT": "100",
            "VBELN": f"{i:010d}",
            "KUNNR": r.choice(kna1)["KUNNR"],
            "NETWR": r.random(),
        }
        for i in range(1, 500)
    ]
    vbap: list[Row] = [
        {
            "MANDT": "100",
            "VBELN": v["VBELN"],
            "POSNR": f"{p * 10:06d}",
            "MATNR": r.choice(mara)["MATNR"],
            "KWMENG": r.randint(1, 9),
        }
        for v in vbak
        for p in (1, 2, 3)
    ]
    vbep: list[Row] = [
        {
            "MANDT": "100",
            "VBELN": v["VBELN"],
            "POSNR": v["POSNR"],
            "ETENR": f"{e:04d}",
            "BMENG": r.randint(1, 9),
        }
        for v in vbap
        for e in (1, 2)
    ]
    return DataSet(
        "erp",
        [
            Table(n, n + "/" + n + "_{compact}.csv", [x, x], separator=";")
            for n, x in {
                "KNA1": kna1,
                "T005": t005,
                "MARA": mara,
                "VBAK": vbak,
                "VBAP": vbap,
                "VBEP": vbep,
            }.items()
        ],
        links(
            "KNA1.LAND1 > T005.LAND1",
            "VBAK.KUNNR > KNA1.KUNNR",
            "VBAP.VBELN > VBAK.VBELN",
            "VBAP.MATNR > MARA.MATNR",
            "VBEP.VBELN+POSNR > VBAP.VBELN+POSNR",
        ),
        links("VBEP.VBELN > VBAK.VBELN"),
    )


def auftraege() -> DataSet:
    """German abbreviations: kd_nr, auf_nr, art_nr."""
    r = random.Random(9)
    ks = table(
        150, lambda i: {"kd_nr": i, "kd_name": f"K{i}", "kd_plz": f"{r.randint(1000, 99999):05d}"}
    )
    ars = table(
        90,
        lambda i: {
            "art_nr": i,
            "art_bez": f"A{i}",
            "art_preis": f"{r.randint(1, 99)},99",
            "lief_nr": r.randint(1, 12),
        },
    )
    li = table(12, lambda i: {"lief_nr": i, "lief_name": f"L{i}"})
    ak = table(
        500,
        lambda i: {
            "auf_nr": i,
            "kd_nr": r.randint(1, 110),
            "auf_status": r.choice("ABC"),
            "vertreter": r.randint(1, 8),
        },
    )
    ap: list[Row] = [
        {"auf_nr": a["auf_nr"], "pos_nr": p, "art_nr": r.randint(1, 80), "menge": r.randint(1, 20)}
        for a in ak
        for p in range(1, 4)
    ]
    ve = table(
        8, lambda i: {"vertreter_id": i, "name": f"V{i}", "gebiet": r.choice(["Nord", "Süd"])}
    )
    rg = table(
        400, lambda i: {"rechnungs_id": 9000 + i, "auf_nr": i, "betrag": f"{r.randint(1, 999)},00"}
    )

    def day(rows: list[Row]) -> list[list[Row]]:
        return [[x for x in rows if (int(str(x["auf_nr"])) - 1) // 50 == d] for d in range(10)]

    return DataSet(
        "auftraege",
        [
            Table("kundenstamm", "stamm/kundenstamm.csv", [ks], separator=";", encoding="latin-1"),
            Table("artikelstamm", "stamm/artikelstamm.csv", [ars], separator=";"),
            Table("lieferanten", "stamm/lieferanten.csv", [li], separator=";"),
            Table("vertreter", "stamm/vertreter.csv", [ve], separator=";", encoding="latin-1"),
            Table("auftragskopf", "auftragskopf_{compact}.csv", day(ak), separator=";"),
            Table("auftragspos", "auftragspos_{compact}.csv", day(ap), separator=";"),
            Table(
                "rechnungen", "rechnungen_{compact}.csv", [x for x in day(rg) if x], separator=";"
            ),
        ],
        links(
            "artikelstamm.lief_nr > lieferanten.lief_nr",
            "auftragskopf.kd_nr > kundenstamm.kd_nr",
            "auftragskopf.vertreter > vertreter.vertreter_id",
            "auftragspos.auf_nr > auftragskopf.auf_nr",
            "auftragspos.art_nr > artikelstamm.art_nr",
            "rechnungen.auf_nr > auftragskopf.auf_nr",
        ),
    )


def warehouse() -> DataSet:
    """Stocks: a compound key, two warehouses a transfer, article numbers beside keys."""
    r = random.Random(9)
    wh = table(8, lambda i: {"warehouse_id": i, "name": f"W{i}"})
    pr = table(100, lambda i: {"product_id": i, "sku": f"SKU{i:05d}"})
    inv: list[Row] = [
        {
            "warehouse_id": w["warehouse_id"],
            "product_id": p["product_id"],
            "on_hand": r.randint(0, 500),
        }
        for w in wh
        for p in r.sample(pr, 60)
    ]
    mv = table(
        2000,
        lambda i: {
            "movement_id": i,
            "qty": r.randint(-9, 9),
            **{k: v for k, v in r.choice(inv).items() if k != "on_hand"},
        },
    )
    po = table(
        300,
        lambda i: {
            "po_id": i,
            "from_warehouse": r.randint(1, 8),
            "to_warehouse": r.randint(1, 8),
            "sku": f"SKU{r.randint(1, 100):05d}",
            "created_by": r.randint(1, 15),
        },
    )
    us = table(15, lambda i: {"user_id": i, "login": f"u{i}"})
    return DataSet(
        "warehouse",
        [
            Table("dim_warehouse", "dim_warehouse.csv", [wh]),
            Table("dim_product", "dim_product.csv", [pr]),
            Table("inventory", "inventory/dt={day}/0001.csv", [inv] * 3),
            Table("movements", "movements/dt={day}/0001.csv", spread(mv, 3)),
            Table("transfer_orders", "transfer_orders/dt={day}/0001.csv", spread(po, 3)),
            Table("users", "users.csv", [us]),
        ],
        links(
            "inventory.warehouse_id > dim_warehouse.warehouse_id",
            "inventory.product_id > dim_product.product_id",
            "movements.warehouse_id+product_id > inventory.warehouse_id+product_id",
            "transfer_orders.from_warehouse > dim_warehouse.warehouse_id",
            "transfer_orders.to_warehouse > dim_warehouse.warehouse_id",
            "transfer_orders.sku > dim_product.sku",
        ),
        links(
            "movements.warehouse_id > dim_warehouse.warehouse_id",
            "movements.product_id > dim_product.product_id",
            "transfer_orders.created_by > users.user_id",
        ),
    )


PUBLIC_MODELS: tuple[Callable[[], DataSet], ...] = (
    chinook, gtfs, imdb, football, erp, auftraege, warehouse,
)  # fmt: skip
