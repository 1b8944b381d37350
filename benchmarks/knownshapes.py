# ruff: noqa: E501 - listings are shorter to read on one line
"""Data sets in the shape of other well-known ones, each written as a listing of its tables.

A line is a table: its name, its number of rows, and its columns.

    id*          a key of whole numbers from 1 on (`id*500` from 500 on; `id*code` a text)
    a>table      a reference to the key of a table; with `?` behind it, a third of them is missing
    a+           part of a key of several columns
    a:kind       another value: text, num, small, money, day, time, flag, code, year
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial

from support.discovery.datasetfiles import DataSet, Link, Row, Table, links

_COLUMN = re.compile(
    r"(?P<name>[\w ]+?)(?P<part>\+)?(?:\*(?P<key>\w*))?(?:>(?P<to>\w+))?(?P<null>\?)?(?::(?P<kind>\w+))?"
)

SHAPES = {
    "northwind": (
        "csv",
        """categories 8 category_id* category_name:text description:text
        suppliers 29 supplier_id* company_name:text city:text phone:code
        products 77 product_id* product_name:text supplier_id>suppliers category_id>categories unit_price:money units_in_stock:num discontinued:flag
        customers 91 customer_id*code company_name:text city:text country:text
        employees 9 employee_id* last_name:text reports_to>employees? birth_date:day hire_date:day
        shippers 3 shipper_id* company_name:text
        orders 830 order_id*10248 customer_id>customers employee_id>employees order_date:day shipped_date?:day ship_via>shippers freight:money
        order_details 2100 order_id+>orders product_id+>products unit_price:money quantity:small discount:money
        region 4 region_id* region_description:text
        territories 53 territory_id*1581 territory_description:text region_id>region
        employee_territories 20 employee_id+>employees territory_id+>territories""",
        "",
    ),
    "sakila": (
        "parquet",
        """actor 200 actor_id* first_name:text last_name:text last_update:time
        language 6 language_id* name:text last_update:time
        category 16 category_id* name:text last_update:time
        film 1000 film_id* title:text release_year:year language_id>language original_language_id>language? rental_duration:small length:num last_update:time
        film_actor 3000 actor_id+>actor film_id+>film last_update:time
        film_category 1000 film_id+>film category_id>category last_update:time
        country 109 country_id* country:text
        city 600 city_id* city:text country_id>country
        address 603 address_id* address:text district:text city_id>city postal_code:code phone:code
        store 2 store_id* manager_staff_id>staff address_id>address
        staff 2 staff_id* first_name:text address_id>address store_id>store active:flag
        customer 599 customer_id* store_id>store first_name:text email:text address_id>address active:flag create_date:day
        inventory 4000 inventory_id* film_id>film store_id>store
        rental 6000 rental_id* rental_date:time inventory_id>inventory customer_id>customer return_date?:time staff_id>staff
        payment 6000 payment_id* customer_id>customer staff_id>staff rental_id>rental amount:money payment_date:time""",
        "store.manager_staff_id > staff.staff_id",
    ),
    "olist": (
        "csv",
        """olist_customers_dataset 900 customer_id*code customer_unique_id:code customer_zip_code_prefix:num customer_city:text
        olist_sellers_dataset 120 seller_id*code seller_zip_code_prefix:num seller_city:text
        olist_products_dataset 400 product_id*code product_category_name:text product_weight_g:num
        olist_orders_dataset 900 order_id*code customer_id>olist_customers_dataset order_status:text order_purchase_timestamp:time
        olist_order_items_dataset 1200 order_id+>olist_orders_dataset order_item_id+:small product_id>olist_products_dataset seller_id>olist_sellers_dataset price:money
        olist_order_payments_dataset 950 order_id+>olist_orders_dataset payment_sequential+:small payment_type:text payment_value:money
        olist_order_reviews_dataset 880 review_id*code order_id>olist_orders_dataset review_score:small review_creation_date:time""",
        "",
    ),
    "stackoverflow": (
        "jsonl",
        """Users 500 Id* DisplayName:text Reputation:num CreationDate:time
        PostTypes 8 Id* Name:text
        Posts 1500 Id* PostTypeId>PostTypes ParentId>Posts? OwnerUserId>Users LastEditorUserId>Users? AcceptedAnswerId>Posts? Score:small ViewCount:num CreationDate:time
        Comments 1800 Id* PostId>Posts UserId>Users Score:small CreationDate:time
        VoteTypes 15 Id* Name:text
        Votes 3000 Id* PostId>Posts VoteTypeId>VoteTypes CreationDate:day
        Badges 900 Id* UserId>Users Name:text Date:time
        Tags 300 Id* TagName:text Count:num
        PostLinks 250 Id* PostId>Posts RelatedPostId>Posts LinkTypeId:small""",
        "Posts.AcceptedAnswerId > Posts.Id",
    ),
    "formula1": (
        "csv",
        """circuits 77 circuitId* circuitRef:code name:text country:text lat:money
        seasons 40 year*1984 url:text
        races 500 raceId* year>seasons round:small circuitId>circuits name:text date:day
        drivers 300 driverId* driverRef:code number?:small code:text forename:text dob:day
        constructors 120 constructorId* constructorRef:code name:text nationality:text
        status 60 statusId* status:text
        results 4000 resultId* raceId>races driverId>drivers constructorId>constructors number:small grid:small position:small points:money laps:num statusId>status
        qualifying 2000 qualifyId* raceId>races driverId>drivers constructorId>constructors number:small position:small
        pit_stops 2000 raceId+>races driverId+>drivers stop+:small lap:small milliseconds:num
        driver_standings 3000 driverStandingsId* raceId>races driverId>drivers points:money position:small wins:small""",
        "",
    ),
    "hr": (
        "csv",
        """REGIONS 5 REGION_ID* REGION_NAME:text
        COUNTRIES 25 COUNTRY_ID*code COUNTRY_NAME:text REGION_ID>REGIONS
        LOCATIONS 23 LOCATION_ID*1000 STREET_ADDRESS:text POSTAL_CODE:code CITY:text COUNTRY_ID>COUNTRIES
        JOBS 19 JOB_ID*code JOB_TITLE:text MIN_SALARY:num MAX_SALARY:num
        DEPARTMENTS 27 DEPARTMENT_ID*10 DEPARTMENT_NAME:text MANAGER_ID>EMPLOYEES LOCATION_ID>LOCATIONS
        EMPLOYEES 107 EMPLOYEE_ID*100 LAST_NAME:text HIRE_DATE:day JOB_ID>JOBS SALARY:num MANAGER_ID>EMPLOYEES? DEPARTMENT_ID>DEPARTMENTS
        JOB_HISTORY 60 EMPLOYEE_ID+>EMPLOYEES START_DATE+:day END_DATE:day JOB_ID>JOBS DEPARTMENT_ID>DEPARTMENTS""",
        "DEPARTMENTS.MANAGER_ID > EMPLOYEES.EMPLOYEE_ID",
    ),
    "retail_star": (
        "parquet",
        """date_dim 730 d_date_sk*2450815 d_date:day d_year:year d_moy:small d_dow:small
        item 600 i_item_sk* i_item_id:code i_product_name:text i_current_price:money i_brand_id:num
        customer 900 c_customer_sk* c_customer_id:code c_current_addr_sk>customer_address c_first_name:text c_birth_year:year
        customer_address 700 ca_address_sk* ca_address_id:code ca_city:text ca_zip:code
        store 12 s_store_sk* s_store_id:code s_store_name:text s_floor_space:num
        promotion 30 p_promo_sk* p_promo_id:code p_item_sk>item p_cost:money
        store_sales 5000 ss_sold_date_sk>date_dim ss_item_sk+>item ss_customer_sk>customer? ss_addr_sk>customer_address ss_store_sk>store ss_promo_sk>promotion ss_ticket_number+:num ss_quantity:small ss_sales_price:money
        store_returns 900 sr_returned_date_sk>date_dim sr_item_sk+>item sr_customer_sk>customer sr_store_sk>store sr_ticket_number+:num sr_return_amt:money""",
        "",
    ),
    "crm": (
        "csv",
        """Account 200 Id*code Name:text Industry:text ParentId>Account? OwnerId>User BillingCity:text AnnualRevenue:num
        User 25 Id*code Username:text Email:text ManagerId>User? IsActive:flag
        Contact 500 Id*code AccountId>Account LastName:text Email:text ReportsToId>Contact? OwnerId>User
        Opportunity 600 Id*code AccountId>Account OwnerId>User Name:text StageName:text Amount:money CloseDate:day CampaignId>Campaign?
        Campaign 30 Id*code Name:text Type:text Budget:num
        Case 400 Id*code ContactId>Contact AccountId>Account OwnerId>User Status:text Priority:text
        OpportunityLineItem 900 Id*code OpportunityId>Opportunity Product2Id>Product2 Quantity:small UnitPrice:money
        Product2 80 Id*code Name:text ProductCode:code Family:text""",
        "",
    ),
    "clinic": (
        "csv",
        """PATIENTS 300 SUBJECT_ID*10006 GENDER:text DOB:day
        ADMISSIONS 420 HADM_ID*142345 SUBJECT_ID>PATIENTS ADMITTIME:time DISCHTIME:time ADMISSION_TYPE:text
        ICUSTAYS 450 ICUSTAY_ID*206504 SUBJECT_ID>PATIENTS HADM_ID>ADMISSIONS FIRST_CAREUNIT:text INTIME:time
        D_ICD_DIAGNOSES 250 ICD9_CODE*code SHORT_TITLE:text LONG_TITLE:text
        DIAGNOSES_ICD 1500 ROW_ID* SUBJECT_ID>PATIENTS HADM_ID>ADMISSIONS SEQ_NUM:small ICD9_CODE>D_ICD_DIAGNOSES
        D_ITEMS 180 ITEMID*220045 LABEL:text CATEGORY:text
        CHARTEVENTS 3000 ROW_ID* SUBJECT_ID>PATIENTS HADM_ID>ADMISSIONS ICUSTAY_ID>ICUSTAYS ITEMID>D_ITEMS CHARTTIME:time VALUENUM:money
        CAREGIVERS 60 CGID*14010 LABEL:text DESCRIPTION:text
        NOTEEVENTS 600 ROW_ID* SUBJECT_ID>PATIENTS HADM_ID>ADMISSIONS CGID>CAREGIVERS CHARTDATE:day TEXT:text""",
        "",
    ),
    "world": (
        "csv",
        """country 180 Code*code Name:text Continent:text Population:num Capital>city
        city 900 ID* Name:text CountryCode>country District:text Population:num
        countrylanguage 700 CountryCode+>country Language+:text IsOfficial:flag Percentage:money""",
        "country.Capital > city.ID",
    ),
    "tickets": (
        "jsonl",
        """projects 12 key*code name:text lead_id>users
        users 80 id* login:text email:text
        issues 1200 id*10001 project_key>projects issue_no:num reporter_id>users assignee_id>users? parent_issue_id>issues? epic_id>epics? created_at:time updated_at:time points:small
        epics 40 id* project_key>projects title:text
        sprints 30 id* project_key>projects started_on:day
        sprint_issues 1000 sprint_id+>sprints issue_id+>issues
        comments 1500 id* issue_id>issues author_id>users body:text created_at:time
        labels 25 id* label:text
        issue_labels 900 issue_id+>issues label_id+>labels
        worklogs 800 worklog_id* issue_id>issues user_id>users seconds:num logged_on:day""",
        "",
    ),
    "adventure": (
        "csv",
        """Person_Person 500 BusinessEntityID* PersonType:text FirstName:text ModifiedDate:time
        HumanResources_Employee 60 BusinessEntityID>Person_Person JobTitle:text BirthDate:day HireDate:day
        Sales_Customer 400 CustomerID* PersonID>Person_Person? StoreID>Sales_Store? TerritoryID>Sales_SalesTerritory AccountNumber:code
        Sales_Store 40 StoreID*292 Name:text SalesPersonID>Sales_SalesPerson
        Sales_SalesPerson 17 SalesPersonID*274 TerritoryID>Sales_SalesTerritory? Bonus:money
        Sales_SalesTerritory 10 TerritoryID* Name:text CountryRegionCode:text
        Sales_SalesOrderHeader 900 SalesOrderID*43659 OrderDate:time CustomerID>Sales_Customer SalesPersonID>Sales_SalesPerson? TerritoryID>Sales_SalesTerritory BillToAddressID>Person_Address ShipToAddressID>Person_Address SubTotal:money
        Sales_SalesOrderDetail 2500 SalesOrderID+>Sales_SalesOrderHeader SalesOrderDetailID+:num ProductID>Production_Product OrderQty:small UnitPrice:money
        Production_Product 300 ProductID*1 Name:text ProductNumber:code ProductSubcategoryID>Production_ProductSubcategory? ListPrice:money
        Production_ProductSubcategory 37 ProductSubcategoryID* ProductCategoryID>Production_ProductCategory Name:text
        Production_ProductCategory 4 ProductCategoryID* Name:text
        Person_Address 700 AddressID*532 AddressLine1:text City:text StateProvinceID>Person_StateProvince PostalCode:code
        Person_StateProvince 80 StateProvinceID* StateProvinceCode:code Name:text""",
        "",
    ),
    "lego": (
        "csv",
        """themes 60 id* name:text parent_id>themes?
        sets 400 set_num*code name:text year:year theme_id>themes num_parts:num
        inventories 420 id* version:small set_num>sets
        parts 500 part_num*code name:text part_cat_id>part_categories
        part_categories 40 id* name:text
        colors 90 id* name:text rgb:code is_trans:flag
        inventory_parts 3000 inventory_id+>inventories part_num+>parts color_id+>colors quantity:small is_spare:flag
        inventory_sets 200 inventory_id+>inventories set_num+>sets quantity:small""",
        "",
    ),
    "movielens": (
        "csv",
        """movies 500 movieId* title:text genres:text
        ratings 4000 userId+:num movieId+>movies rating:money timestamp:num
        tags 500 userId+:num movieId+>movies tag:text timestamp:num
        links 500 movieId>movies imdbId:num tmdbId:num""",
        "",
    ),
    "airbnb": (
        "csv",
        """listings 400 id*code name:text host_id>hosts neighbourhood_cleansed>neighbourhoods price:money accommodates:small
        hosts 200 host_id*code host_name:text host_since:day
        neighbourhoods 40 neighbourhood*code neighbourhood_group:text
        reviews 2000 id*code listing_id>listings date:day reviewer_id:code comments:text
        calendar 5000 listing_id+>listings date+:day available:flag price:money""",
        "",
    ),
    "instacart": (
        "parquet",
        """aisles 134 aisle_id* aisle:text
        departments 21 department_id* department:text
        products 900 product_id* product_name:text aisle_id>aisles department_id>departments
        orders 2000 order_id* user_id:num order_number:small order_dow:small order_hour_of_day:small
        order_products_prior 5000 order_id+>orders product_id+>products add_to_cart_order:small reordered:flag""",
        "",
    ),
    "insurance": (
        "csv",
        """VERTRAG 500 VTRG_NR*700000 VN_PARTNER_NR>PARTNER VERMITTLER_NR>VERMITTLER SPARTE_CD>SPARTE BEGINN_DAT:day PRAEMIE:money
        PARTNER 400 PARTNER_NR*50000 NAME:text GEB_DAT:day PLZ:code
        VERMITTLER 30 VERMITTLER_NR*900 NAME:text
        SPARTE 8 SPARTE_CD*code BEZEICHNUNG:text
        SCHADEN 300 SCHADEN_NR*1000000 VTRG_NR>VERTRAG SCHADEN_DAT:day MELDER_PARTNER_NR>PARTNER AUFWAND:money
        ZAHLUNG 900 ZAHLUNG_ID* SCHADEN_NR>SCHADEN BETRAG:money ZAHL_DAT:day""",
        "",
    ),
}  # fmt: skip


def shaped(name: str) -> DataSet:
    """The data set of a listing."""
    ending, text, unsure = SHAPES[name]
    tables = {line.split()[0]: line for line in map(str.strip, text.splitlines())}
    keys = {table: _keys(line) for table, line in tables.items()}
    chance = random.Random(name)
    truth: set[Link] = set()
    written: list[Table] = []
    for table, line in tables.items():
        rows: list[Row] = [{} for _ in range(int(line.split()[1]))]
        parts: list[str] = []
        for each in _columns(line):
            values = keys[table] if each["is_key"] else _values(each, len(rows), keys, chance)
            for row, value in zip(rows, values, strict=True):
                row[each["name"]] = value
            if each["part"]:
                parts.append(each["name"])
            if each["to"]:
                parent = _columns(tables[each["to"]])[0]["name"]
                truth.add((table, (each["name"],), each["to"], (parent,)))
        unique = {tuple(str(row[p]) for p in parts): row for row in rows} if parts else {}
        chosen = list(unique.values()) if parts else rows
        written.append(Table(table, f"{table}.{ending}", [chosen]))
    doubtful = links(*filter(None, unsure.split("\n")))
    return DataSet(name, written, frozenset(truth - doubtful), doubtful)


def _columns(line: str) -> list[dict[str, str]]:
    found = []
    for text in line.split()[2:]:
        match = _COLUMN.fullmatch(text)
        assert match is not None, text
        found.append(
            {
                **{k: v or "" for k, v in match.groupdict().items()},
                "is_key": "yes" * (match["key"] is not None),
            }
        )
    return found


def _keys(line: str) -> Sequence[object]:
    first, rows = _columns(line)[0], int(line.split()[1])
    if not first["is_key"]:
        return []
    if first["key"] == "code":
        chance = random.Random(line)
        return [f"{chance.randrange(16**10):010x}" for _ in range(rows)]
    start = int(first["key"] or 1)
    return list(range(start, start + rows))


def _values(each: dict[str, str], rows: int, keys: dict[str, Sequence[object]], chance: random.Random) -> Sequence[object]:  # fmt: skip
    make = partial(chance.choice, keys[each["to"]]) if each["to"] else _MAKERS[each["kind"]](chance)
    return [None if each["null"] and chance.random() < 0.33 else make() for _ in range(rows)]


_START = date(2025, 1, 1)
_MAKERS: dict[str, Callable[[random.Random], Callable[[], object]]] = {
    "text": lambda r: lambda: f"{r.choice('abcdefgh')}{r.choice('aeiou')}{r.choice('lmnr')} {r.randint(1, 400)}",
    "num": lambda r: lambda: r.randint(1, 5000),
    "small": lambda r: lambda: r.randint(1, 12),
    "money": lambda r: lambda: r.randint(100, 99_999) / 100,
    "day": lambda r: lambda: (_START + timedelta(days=r.randint(0, 300))).isoformat(),
    "time": lambda r: lambda: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=r.randint(0, 9_000_000)),
    "flag": lambda r: lambda: r.random() > 0.5,
    "code": lambda r: lambda: f"{r.randrange(16**8):08X}",
    "year": lambda r: lambda: r.randint(1990, 2025),
}  # fmt: skip
KNOWN_SHAPES: tuple[Callable[[], DataSet], ...] = tuple(partial(shaped, name) for name in SHAPES)
