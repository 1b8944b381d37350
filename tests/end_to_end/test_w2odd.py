from __future__ import annotations
from datetime import date
from pathlib import Path
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import snaploom
import snaploom as sl
pytestmark = [pytest.mark.spark, pytest.mark.slow]
ODD = ["a b", "ä", "a\u0308", "日本", "100%", "a%20b", "%2F", "#1", "a;b", "a,b", "a&b=c", "a'b", 'a"b', "a\\b", "a\nb", "a\tb", "{a}", "[a]", "a*b", "a?b", "a$b", "$(a)", "a+b", "~a", "-a", "a|b<c>", "a@b:c"[:3], " a ", "(a)", "€", "😀", "a!b", "x: y", "it's {{a}}", "a\rb", "a\u2028b", "null", "2024-5-1 x", "@FOLDER@"]
@pytest.mark.parametrize("name", ODD)
def test_odd(tmp_path: Path, spark: SparkSession, name: str) -> None:
    folder = tmp_path / name
    data = folder / "data"
    data.mkdir(parents=True)
    for day in (1, 13):
        (data / f"sales {name} 5-{day}-2024.csv").write_text("sale_id,shop\n" + "".join(f"{day}{n},s{n}\n" for n in range(4)))
    result = snaploom("init", folder / "model", "--from", data)
    assert result.code == 0, result.err
    print((folder/"model"/"sources.yaml").read_text())
    project = sl.load(folder / "model")
    assert project.validate().is_ok, project.validate()
    outputs = [o for o in project.outputs]
    (output,) = outputs
    output = getattr(output, "name", output)
    project.run(output, spark=spark, progress=False)
    rows = project.read(output, spark=spark).select("data.sale_id").collect()
    assert sorted(r[0] for r in rows) == sorted(d*10+n for d in (1, ) for n in range(4)) + sorted(130+n for n in range(4))
    assert len(project.snapshots(output)) == 2
    page = snaploom("page", output, "--to", folder / "site", "-f", folder / "model")
    assert page.code == 0, page.err
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]
    assert sorted(p.name for p in folder.iterdir()) == ["data", "model", "site"]
    assert (folder / "model" / "wide" / "snaploom.json").exists()
