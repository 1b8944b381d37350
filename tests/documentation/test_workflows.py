"""Hosted workflows call what people call, and run nobody's code that is not pinned."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.servers.gotools import go_tool

REPOSITORY = Path(__file__).parents[2]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yaml"))


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def test_actionlint_finds_nothing() -> None:
    done = subprocess.run(
        [go_tool("actionlint"), "-no-color", *WORKFLOWS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_actionlint_would_find_a_fault(tmp_path: Path) -> None:
    fault = tmp_path / "fault.yaml"
    fault.write_text(WORKFLOWS[0].read_text("utf-8").replace("runs-on:", "runs-no:"), "utf-8")
    done = subprocess.run([go_tool("actionlint"), fault], capture_output=True, check=False)
    assert done.returncode == 1


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_named_by_commit(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_targets_that_are_called_are_in_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8")))
    lines = [step["run"] for step in steps(path) if "run" in step]
    called = {
        word
        for line in lines
        for found in re.findall(r"make ([a-z -]+)", line)
        for word in found.split()
    }
    assert called
    assert called <= targets


def test_the_hook_before_a_commit_is_make_lint() -> None:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]] == ["make lint"]


def test_tests_that_the_makefile_names_exist() -> None:
    text = (REPOSITORY / "Makefile").read_text("utf-8") + quick_tests()
    named = set(re.findall(r"\btests/[\w/]+(?:\.\w+)?", text))
    assert {"tests/unit", "tests/jobs/test_processes.py"} <= named
    assert [each for each in sorted(named) if not (REPOSITORY / each).exists()] == []


def test_marks_that_the_makefile_asks_for_are_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    asked = re.findall(r"""-m ["']([^"']+)["']""", (REPOSITORY / "Makefile").read_text("utf-8"))
    marks = {mark for each in asked for mark in re.findall(r"\w+", each)} - {"and", "or", "not"}
    assert {"long", "whole"} <= marks
    assert marks <= declared


def quick_tests() -> str:
    return subprocess.run(
        ["make", "--dry-run", "quick"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
