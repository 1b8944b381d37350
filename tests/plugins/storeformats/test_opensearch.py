import yaml
from support.skipping.indexeddata import last

from snaploom.cli.main import run_command
from snaploom.plan.bundles import SecretKey
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.skipping.stores.catalog import open_base


def test_statements_keep_an_index_in_a_cluster(spark, lake, cluster):
    enable(spark, cluster)
    on = f"ON parquet.`{lake.data}`"
    spark.sql(f"CREATE SKIPPING INDEX {on} (price MIN_MAX) WITH (location = '{cluster}')")
    spark.sql(f"REFRESH SKIPPING INDEX {on}")
    store = open_base(cluster).index(f"file:{lake.data}")
    definition = store.read().definition
    assert definition.form == "OPENSEARCH"
    assert spark.read.parquet(lake.data).where("price > 25").count() == 4
    assert last(spark).kept_files == 1
    spark.sql(f"DROP SKIPPING INDEX {on}")
    assert spark.read.parquet(lake.data).where("price > 25").count() == 4
    spark.sql(f"VACUUM SKIPPING INDEX {on}")
    assert store.read().definition is None


def test_a_resource_keeps_its_index_in_a_cluster(spark, lake, cluster):
    host, port = cluster.removeprefix("opensearch://").split(":")
    path = lake.declare(store={"openSearch": {"scheme": "http", "host": host, "port": int(port)}})
    assert run_command(["index", "apply", "-f", str(path)]) == 0
    state = open_base(cluster).index(f"file:{lake.data}").read()
    assert state.may_skip
    assert run_command(["index", "drop", "of-lake", "-f", str(path)]) == 0
    assert not open_base(cluster).index(f"file:{lake.data}").read().exists


def test_a_missing_secret_is_an_error_before_anything_is_done(spark, lake, capsys):
    store = {
        "openSearch": {
            "host": "search",
            "auth": "BASIC",
            "credentials": {"fromSecret": {"name": "search"}},
        }
    }
    path = lake.declare(store=store)
    assert yaml.safe_load(path.read_text())["spec"]["store"] == store
    assert run_command(["index", "apply", "-f", str(path)]) != 0
    assert SecretKey("search", "username").variable in capsys.readouterr().err
