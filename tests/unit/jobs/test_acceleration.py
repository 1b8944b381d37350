"""A run has the accelerator that was asked for last, with a Spark that it fits, or an error."""

from pathlib import Path

import pytest
from support.weaving.oldspark import comet_jar, run_tests
from support.weaving.sparksession import ACCELERATED

from snaploom.errors import ArgumentInvalid
from snaploom.models.run import Accelerator, RunSettings, SparkSettings
from snaploom.policy.acceleration import (
    OFF_HEAP,
    VARIABLE,
    accelerated_settings,
    chosen,
    encrypted_shuffle,
)
from snaploom.run.session.accelerator import AcceleratorNotUsable, reasons_of, refuse_unfit

COMET, NONE = Accelerator.COMET, Accelerator.NONE
SPARK = SparkSettings(accelerator=COMET)
FITTING = "/cache/comet-spark-spark4.1_2.13-1.2.0.jar"


@pytest.mark.parametrize(
    ("declared", "variable", "option", "found"),
    [
        (None, "", None, None),
        ("COMET", "", None, COMET),
        ("COMET", "none", None, NONE),
        (None, "comet", None, COMET),
        ("NONE", "none", COMET, COMET),
        ("COMET", "comet", NONE, NONE),
    ],
)
def test_an_option_wins_over_the_environment_and_this_over_declarations(
    declared: str | None, variable: str, option: Accelerator | None, found: Accelerator | None
) -> None:
    run = RunSettings.parse({"spark": {"accelerator": declared}} if declared else {})
    spark = chosen(run, {VARIABLE: variable}, option).spark
    assert (spark and spark.accelerator) == found


def test_an_unknown_accelerator_of_the_environment_is_refused() -> None:
    with pytest.raises(ArgumentInvalid, match="no such accelerator") as refused:
        chosen(RunSettings(), {VARIABLE: "gluten"})
    assert (refused.value.path, refused.value.expected) == (VARIABLE, "COMET or NONE")


@pytest.mark.parametrize(
    ("heap", "native"), [(None, "2048m"), ("6g", "6144m"), ("600m", "1024m"), ("1t", "1048576m")]
)
def test_native_memory_follows_the_heap(heap: str | None, native: str) -> None:
    assert accelerated_settings(SPARK, heap)[OFF_HEAP] == native
    assert accelerated_settings(SparkSettings(accelerator=NONE), heap) == {}


@pytest.mark.parametrize(
    ("version", "jars", "found"),
    [
        ("4.1.4", FITTING, None),
        ("4.1.9", f"/a/driver.jar,{FITTING}", None),
        ("4.3.0", FITTING, "built for another Spark"),
        ("4.2.0", "", "built for another Spark"),
        ("4.1.4", "/cache/comet-spark-spark4.2_2.13-1.2.0.jar", "built for another Spark"),
        ("4.1.4", "/a/driver.jar", "not installed"),
    ],
)
def test_a_spark_that_comet_does_not_fit_is_refused(version, jars, found):
    settings = {**accelerated_settings(SPARK), "spark.jars": jars}
    refuse_unfit({"spark.jars": jars}, None, version="3.5.0")  # without an accelerator
    if found is None:
        refuse_unfit(settings, None, version=version)
        return
    with pytest.raises(AcceleratorNotUsable, match=found) as refused:
        refuse_unfit(settings, None, version=version)
    assert refused.value.path == "spec.run.spark.accelerator"
    assert "NONE" in refused.value.hint


def test_a_jar_among_those_of_spark_counts(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / Path(FITTING).name).touch()
    refuse_unfit(accelerated_settings(SPARK), tmp_path, version="4.1.4")


def test_a_system_without_native_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(AcceleratorNotUsable, match="no native library"):
        refuse_unfit({**accelerated_settings(SPARK), "spark.jars": FITTING}, None, version="4.1.4")


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_what_is_shuffled_is_encrypted_where_spark_is_to_encrypt(is_encrypted: bool) -> None:
    encryption = {"spark.io.encryption.enabled": str(is_encrypted).lower()}
    assert encrypted_shuffle(encryption) == {}
    found = encrypted_shuffle({**accelerated_settings(SPARK), **encryption})
    assert found == ({"spark.comet.shuffle.mode": "jvm"} if is_encrypted else {})


def test_reasons_are_those_behind_the_plan_without_numbers_of_columns() -> None:
    reasons = "rand(a#12L) is not native\n)) AS b: the rest of a quoted text with a line break\n\n"
    plan = f"(1) Scan parquet\n\n== Extended Information (Comet) ==\n{reasons}"
    assert reasons_of(plan) == ["rand(a) is not native"]
    assert reasons_of("(1) Scan parquet") == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_values_and_indexes_of_native_files_are_those_of_spark() -> None:
    files = (f"tests/others/native/{suite}.py" for suite in ("corners", "indexes"))
    ended = run_tests(*files, **{ACCELERATED: str(comet_jar())})
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "passed" in ended.stdout
