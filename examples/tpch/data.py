"""Generates TPC-H tables with `tpchgen-cli`, as one dated export of all tables.

The result is `DIR/sources/<date>/<table>.parquet`, which is how many warehouses are exported: one
folder a day. TPC-H's last order date is in 1998, hence the default date.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

FOLDER = Path("/tmp/snaploom/tpch")
EXPORTED = date(1998, 12, 31)


def generator() -> str:
    """The command `tpchgen-cli`, beside this interpreter or on the path."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        sys.exit("The command tpchgen-cli is missing. Install it: pip install 'snaploom[examples]'")
    return found


def generate(scale_factor: float, folder: Path, exported: date = EXPORTED) -> Path:
    """Write the export of one day, in place of what was there, and return its folder."""
    target = folder / "sources" / exported.isoformat()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    subprocess.run(
        [generator(), "parquet", "--quiet", f"-s={scale_factor:g}", f"--output-dir={target}"],
        check=True,
    )
    return target


def main() -> None:
    """Generate the tables at a scale factor; 1 is 6,001,215 rows of lineitem."""
    parser = argparse.ArgumentParser(description="Generate TPC-H tables as one dated export.")
    parser.add_argument(
        "--to", type=Path, default=FOLDER, metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--scale-factor", type=float, default=0.01, metavar="F")
    arguments = parser.parse_args()
    target = generate(arguments.scale_factor, arguments.to)
    size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
    print(f"{len(list(target.iterdir()))} tables, {size:.1f} MB, in {target}")


if __name__ == "__main__":
    main()
