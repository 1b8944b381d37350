"""Data sets by chance in the manner of domains, whose relationships are known as they are made.

Columns refer in several roles, nearly all keys count from 1, a member 0 or -1 may stand for
"unknown", and other columns hold numbers of something else.
"""

import random
import re
from dataclasses import dataclass, field

from support.discovery.datasetfiles import DataSet, Row, Table

DOMAINS = {
    "network": """
        zones 24|40: zone_id|zone=# households=1..90 jobs=1..24
        nodes|node 24|300: node_id|id|node|node_no=# x=0..9999 ?zone>zones~-1:.3
        link_types 6: link_type=T## ?link_type_id=@ speed=1..4
        links|link|edges 700: link_id=# from_node+to_node|init_node+term_node|node_from+node_to|
         from_node_id+to_node_id|tail_node+head_node|inode+jnode|a_node+b_node|node1+node2|
         nodeA+nodeB|upstream_node_id+downstream_node_id>nodes lanes=1..4 capacity=1..40
         direction=-1..1 link_type>link_types
        trips 500: trip_id=# persons=1..5 hour=0..23 o_zone+d_zone|from_zone+to_zone>zones
        ?turns 200: penalty=0..60 phases=1..4 via_node>nodes from_link+to_link>links
        ?counts 400: hour=0..23 volume=1..300 link_id>links
        """,
    "transit": """
        agency 3: agency_id=A## agency_name=Agency#
        calendar 5: service_id=#|S## monday=0..1 sunday=0..1
        ?levels 4: level_id=L## level_index=-1..2
        stops|stations 120: stop_id|station_id=#|P### stop_name=Stop# zone=1..4
        routes|lines 18: route_id|line_id=#|R## short_name=# route_type=0..3 agency_id>agency
        trips 300: trip_id=#|T### direction_id=0..1 route_id|line_id>routes service_id>calendar
        stop_times 2400: trip_id:8>trips stop_sequence%8 pickup_type=0..1 stop_id|station_id>stops
        calendar_dates 60: service_id>calendar date=20260101..20260131 exception_type=1..2
        transfers 80: from_stop_id+to_stop_id|from_stop+to_stop>stops transfer_type=0..3
        ?frequencies 50: trip_id>trips headway=3..30
        ?route_links|route_stations 144: link=# route_id|line_id:8>routes seq%8
         from_stop+to_stop>stops
        ?route_mapping 144: route_id|line_id:8>routes seq%8 length=500..900
        ?pathways 40: pathway_id=#|W## from_stop_id+to_stop_id>stops mode=1..7
        """,
    "matches": """
        leagues 8: id|league_id=# league_name=League# tier=1..3
        teams 40: id|team_id=# team_name=Team# wins=0..30
        players 220: id|player_id=# nick=P# age=16..40 ?team_id|current_team_id>teams~0:.2
        heroes 110: id|hero_id=# hero_name=Hero# legs=0..8
        items 150: id|item_id=# cost=1..150 charges=0..9
        matches 500: id|match_id=# duration=20..90 first_blood=1..40 league_id>leagues
         radiant_team_id+dire_team_id|home_team+away_team|blue_team_id+red_team_id|
         team_id_winner+team_id_loser|team_1_id+team_2_id>teams~0:.1
         player_0+player_1+player_2>players ?mvp_player_id>players
        match_players 1500: slot=0..9 kills=0..20 level=1..25 match_id>matches player_id>players
         hero_id>heroes item_0+item_1+item_2>items~0:.2
        ?bans 300: turn=1..10 match_id>matches hero_id|banned_hero_id>heroes
        ?abilities 260: id|ability_id=# cooldown=0..60 level=1..4 hero_id>heroes
        lores 400: lore=# hero_id=1..140 length=10..90
        """,
    "places": """
        continents 7: code|continent_code=@@ name=C#
        countries 90: code|iso|alpha2|country_code=@@ ?geonameid=8## isonumeric=4..900 name=Country#
         continent|continent_code>continents
        admin1 240: code|admin1_code=@@.## name=Part# geonameid=9000..20000
        feature_codes 6: code=P.PPL@ name=Kind#
        timezones 30: timezone|timezone_id=Zone/City## offset=-11..12
        cities 900: geonameid=9## name=City# population=0..9999999
         country_code|country|countrycode>countries admin1_code>admin1~:.1
         feature_code>feature_codes timezone>timezones
        ?neighbours 200: country+neighbour>countries*
        ?alternate_names 600: id=# language=de,en,fr label=L# geonameid>cities
        ?airports 200: iata=@@## iso_country|country_code>countries
        """,
    "clinic": """
        vocabulary 9: vocabulary_id=V##x vocabulary_name=V#
        domain 7: domain_id=Domain# domain_name=D#
        concept 600: concept_id=~900|~4000000 label=T# vocabulary_id>vocabulary domain_id>domain
        location 60: location_id=# city=City# county=1..9
        care_site 12: care_site_id=# site_name=Site# location_id>location
        provider 30: provider_id=# year_of_birth=1950..1990 care_site_id>care_site
         specialty_concept_id>concept~0:.3
        person 200: person_id=# year_of_birth=1930..2010 month_of_birth=1..12
         gender_concept_id+race_concept_id>concept~0:.3 gender_source_concept_id>concept~0:.9*
         location_id>location~:.3 provider_id>provider~:.6
        visit_occurrence 900: visit_occurrence_id=# days=1..30 person_id>person
         visit_concept_id+visit_type_concept_id>concept~0:.3 care_site_id>care_site~:.2
         preceding_visit_occurrence_id>visit_occurrence~:.3
        condition_occurrence 1200: condition_occurrence_id=# quantity=1..30 person_id>person
         condition_concept_id+condition_type_concept_id+condition_source_concept_id>concept~0:.3
         visit_occurrence_id>visit_occurrence~:.2 provider_id>provider~:.4
        measurement 1200: measurement_id=# days_supply=1..90 person_id>person
         measurement_concept_id+measurement_type_concept_id>concept~0:.3
         measurement_source_concept_id>concept~0:.6 visit_occurrence_id>visit_occurrence
        ?concept_ancestor 700: levels=0..5 ancestor_concept_id+descendant_concept_id>concept
        ?concept_relationship 700: kind=Is,Maps concept_id_1+concept_id_2>concept
        """,
    "retail": """
        product_class 20: product_class_id=# product_family=Food,Drink
        product 300: product_id=# units_per_case=1..36 shelf_width=1..20
         product_class_id>product_class
        region 30: region_id=# sales_city=City# sales_district_id=100..130
        store 24: store_id=# store_type=Deluxe,Small store_number=# coffee_bar=0..1
         region_id>region
        customer 400: customer_id=# total_children=0..5 num_cars_owned=0..4
         customer_region_id|region_id>region
        promotion 40: promotion_id=# promotion_name=P# cost=1..9
        department 9: department_id=# department_description=D#
        position 15: position_id=# position_title=Title# min_scale=1..9
        employee 150: employee_id=# position_title=Title1,Title2 birth_year=1950..1990
         store_id>store~0:.1 department_id>department position_id>position
         supervisor_id>employee~0:.1 salary=20..90 education_level=High,Low gender=M,F
        ?reserve_employee 90: employee_id=# position_title=Title1,Title2 birth_year=1950..1990
         store_id>store~0:.1 department_id>department position_id>position
         supervisor_id>employee~0:.1* salary=20..90 education_level=High,Low gender=M,F
        ?employee_closure 400: supervisor_id>employee* employee_id>employee distance=0..5
        warehouse_class 6: warehouse_class_id=# description=Class#
        warehouse 24: warehouse_id=# warehouse_class_id>warehouse_class stores_id>store*
        currency 3: currency_id=# currency=Euro# rate=1..3
        days 7: day=# week_day=Day#
        account 11: account_id=1000# account_type=Asset,Liability account_parent>account~:.1
        time_by_day|dim_time 365: time_id=# day_of_month=1..28 month_of_year=1..12
         the_year=1..5
        sales_fact 1500: store_sales=1..20 unit_sales=1..6 store_cost=1..9 time_id>time_by_day
         product_id>product~0:.1|-1:.1|:.1 customer_id>customer~-1:.1 promotion_id>promotion
         store_id>store
        expense_fact 900: exp_amount=1..90 store_id>store account_id>account time_id>time_by_day
         currency_id>currency
        agg_1_sales 300: product_id>product store_id>store unit_sales=1..90 fact_count=1..9
        agg_3_sales|sales_by_product 300: product_id:1>product unit_sales=1..90 fact_count=1..9
        agg_4_sales 60: month_of_year%12 the_year%5 unit_sales=1..90 fact_count=1..9
        ?sales_by_customer 400: customer_id:1>customer unit_sales=1..90 last_store_id>store
        agg_2_sales 365: time_id>time_by_day customer_id>customer store_sales=1..90 fact_count=1..9
        warehouse_fact 900: units_ordered=1..30 units_shipped=1..30 supply_time=1..5
         warehouse_id>warehouse product_id>product store_id>store time_id>time_by_day
        salary 600: pay_month=1..12 vacation_used=0..9 employee_id>employee
         department_id>department
        """,
    "compounds": """
        sites 12: site_id=# city=City# floors=1..9
        shelves 108: site_id:9>sites shelf_no%9 height=1..9
        goods 80: good_id=# weight=1..40 pieces=1..12
        orders 300: order_no=70## priority=1..3 site_id>sites
        order_lines 900: order_no:3>orders line_no%3 quantity=1..40 good_id>goods
        deliveries 700: delivery_id=# packages=1..3 order_no+line_no>>order_lines
        moves 500: move_id=# pieces=1..9 good_id>goods
         from_site_id+from_shelf_no>>shelves to_site_id+to_shelf_no>>shelves
        """,
}
"""Tables with their rows and columns: `a|b` is one of them, `?` one time in two only.

A column has numbers from 1 (`#`), texts with these (`P##`), numbers of a range (`0..9`), some far
apart (`~900`), letters (`@@`), or one of some texts; `%9` counts to 9 again and again. Columns
refer (`>`) to the first column of a table, by rows in order (`:9>`, so many to each), or (`>>`)
together to its first two; `~0:.1` has 0 for 10 % of them, and `*` is what only a person knows.
"""
_COLUMN = re.compile(r"(\??)([\w+|]+?)(?:(=)(.+)|%(\d+)|(?::(\d+))?(>>?)(\w+)(?:~(.+?))?(\*?))")


