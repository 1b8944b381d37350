"""What configures Hadoop's client beside the environment of S3's clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from snaploom.models.run import RunSettings
from snaploom.run.session.classarchive import configured_elsewhere


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a Spark without any settings of its own."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-defaults.conf.template").touch()
    return {"SPARK_HOME": str(tmp_path), "AWS_CONFIG_FILE": str(tmp_path / "aws")}


def settings(**conf: str) -> RunSettings:
    given = {name.replace("__", "."): value for name, value in conf.items()}
    return RunSettings.model_validate({"spark": {"sparkConf": given}})


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark__sql__shuffle__partitions": "8"},
        {"spark__jars": "/jars/hadoop-aws.jar"},
        {"spark__driver__extraClassPath": "/jars/*:/more/one.jar"},
        {"spark__driver__extraJavaOptions": "-XX:+UseG1GC -Duser.timezone=UTC"},
    ],
)
def test_settings_of_other_things_configure_nothing(environment, conf) -> None:
    assert configured_elsewhere(settings(**conf), environment) == ""


@pytest.mark.parametrize(
    "conf",
    [
        {"spark__hadoop__fs__s3a__endpoint": "http://other"},
        {"spark__hadoop__fs__s3a__bucket__b__endpoint": "http://other"},
        {"spark__driver__extraClassPath": "/jars/*:/etc/hadoop/conf"},
        {"spark__driver__extraJavaOptions": "-Dspark.hadoop.fs.s3a.endpoint=http://other"},
        {"spark__driver__defaultJavaOptions": "-Daws.endpointUrl=http://other"},
    ],
)
def test_setting_of_the_resource_is_named(environment, conf) -> None:
    (name,) = conf
    found = configured_elsewhere(settings(**conf), environment)
    assert found == f"run.spark.sparkConf: {name.replace('__', '.')}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HADOOP_CONF_DIR", "/etc/hadoop"),
        ("SPARK_CONF_DIR", "/etc/spark"),
        ("SPARK_DIST_CLASSPATH", "/opt/hadoop/etc"),
        ("PYSPARK_SUBMIT_ARGS", "--conf spark.hadoop.a=b pyspark-shell"),
        ("SPARK_SUBMIT_OPTS", "-Dspark.hadoop.a=b"),
        ("JAVA_TOOL_OPTIONS", "-Daws.region=x"),
    ],
)
def test_variable_of_the_environment_is_named(environment, name, value) -> None:
    found = configured_elsewhere(RunSettings(), {**environment, name: value})
    assert found == f"the environment: {name}"


def test_file_of_spark_is_named(environment, tmp_path) -> None:
    for name in ("spark-defaults.conf", "core-site.xml"):
        path = tmp_path / "conf" / name
        path.touch()
        assert configured_elsewhere(RunSettings(), environment) == f"the file {path}"
        path.unlink()


def test_endpoint_of_amazons_settings_counts_where_the_environment_has_none(
    environment, tmp_path
) -> None:
    (tmp_path / "aws").write_text("[default]\nendpoint_url = http://other\n")
    assert "endpoint_url" in configured_elsewhere(RunSettings(), environment)
    own = {**environment, "AWS_ENDPOINT_URL": "http://own"}
    assert configured_elsewhere(RunSettings(), own) == ""
