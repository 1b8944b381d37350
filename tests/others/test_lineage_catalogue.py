"""A lineage catalogue of others shows what a run published: from what, and column by column."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.declared.shop import Shop
from support.servers.datarentgen import Catalogue, running_catalogue

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SHOWN_SECONDS = 60.0
"""Events are shown within a second after a run; a machine full of other tests takes longer."""


@pytest.fixture(scope="module")
def shown(spark: object, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, Any]:
    """What the catalogue shows of the output of a run."""
    folder = tmp_path_factory.mktemp("catalogue")
    shop = Shop(folder / "shop").with_data()
    with running_catalogue(folder) as catalogue, pytest.MonkeyPatch.context() as environment:
        environment.setenv("SNAPLOOM_LINEAGE_URL", catalogue.events)
        environment.setenv("SNAPLOOM_LINEAGE_API_KEY", catalogue.key)
        sent = shop.run()
        assert sent.code == 0, sent.err
        assert "lineage" not in sent.err
        return shop, lineage_of(catalogue, f"{shop.published}/data")


def lineage_of(catalogue: Catalogue, name: str) -> Any:
    """The lineage of a dataset, as soon as it has that of columns."""
    deadline = time.monotonic() + SHOWN_SECONDS
    while time.monotonic() < deadline:
        dataset = catalogue.dataset(name)
        found = catalogue.upstream(dataset) if dataset is not None else None
        if found is not None and found["relations"]["direct_column_lineage"]:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{name} is not shown")


def names(found: Any) -> dict[str, str]:
    """Names of the datasets that are shown, by id."""
    return {key: one["name"] for key, one in found["nodes"]["datasets"].items()}


def test_output_is_made_of_its_sources(shown: tuple[Shop, Any]) -> None:
    shop, found = shown
    known = names(found)
    read = {known[one["from"]["id"]] for one in found["relations"]["inputs"]}
    assert read == {f"{shop.folder}/orders", f"{shop.folder}/customers"}
    written = {known[one["to"]["id"]] for one in found["relations"]["outputs"]}
    assert written == {f"{shop.published}/data"}


def test_columns_lead_to_columns_of_sources(shown: tuple[Shop, Any]) -> None:
    shop, found = shown
    known = names(found)
    columns = {
        (target, known[one["from"]["id"]], source["field"])
        for one in found["relations"]["direct_column_lineage"]
        for target, sources in one["fields"].items()
        for source in sources
    }
    assert ("customers.data.name", f"{shop.folder}/customers", "name") in columns
    assert ("data.amount", f"{shop.folder}/orders", "amount") in columns


def test_columns_of_joins_are_shown_apart(shown: tuple[Shop, Any]) -> None:
    _, found = shown
    joined = {
        (source["field"], *source["types"])
        for one in found["relations"]["indirect_column_lineage"]
        for source in one["fields"]
    }
    assert ("customer_id", "JOIN") in joined


def test_snapshot_is_a_finished_operation_of_its_job(shown: tuple[Shop, Any]) -> None:
    _, found = shown
    (operation,) = found["nodes"]["operations"].values()
    assert (operation["name"], operation["status"]) == ("wide.snapshot", "SUCCEEDED")
