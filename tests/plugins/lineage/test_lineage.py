"""`snaploom run` sends lineage to a real server: what it published from which sources."""

from uuid import UUID

import pytest
from support.declared.declarations import document
from support.declared.shop import FIRST_DAY, ORDERS, SECOND_DAY, Shop
from support.servers.openlineage import LineageServer, lineage_server, read_event

pytestmark = pytest.mark.spark

CLEAN = document(
    "FieldTransformer",
    "clean",
    {
        "transformers": [
            {"rename": {"to": "label"}, "selectors": [{"coordinateIncludeRegex": "^name$"}]},
            {"expression": {"sql": "upper(value)"},
             "selectors": [{"coordinateIncludeRegex": "^label$"}]},
        ]
    },
)  # fmt: skip
KNOWN = document(
    "DataSource",
    "known",
    {
        "simpleVirtual": {
            "dataSource": "customers",
            "alias": "c",
            "dataQuery": "SELECT customer_id, name AS who FROM c WHERE name IS NOT NULL",
            "fieldTransformers": [],
        }
    },
)


@pytest.fixture(scope="module")
def sent(
    spark: object, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Shop, LineageServer, str]:
    """A day that is published, and one of which a key comes twice."""
    shop = Shop(tmp_path_factory.mktemp("lineage")).with_data()
    shop.set("customers", "hdfsLike.fieldTransformers", ["clean"])
    shop.documents.append(CLEAN)
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"customer_id": 10, "name": "Ada"}] * 2, SECOND_DAY)
    with lineage_server() as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("SNAPLOOM_LINEAGE_URL", server.url)
        sent = shop.run()
    assert sent.code == 1, sent.err
    return shop, server, sent.err


def types(server: LineageServer, job: str) -> list[str]:
    return [event["eventType"] for event in server.of_job(job)]


def test_events_conform_to_the_specification(sent: tuple[Shop, LineageServer, str]) -> None:
    for event in sent[1].events:
        read_event(event)
        assert UUID(event["run"]["runId"]).version == 7, event


def test_a_run_and_its_snapshots_begin_and_end(sent: tuple[Shop, LineageServer, str]) -> None:
    _, server, errors = sent
    assert types(server, "wide") == ["START", "FAIL"]
    assert types(server, "wide.snapshot") == ["START", "COMPLETE", "START", "FAIL"]
    assert "lineage" not in errors


def test_columns_are_followed_to_the_files(sent: tuple[Shop, LineageServer, str]) -> None:
    shop, server, _ = sent
    (published,) = (e for e in server.of_job("wide.snapshot") if e["eventType"] == "COMPLETE")
    assert published["run"]["facets"]["nominalTime"]["nominalStartTime"] == f"{FIRST_DAY}T00:00:00Z"
    (output,) = published["outputs"]
    assert output["name"] == f"{shop.published}/data"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == len(ORDERS)
    (name,) = output["facets"]["columnLineage"]["fields"]["customers.data.label"]["inputFields"]
    assert (name["name"], name["field"]) == (f"{shop.folder}/customers", "name")
    assert name["transformations"][0]["subtype"] == "TRANSFORMATION"
    columns = {each["name"] for each in output["facets"]["schema"]["fields"]}
    assert columns == {"data", "customers"}


def test_a_failure_is_sent_with_its_reason(sent: tuple[Shop, LineageServer, str]) -> None:
    _, server, _ = sent
    failed = server.of_job("wide.snapshot")[-1]
    assert "customers" in failed["run"]["facets"]["errorMessage"]["message"]


def test_virtual_sources_are_followed_and_a_dead_server_stops_nothing(tmp_path, spark, monkeypatch):
    shop = Shop(tmp_path).with_data()
    shop.documents.append(KNOWN)
    shop.other(dataSource="known", fieldName="known")
    shop.raw("customer-id")["spec"]["representations"][0]["dataSources"] = ["orders", "known"]
    file = tmp_path / "lineage.jsonl"
    monkeypatch.setenv("SNAPLOOM_LINEAGE_URL", f"file://{file}")
    assert shop.run().code == 0
    (line,) = (
        text for text in file.read_text().splitlines() if "COMPLETE" in text and "who" in text
    )
    assert f'{{"field": "name", "name": "{shop.folder}/customers"' in line
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"customer_id": 10, "name": "Ada"}], SECOND_DAY)
    monkeypatch.setenv("SNAPLOOM_LINEAGE_URL", "http://127.0.0.1:9")
    sent = shop.run()
    assert sent.code == 0
    assert sent.err.count("lineage cannot be sent") == 1
