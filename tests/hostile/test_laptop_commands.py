"""Somebody else's YAML on a laptop: refused by the lists of a cluster, opened one by one."""

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from pyspark.sql import SparkSession
from support.declared.declarations import files, model, put
from support.declared.shop import COMMANDS_OF_LAPTOPS

import snaploom as sl
from snaploom.cli.main import run_command
from snaploom.models.allowances import ALLOW_VARIABLE, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.run import RunSettings
from snaploom.run import submit
from snaploom.run.session.spark import SettingNotAllowed, build_session, sibling_session

OPTION = "spec.hdfsLike.formatOptions"
SPARK = "spec.run.spark"
JDBC: dict[str, Any] = {
    "driver": "POSTGRESQL",
    "host": "db",
    "database": "shop",
    "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
    "tableReference": "customer",
    "snapshot": {"fromReadTime": {}},
}
FILE = {"driver": "H2", "database": "/data/shop", "host": None, "credentials": None}
CASES = {
    "format": (0, "spec.hdfsLike.format", "jdbc", "formats=jdbc", "SL136"),
    "option": (0, OPTION, {"basePath": "/"}, "options=parquet.basePath", "SL137"),
    "class of a driver": (
        0, "spec", {"jdbc": JDBC | {"driverClass": "a.B"}}, "formats=a.B", "SL136",
    ),
    "database file": (0, "spec", {"jdbc": JDBC | FILE}, "formats=h2", "SL136"),
    "predicate": (
        0, "spec", {"jdbc": JDBC | {"tablePredicates": ["pg_sleep(9) IS NULL"]}},
        "functions=pg_sleep", "SL147",
    ),
    "agent of Java": (
        3, SPARK, {"sparkConf": {"spark.driver.extraJavaOptions": "-javaagent:/tmp/x.jar"}},
        "sparkConf=spark.driver.extraJavaOptions", "SL182",
    ),
    "jars": (
        3, SPARK, {"sparkConf": {"spark.jars": "/tmp/x.jar"}}, "sparkConf=spark.jars", "SL182",
    ),
    "plugins": (
        3, SPARK, {"sparkConf": {"spark.plugins": "a.B"}}, "sparkConf=spark.plugins", "SL182",
    ),
    "annotation of pods": (
        3, SPARK, {"podTemplate": {"annotations": {"iam.amazonaws.com/role": "admin"}}},
        "annotations=iam.amazonaws.com/role", "SL182",
    ),
}  # fmt: skip
"""What somebody writes: which resource of the model, where, what; what opens it; the finding."""
WITHOUT_SPARK = ("validate FILE", "plan wide --offline -f FILE", "graph wide -f FILE",
                 "page wide -f FILE --to FILE.site")  # fmt: skip
DECLARED = [
    name for name in COMMANDS_OF_LAPTOPS
    if name not in ("init", "gc", "repair", "snapshots", "files", "schema", "crds",
                    "index explain", "drivers install", "drivers list")
]  # fmt: skip
"""Commands that judge declarations, or read files by a format."""


def written(folder: Path, case: str) -> Path:
    """The model, with what somebody put into it."""
    number, path, value, _, _ = CASES[case]
    resources = model()
    if path == "spec":
        value = {"jdbc": {name: each for name, each in value["jdbc"].items() if each is not None}}
    put(resources[number], path, value)
    file = folder / "model.yaml"
    file.write_text(yaml.safe_dump_all(resources))
    return file


def run(command: str, file: Path, *more: str) -> int:
    return run_command([*shlex.split(command.replace("FILE", str(file))), *more])


@pytest.mark.parametrize("command", WITHOUT_SPARK)
@pytest.mark.parametrize("case", CASES)
def test_declarations_are_refused_until_an_entry_is_allowed(tmp_path, capsys, case, command):
    file, (_, _, _, entry, code) = written(tmp_path, case), CASES[case]
    assert run(command, file) == 2
    printed = capsys.readouterr().err
    assert f"error {code}" in printed
    assert f"--allow {entry}" in " ".join(printed.split())
    assert run(command, file, "--allow", entry) == 0
    assert run(command, file, "--allow", "images=x") == 2


