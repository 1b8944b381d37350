import secrets
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.servers.keyservices import MemoryKeyService, transit_server
from support.skipping.indexeddata import last
from support.skipping.indexinterfaces import Lake

from snaploom.cli.main import run_command
from snaploom.errors import IndexNotPossible, KeyUnavailable
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.spark.interfaces.enable import disable, enable
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

ENCRYPTED = {
    "indexes": [{"type": "MIN_MAX", "column": "price", "keyLabel": "columns"}],
    "encryption": {"footerKeyLabel": "footers"},
}


@pytest.fixture
def service() -> MemoryKeyService:
    return MemoryKeyService({name: secrets.token_bytes(16) for name in ("footers", "columns")})


def test_a_resource_is_encrypted_by_the_service_that_the_command_names(
    spark: SparkSession, lake: Lake, service: MemoryKeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(lake.declare(**ENCRYPTED))
    with transit_server(service) as server:
        monkeypatch.setenv("VAULT_TOKEN", server.token)
        assert run_command(["index", "apply", "-f", path, "--kms", f"vault+{server.url}"]) == 0
    assert {"wrap footers", "wrap columns"} <= set(service.asked)


def test_the_builder_encrypts(spark: SparkSession, lake: Lake, service: MemoryKeyService) -> None:
    enable(spark, lake.base, keys=ParquetKeys(service))
    building = skipping_index(spark, lake.base).on_path(lake.data).add_min_max("price")
    building.encrypted("footers", "columns").create()
    definition = lake.definition()
    labels = [index.key_label for index in definition.indexes]
    assert (definition.footer_key_label, labels) == ("footers", ["columns"])


def test_a_resource_without_a_key_service_is_refused(spark, lake, capsys):
    assert run_command(["index", "apply", "-f", str(lake.declare(**ENCRYPTED))]) != 0
    assert "no key management service is configured" in " ".join(capsys.readouterr().err.split())
    assert lake.state().version == 0


def test_only_those_with_keys_skip(spark, lake, service):
    on = f"ON parquet.`{lake.data}`"
    enable(spark, lake.base, keys=ParquetKeys(service))
    spark.sql(f"CREATE SKIPPING INDEX {on} (price MIN_MAX) WITH (footer_key_label = 'footers')")
    spark.sql(f"REFRESH SKIPPING INDEX {on}")
    assert spark.read.parquet(lake.data).where("price > 25").count() == 4
    assert last(spark).kept_files == 1
    segments = list(Path(lake.base).rglob("segments/*.parquet"))
    assert [path.read_bytes()[:4] for path in segments] == [b"PARE"]
    disable(spark)
    enable(spark, lake.base)
    assert spark.read.parquet(lake.data).where("price > 25").count() == 4


def test_a_key_of_an_index_needs_one_of_the_footers(spark, lake, service):
    enable(spark, lake.base, keys=ParquetKeys(service))
    with pytest.raises(IndexNotPossible, match="footers in plain text"):
        spark.sql(
            f"CREATE SKIPPING INDEX ON parquet.`{lake.data}` (price MIN_MAX) "
            "WITH (plaintext_footer = true)"
        )


def test_a_statement_without_a_key_service_is_refused(spark: SparkSession, lake: Lake) -> None:
    enable(spark, lake.base)
    with pytest.raises(KeyUnavailable, match="no key management service"):
        spark.sql(
            f"CREATE SKIPPING INDEX ON parquet.`{lake.data}` (price MIN_MAX) "
            "WITH (footer_key_label = 'footers')"
        )
