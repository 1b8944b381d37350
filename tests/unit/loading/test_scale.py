"""A thousand sources and three hundred relationships load and validate in seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from support.declared.declarations import Raw, files, key, output, relationship, simple

from snaploom.loading.load import load
from snaploom.validate.validator import validate

SOURCES, RELATIONSHIPS = 1000, 300


def large_model() -> list[Raw]:
    """Sources in groups, each group related to the root by a key of two components."""
    names = [f"source-{number}" for number in range(SOURCES)]
    groups = [names[number::RELATIONSHIPS] for number in range(RELATIONSHIPS)]
    columns = ["day", "a", "b", "c", "d", *(f"f{i}" for i in range(5))]
    fields = {"schemaFields": [{"name": name, "dataType": {"string": {}}} for name in columns]}
    return [
        files("customer"),
        *(files(name, **fields) for name in names[::2]),
        *(simple(name, "SELECT a, max(b) FROM c WHERE d > 1 GROUP BY a") for name in names[1::2]),
        *(
            relationship(
                f"relationship-{number}",
                (["customer", *group], [key("a"), key("b", "c", query="concat_ws('-', b, c)")]),
            )
            for number, group in enumerate(groups)
        ),
        output(
            **{
                "dataModel.otherDataSources": [
                    {"dataSource": name, "fieldName": name.replace("-", "_")} for name in names
                ],
                "dataModel.dataRelationships": [
                    {"name": f"relationship-{number}"} for number in range(RELATIONSHIPS)
                ],
            }
        ),
    ]


@pytest.mark.slow
def test_a_large_model_loads_and_validates_in_seconds(tmp_path: Path) -> None:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    (tmp_path / "model.yaml").write_text(yaml.dump_all(large_model(), Dumper=dumper))
    begin = time.process_time()
    loaded = load([tmp_path])
    read = time.process_time()
    findings = validate(loaded.resources, broken=loaded.broken)
    end = time.process_time()
    assert (loaded.findings, findings) == ((), ())
    print(f"load {read - begin:.2f} s, validate {end - read:.2f} s")
    assert end - begin < 10  # processor time; about 2 s on a quiet machine