PYTHON: dict[str, Callable[[Path, Sequence[str]], sl.Project]] = {
    "files": lambda file, allow: sl.load(file, allow=allow),
    "resources": lambda file, allow: sl.load(sl.load(file).resources, allow=allow),
}
"""How a program gives declarations to the library."""
USES: dict[str, Callable[[sl.Project], object]] = {
    "validate": lambda project: project.validate(raises=True),
    "plan": lambda project: project.plan("wide", offline=True).raise_for_errors(),
    "run": lambda project: project.run("wide", progress=False),
    "backfill": lambda project: project.backfill("wide", "2024-05-01", "2024-05-02"),
    "estimate": lambda project: project.estimate("wide", "2024-05-01", "2024-05-02"),
    "diff": lambda project: project.diff("wide", offline=True),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("given", PYTHON)
@pytest.mark.parametrize("case", CASES)
def test_python_refuses_the_same_until_an_entry_is_allowed(tmp_path, case, given, use):
    file, (_, _, _, entry, code) = written(tmp_path, case), CASES[case]
    with pytest.raises(InvalidDeclarations) as caught:
        USES[use](PYTHON[given](file, ()))
    assert [each.code for each in caught.value.findings if each.is_error] == [code]
    assert PYTHON[given](file, [entry]).validate().is_ok


def test_environment_allows_what_the_option_does(tmp_path, monkeypatch):
    file = written(tmp_path, "jars")
    monkeypatch.setenv(ALLOW_VARIABLE, json.dumps({"sparkConf": ["spark.jars"]}))
    assert run("validate FILE", file) == 0
    assert run("validate FILE", file, "--allow", "formats=x") == 0
    monkeypatch.setenv(ALLOW_VARIABLE, "spark.jars")
    assert run("validate FILE", file) == 2


@pytest.mark.parametrize("text", ["jars", "jars=spark.jars", "formats=", f"formats={'x' * 600}"])
def test_allowance_that_is_none_is_one_clear_error(tmp_path, capsys, text):
    assert run("validate FILE", written(tmp_path, "jars"), "--allow", text) == 2
    printed = capsys.readouterr().err
    assert "error SL191" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("command", DECLARED)
def test_every_command_that_judges_has_the_option(capsys, command):
    run_command([*command.split(), "--help"])
    assert "--allow" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["index build", "index advise", "index describe"])
def test_index_of_files_reads_formats_of_the_list(tmp_path, capsys, command):
    file = written(tmp_path, "format")
    assert run(f"{command} any -f FILE", file) == 2
    assert "SL" in capsys.readouterr().err


SESSIONS: dict[str, Callable[[RunSettings], object]] = {
    "of the process": lambda run: build_session("snaploom", run),
    "beside another one": lambda run: sibling_session(cast(SparkSession, object()), run),
}


@pytest.mark.parametrize("session", SESSIONS)
def test_session_is_not_built_with_what_is_on_no_list(session: str) -> None:
    conf = {"spark.driver.extraJavaOptions": "-XX:OnError=touch /tmp/canary"}
    settings = RunSettings.parse({"spark": {"sparkConf": conf}})
    with pytest.raises(SettingNotAllowed) as caught:
        SESSIONS[session](settings)
    assert caught.value.found == "spark.driver.extraJavaOptions"
    assert "--allow sparkConf=" in str(caught.value.hint)
    assert "OnError" not in str(caught.value)


def test_seeds_way_has_the_lists_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "jars")
    assert submit.main(["--config", str(file)]) == 2
    assert "SL182" in capsys.readouterr().err
    assert submit.main(["--config", str(file), "--allow", "jars"]) == 2
    assert "SL191" in capsys.readouterr().err


def test_allowances_of_two_places_are_joined() -> None:
    one = Allowances.of(["formats=a", "images=x"])
    other = Allowances.of(["formats=b", "formats=a"])
    assert one.joined(other).formats == ("a", "b")
    assert one.joined(other).images == ("x",)
    assert other.joined(Allowances()).images == ("*",)


# Somebody else's variables and relative paths: they open nothing that the value would not.


DATABASE: dict[str, Any] = {
    "driver": "H2",
    "database": "$(place)",
    "tableReference": "t",
    "snapshot": {"fromReadTime": {}},
}


def codes(folder: Path, resource: dict[str, Any], value: str) -> list[str]:
    """Codes of errors of a resource in a file, with a variable `place`."""
    file = folder / "model.yaml"
    file.write_text(yaml.safe_dump(resource))
    findings = sl.load(file, variables={"place": value}).validate()
    return [finding.code for finding in findings if finding.is_error]


@pytest.mark.parametrize("value", ["/data/shop", "../shop", "s3://lake/shop"])
def test_a_relative_path_or_variable_opens_nothing_more(tmp_path: Path, value: str) -> None:
    assert "SL136" in codes(tmp_path, files("a") | {"spec": {"jdbc": DATABASE}}, value)
    folder = next(each for each in model() if each["kind"] == "OutputDataset")
    put(folder, "spec.outputFolder.folderUri", "$(place)/../../etc/")
    assert "SL173" in codes(tmp_path, folder, value)


@pytest.mark.parametrize(
    "value",
    ["x' OR '1'='1", 'a", "b', "[/etc/*]", "/a\\n  formatOptions: {basePath: /}", "{{a}}"],
)
def test_no_value_adds_a_field_or_ends_a_text(tmp_path: Path, value: str) -> None:
    raw = files("a")
    raw["spec"]["hdfsLike"]["sourceUriGlobs"] = ["/data/$(place)/*"]
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(raw))
    (found,) = sl.load(tmp_path, variables={"place": value}).resources
    raw["spec"]["hdfsLike"]["sourceUriGlobs"] = [f"/data/{value}/*"]
    assert found == DataSource.parse(raw)
