"""What the page about orchestrators shows is what their own packages take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.declared.shop import snaploom
from support.documentation.examples import PLACE, REPOSITORY
from support.documentation.orchestrators import orchestrators_folder
from support.documentation.pages import DOCS, blocks_of

pytestmark = pytest.mark.slow
WORKFLOW = REPOSITORY / "examples" / "argo-workflows" / "orders-wide.yaml"
VALIDATED = """
import sys, yaml
from hera.workflows.models import CronWorkflow
found = CronWorkflow.model_validate(yaml.safe_load(open(sys.argv[1])))
template = found.spec.workflow_spec.templates[0]
print(template.container.command[0], *template.container.args)
"""


def python(script: str, *arguments: str, packages: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": packages, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def block_of_page(package: str, folder: Path) -> str:
    assert snaploom("init", folder / "shop").code == 0
    blocks = blocks_of(DOCS / "how-to" / "orchestrators.md")
    (block,) = (one for one in blocks if one.language == "python" and package in one.text)
    return block.text.replace(PLACE, str(folder)) + "\n"


def test_definitions_of_the_page_have_an_asset_and_a_schedule(tmp_path: Path) -> None:
    shown = "print(*definitions.resolve_all_asset_keys(), definitions.schedules[0].name)"
    block = block_of_page("import dagster", tmp_path)
    printed = python(block + shown, packages=orchestrators_folder(), DAGSTER_HOME="")
    assert "orders-wide" in printed
    assert "nightly" in printed


def test_dag_of_the_page_has_a_task_of_each_output(tmp_path: Path) -> None:
    block = block_of_page("airflow.sdk", tmp_path)
    packages = orchestrators_folder("airflow")
    printed = python(block + "print(*dag.task_ids)", packages=packages, AIRFLOW_HOME=str(tmp_path))
    assert printed.split() == ["orders-wide"]


def test_workflow_is_one_of_argo_and_its_command_is_one_of_ours() -> None:
    command, *arguments = python(VALIDATED, str(WORKFLOW), packages=orchestrators_folder()).split()
    assert command == "snaploom"
    result = snaploom(*arguments)
    # The declarations are in a volume that is not here: the command line itself is understood.
    assert (result.code, "SL101" in result.err) == (2, True)
