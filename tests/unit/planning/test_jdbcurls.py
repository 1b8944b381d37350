"""Secrets in JDBC URLs: found in every form that a driver reads, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.policy.secretdetection import names_a_login


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db/shop?user=scott",
        "jdbc:postgresql://scott@db/shop",
        "jdbc:postgresql://db/shop?ssl=true&sslpassword=tiger",
        "jdbc:mysql://scott:ti/ger@db/shop",
        "jdbc:mysql://db/shop?pass%77ord2=tiger",
        "jdbc:mysql://address=(host=db)( password = tiger)/shop",
        "jdbc:mysql://(host=db,user=scott)/shop",
        "jdbc:mysql://scott%40db/shop",
        "jdbc:mariadb://db/shop?keyStorePassword=tiger",
        "jdbc:sqlserver://db;databaseName=shop; PWD=tiger",
        "jdbc:sqlserver://db;accessToken=tiger",
        "jdbc:sqlserver://db;UserName=scott",
        "jdbc:oracle:thin:scott/tiger@//db:1521/shop",
        "jdbc:oracle:thin:@//db:1521/shop?oracle.net.wallet_password=tiger",
        "jdbc:h2:file:/data/shop;USER=sa",
        "jdbc:duckdb:/data/shop.db;motherduck_token=tiger",
    ],
)
def test_a_login_is_found(url: str) -> None:
    assert names_a_login(url)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://a:5,b:6/user?targetServerType=preferSecondary&sslmode=verify-full",
        "jdbc:mysql://db/shop?useReadAheadInput=true&sessionVariables=sql_mode=ANSI",
        "jdbc:sqlserver://db:1433;databaseName=shop;encrypt=strict",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=db)(PORT=2484)))",
        "jdbc:oracle:thin:@tcps://db:2484/shop",
        "jdbc:h2:file:/home/user/shop;IFEXISTS=TRUE",
    ],
)
def test_what_is_no_login_passes(url: str) -> None:
    assert not names_a_login(url)


@given(st.sampled_from(["password", "USER", "keyStoreSecret"]), st.sampled_from("?;&,("))
def test_no_way_of_writing_a_name_hides_it(name: str, before: str) -> None:
    written = "".join(f"%{ord(letter):02x}" for letter in name)
    assert names_a_login(f"jdbc:mysql://db/shop{before}{name}=x")
    assert names_a_login(f"jdbc:mysql://db/shop{before}{written}=x")
