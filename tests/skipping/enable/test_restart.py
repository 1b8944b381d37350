"""A Spark that is stopped and started again in one process; in a process of its own."""

import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[2]

PROGRAM = """
import sys
from pathlib import Path

from support.skipping.indexeddata import build_index, last, write_files
from support.weaving.sparksession import make_session

from snaploom.skipping import enable, is_enabled

folder = Path(sys.argv[1])
for is_first in (True, False):
    spark = make_session(folder)
    if is_first:
        path = write_files(spark, folder / "t")
        build_index(spark, str(folder / "indexes"), path, ("id",))
    print(is_enabled(spark))
    enable(spark, str(folder / "indexes"))
    print(spark.read.parquet(path).where("id = 5").count(), last(spark).kept_files)
    spark.stop()
"""


def test_session_after_a_stop_is_enabled_anew(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=SUPPORT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["False", "1 1"] * 2, done.stderr
