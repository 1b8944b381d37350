"""Relationships of data sets whose truth is known: found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.discovery.datasetfiles import DataSet
from support.discovery.datasets import DATA_SETS, shop
from support.discovery.messy import MESSY_SETS
from support.discovery.quality import judged

from snaploom.discovery.discover import discover
from snaploom.jobs.declarations.declarationfiles import read_declarations
from snaploom.models.allowances import NO_ALLOWANCES


@pytest.mark.parametrize("make", [*DATA_SETS, *MESSY_SETS], ids=lambda make: make.__name__)
def test_relationships_of_a_data_set_are_found_and_no_others(
    tmp_path: Path, make: Callable[[], DataSet]
) -> None:
    data = make()
    data.write(tmp_path / "data")
    found = discover([str(tmp_path / "data")], f"{tmp_path.as_uri()}/model/")
    result = judged(data, found)
    assert (result.missed, result.wrong) == (frozenset(), frozenset())
    (tmp_path / "model").mkdir()
    for name, text in found.files.items():
        (tmp_path / "model" / name).write_text(text, "utf-8")
    declared = read_declarations([tmp_path / "model"], NO_ALLOWANCES)
    assert declared.findings == ()
    assert len(declared.output_names) == 1


def test_the_same_data_gives_the_same_text(tmp_path: Path) -> None:
    shop().write(tmp_path)
    first, second = (discover([str(tmp_path)], "file:///model/").files for _ in range(2))
    assert first == second


def test_numbers_from_one_on_are_no_evidence(tmp_path: Path) -> None:
    for name, columns in {"colours": "id,shade", "trees": "id,height", "cars": "id,seats"}.items():
        rows = "".join(f"{i},{1 + i % 7}\n" for i in range(1, 100))
        (tmp_path / f"{name}.csv").write_text(f"{columns}\n{rows}")
    assert discover([str(tmp_path)], "file:///model/").relationships.declared == ()
