"""What the page about orchestrators shows is what their own packages take."""

from __future__ import annotations

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


def python(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": orchestrators_folder(), "DAGSTER_HOME": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_definitions_of_the_page_have_an_asset_and_a_schedule(tmp_path: Path) -> None:
    assert snaploom("init", tmp_path / "shop").code == 0
    page = DOCS / "how-to" / "orchestrators.md"
    (block,) = (block for block in blocks_of(page) if block.language == "python")
    shown = "print(*definitions.resolve_all_asset_keys(), definitions.schedules[0].name)"
    printed = python(block.text.replace(PLACE, str(tmp_path)) + "\n" + shown)
    assert "orders-wide" in printed
    assert "nightly" in printed


def test_workflow_is_one_of_argo_and_its_command_is_one_of_ours() -> None:
    command, *arguments = python(VALIDATED, str(WORKFLOW)).split()
    assert command == "snaploom"
    result = snaploom(*arguments)
    # The declarations are in a volume that is not here: the command line itself is understood.
    assert (result.code, "SL101" in result.err) == (2, True)
