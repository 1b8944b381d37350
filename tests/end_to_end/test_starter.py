"""`snaploom init` writes a model that runs at once."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.documentation.examples import Shell, published_files, run_command

pytestmark = pytest.mark.spark


def test_starter_runs_as_its_comments_describe(shared_shell: Shell, tmp_path: Path) -> None:
    name = "my first model"
    run_command(f"snaploom init '{name}'", tmp_path, shared_shell)
    for command in ("validate", "plan orders-wide -f", "run orders-wide -f"):
        run_command(f"snaploom {command} '{name}'", tmp_path, shared_shell)
    published = published_files(tmp_path / name / "wide")
    assert list(published) == ["2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"]
    with duckdb.connect() as connection:
        names = connection.execute(
            "SELECT data.order_id, customer.data.name FROM read_parquet(?) ORDER BY 1",
            [published["2024-05-02T00:00:00Z"]],
        ).fetchall()
    assert names == [(103, "Carl"), (104, "Blaise"), (105, None), (106, None)]
