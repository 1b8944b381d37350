"""What examples declare, without Spark: sound, and joined as their READMEs draw it."""

import re
from pathlib import Path

import pytest
from support.documentation.examples import REPOSITORY

from snaploom.loading.load import load
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.outputdataset import OutputDataset
from snaploom.plan.tree import JoinTree, join_graph, plan_tree

EXAMPLES = ("flights", "customer", "tpch")
STARTER = REPOSITORY / "sparkjobs/src/snaploom/cli/templates"
ARROW = re.compile(r"^ +(?P<parent>\w+) -- (?P<key>.+) --> (?P<child>\w+)(\[.*\])?$", re.MULTILINE)


def tree_of(folder: Path) -> JoinTree:
    loaded = load([folder])
    assert not loaded.findings
    [output] = [item for item in loaded.resources if isinstance(item, OutputDataset)]
    relationships = [item for item in loaded.resources if isinstance(item, DataRelationship)]
    return plan_tree(join_graph(output.spec.data_model, relationships))


@pytest.mark.parametrize("folder", [*(REPOSITORY / "examples" / e for e in EXAMPLES), STARTER])
def test_join_tree_is_unique_and_reaches_every_source(folder: Path) -> None:
    tree = tree_of(folder)
    assert not tree.ties
    assert not tree.unreachable


@pytest.mark.parametrize("example", EXAMPLES)
def test_readme_draws_the_tree(example: str) -> None:
    folder = REPOSITORY / "examples" / example
    root, *others = tree_of(folder).nodes
    planned = {(node.parent or root.source, node.field_name) for node in others}
    drawn = ARROW.finditer((folder / "README.md").read_text("utf-8"))
    assert {(arrow["parent"], arrow["child"]) for arrow in drawn} == planned
