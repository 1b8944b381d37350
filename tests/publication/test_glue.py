"""The stand-in for AWS Glue, as AWS' own client sees it; Moto has all but the comparison."""

import importlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.servers.glueserver import running_glue
from support.servers.s3servers import ACCESS_KEY, SECRET_KEY, S3Server

BOTOCORE = Path(sys.prefix, "sigv4")
"""Where `.ci/environment` puts it."""
SHOP = {"DatabaseName": "shop"}
WIDE = {**SHOP, "Name": "wide"}


@pytest.fixture(autouse=True)
def botocore(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BOTOCORE))
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "botocore":
            del sys.modules[name]


@pytest.fixture
def glue() -> Iterator[S3Server]:
    """One of its own for each test."""
    with running_glue() as server:
        yield server


Ask = Callable[..., Any]
"""Does an operation by its name, and gives the answer or the name of the error."""


def asking(server: S3Server, secret: str = SECRET_KEY) -> Ask:
    client = importlib.import_module("botocore.session").get_session().create_client(
        "glue", region_name="us-east-1", endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY, aws_secret_access_key=secret,
    )  # fmt: skip

    def ask(operation: str, **what: Any) -> Any:
        try:
            return getattr(client, operation)(**what)
        except client.exceptions.ClientError as error:
            return error.response["Error"]["Code"]

    return ask


def table(number: int) -> dict[str, Any]:
    return {"Name": "wide", "Parameters": {"metadata_location": str(number)}}


def test_stand_in_answers_as_moto_does(glue: S3Server, moto: S3Server) -> None:
    def outcomes(ask: Ask) -> Iterator[Any]:
        for operation, what in (
            ("get_database", {"Name": "shop"}),
            ("create_table", {**SHOP, "TableInput": table(0)}),
            ("create_database", {"DatabaseInput": {"Name": "shop"}}),
            ("create_database", {"DatabaseInput": {"Name": "shop"}}),
            ("get_table", WIDE),
            ("update_table", {**SHOP, "TableInput": table(0)}),
            ("create_table", {**SHOP, "TableInput": table(0)}),
            ("create_table", {**SHOP, "TableInput": table(1)}),
            ("update_table", {**SHOP, "TableInput": table(2)}),
        ):
            found = ask(operation, **what)
            yield found if isinstance(found, str) else operation
        found = ask("get_table", **WIDE)["Table"]
        yield {key: found[key] for key in ("DatabaseName", "Name", "Parameters")}
        versions = ask("get_table_versions", **SHOP, TableName="wide")["TableVersions"]
        yield sorted(one["Table"]["Parameters"]["metadata_location"] for one in versions)
        yield [one["Name"] for one in ask("get_tables", **SHOP)["TableList"]]
        yield [one["Name"] for one in ask("get_databases")["DatabaseList"]]
        yield isinstance(ask("delete_table", **WIDE), dict)
        yield ask("delete_table", **WIDE)

    found = list(outcomes(asking(glue)))
    assert found == list(outcomes(asking(moto)))
    assert "AlreadyExistsException" in found


def test_update_of_another_version_is_refused_and_one_of_many_wins(glue: S3Server) -> None:
    ask = asking(glue)
    ask("create_database", DatabaseInput={"Name": "Shop"})
    ask("create_table", **SHOP, TableInput={**table(0), "Name": "WIDE"})
    first = ask("get_table", **WIDE)["Table"]
    assert first["Name"] == "wide"

    def update(number: int) -> Any:
        seen = {"VersionId": first["VersionId"], "SkipArchive": True}
        return ask("update_table", **SHOP, TableInput=table(number), **seen)

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(update, range(4)))
    (winner,) = (number for number, one in enumerate(ended) if isinstance(one, dict))
    assert sorted(map(str, ended))[:3] == ["ConcurrentModificationException"] * 3
    (kept,) = ask("get_table_versions", **SHOP, TableName="wide")["TableVersions"]
    assert kept["Table"]["Parameters"] == {"metadata_location": str(winner)}
    assert int(kept["VersionId"]) == int(first["VersionId"]) + 1


def test_request_that_is_signed_by_another_secret_is_refused(glue: S3Server) -> None:
    assert asking(glue, "another")("get_databases") == "InvalidSignatureException"