@dataclass
class _Made:
    chance: random.Random
    data: dict[str, list[Row]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Of tables, by the first one of their alternatives."""
    chosen: dict[str, str] = field(default_factory=dict)
    truth: set[tuple[str, tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=set)
    right: set[tuple[str, tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=set)

    def one_of(self, text: str) -> str:
        return self.chosen.setdefault(text, self.chance.choice(text.split("|")))

    def add(self, line: str) -> None:
        """Make one table."""
        head, _, columns = line.partition(": ")
        named, rows = head.split(" ")
        if named.startswith("?") and self.chance.random() < 0.5:
            return
        named = named.removeprefix("?")
        table = self.names[named.split("|")[0]] = self.one_of(named)
        self.data[table] = [{} for _ in range(int(self.one_of(rows)))]
        for column in columns.replace("| ", "|").split():
            found = _COLUMN.fullmatch(column)
            assert found is not None, column
            if not found[1] or self.chance.random() < 0.5:
                self._column(table, self.one_of(found[2]).split("+"), found)

    def _column(self, table: str, columns: list[str], found: re.Match[str]) -> None:
        rows = self.data[table]
        if found[3]:
            values = self._values(self.one_of(found[4]), len(rows))
        elif found[5]:
            values = [n % int(found[5]) + 1 for n in range(len(rows))]
        else:
            self._refer(table, columns, found)
            return
        for row, value in zip(rows, values, strict=True):
            row[columns[0]] = value

    def _values(self, text: str, number: int) -> list[object]:
        chance = self.chance
        if text.startswith("~"):
            return [*sorted(chance.sample(range(1, int(text[1:])), number))]
        if ".." in text:
            low, high = map(int, text.split(".."))
            return [chance.randint(low, high) for _ in range(number)]
        if "," in text:
            return [chance.choice(text.split(",")) for _ in range(number)]
        if "@" in text:
            return [self._lettered(text, n) for n in range(number)]
        width = text.count("#")
        made = [text.replace("#" * width, f"{n:0{width}}") for n in range(1, number + 1)]
        return [int(one) if one.isdigit() and text[0] in "#0123456789" else one for one in made]

    @staticmethod
    def _lettered(text: str, number: int) -> str:
        letters = "".join(chr(65 + number // 26**n % 26) for n in range(text.count("@")))
        return text.replace("@" * len(letters), letters).replace("##", f"{number % 4:02}")

    def _refer(self, table: str, columns: list[str], found: re.Match[str]) -> None:
        rows, chance = self.data[table], self.chance
        parent = self.names[found[8]]
        others = self.data[parent]
        keys = list(others[0])[: len(columns) if found[7] == ">>" else 1]
        unknown, _, share = self.one_of(found[9] or ":0").partition(":")
        if found[7] == ">>":
            for row in rows:
                row.update(zip(columns, map(chance.choice(others).get, keys), strict=True))
            self.truth.add((table, tuple(columns), parent, tuple(keys)))
            self.right |= {
                (table, (columns[0],), up, theirs)
                for child, mine, up, theirs in self.truth
                if (child, mine) == (parent, (keys[0],))
            }
            return
        used = others[: max(2, len(others) // 2)] if chance.random() < 0.3 else others
        for column in columns:
            (self.right if found[10] else self.truth).add((table, (column,), parent, (keys[0],)))
            for n, row in enumerate(rows):
                one = others[n // int(found[6])] if found[6] else chance.choice(used)
                if table == parent:
                    one = others[chance.randint(0, max(0, n - 1))]
                is_unknown = chance.random() < float(share) or (table == parent and n < 2)
                none = int(unknown) if unknown else None
                row[column] = none if is_unknown else one[keys[0]]


def domain(name: str, seed: int) -> DataSet:
    """A data set of a domain."""
    made = _Made(random.Random(seed))
    for line in re.sub(r"\n {9}(?=\S)", " ", DOMAINS[name]).strip().splitlines():
        made.add(line.strip())
    tables = [Table(table, f"{table}.csv", [rows]) for table, rows in made.data.items()]
    return DataSet(f"{name} {seed}", tables, frozenset(made.truth), frozenset(made.right))
