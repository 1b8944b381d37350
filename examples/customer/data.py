"""Puts the customer example's data, which is committed beside this file, as its YAML expects."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

FOLDER = Path("/tmp/snaploom/customer")


def main() -> None:
    """Copy the data, in place of what was there."""
    parser = argparse.ArgumentParser(description="Copy the customer example's data.")
    parser.add_argument(
        "--to", type=Path, default=FOLDER, metavar="DIR", help="default: %(default)s"
    )
    target = parser.parse_args().to / "sources"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(Path(__file__).parent / "data", target)
    print(f"{sum(file.is_file() for file in target.rglob('*'))} files in {target}")


if __name__ == "__main__":
    main()
