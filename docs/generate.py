"""Write the generated pages, pictures, the chart's files and the version from their sources.

`python docs/generate.py` writes them, `--check` names those that differ. They are committed, so
that they can be read where the repository is shown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from generation.benchmarkhistory import benchmark_pages
from generation.chart import CHART, chart_drift, write_chart
from generation.clustersizes import PAGE as CLUSTER_SIZES
from generation.clustersizes import sizes_page
from generation.commandline import command_page
from generation.contracts import comparison_page, plan_page, report_page
from generation.dashboardpicture import dashboard_picture
from generation.decisions import decisions_page
from generation.drivers import drivers_page
from generation.folder import folder_page
from generation.formats import formats_page
from generation.kinds import kind_page
from generation.metrics import metrics_page
from generation.permissions import PAGE as PERMISSIONS
from generation.permissions import permissions_page
from generation.picture import flights_picture
from generation.problems import PAGE as PROBLEMS
from generation.problems import problems_page
from generation.pythonapi import python_page
from generation.runsettings import run_settings_page
from generation.security import PAGE as SECURITY
from generation.security import security_page
from generation.skippingindexes import skipping_page
from generation.sqlfunctions import functions_page
from generation.versions import version_drift, write_versions

from snaploom.models.kinds import KINDS

DOCS = Path(__file__).parent
REFERENCE = "reference/"


def pages() -> dict[str, str]:
    """Every generated file: its path below `docs/`, and its text."""
    return {
        **{f"{REFERENCE}kinds/{kind.singular}.md": kind_page(kind) for kind in KINDS},
        f"{REFERENCE}cli.md": command_page(),
        f"{REFERENCE}folder.md": folder_page(),
        f"{REFERENCE}formats.md": formats_page(),
        f"{REFERENCE}jdbc-drivers.md": drivers_page(),
        f"{REFERENCE}metrics.md": metrics_page(),
        f"{REFERENCE}diff-json.md": comparison_page(),
        f"{REFERENCE}plan-json.md": plan_page(),
        f"{REFERENCE}python.md": python_page(),
        f"{REFERENCE}report-json.md": report_page(),
        f"{REFERENCE}run-settings.md": run_settings_page(),
        f"{REFERENCE}skipping.md": skipping_page(),
        f"{REFERENCE}sql-functions.md": functions_page(),
        CLUSTER_SIZES: sizes_page(),
        PERMISSIONS: permissions_page(),
        SECURITY: security_page(),
        PROBLEMS: problems_page(),
        **benchmark_pages(),
        "decisions.md": decisions_page(),
        "images/dashboard.svg": dashboard_picture(),
        "images/flights.svg": flights_picture(),
    }


def write(folder: Path) -> None:
    """Write every file below a folder."""
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def drift(folder: Path) -> list[str]:
    """Which files below a folder are missing, differ, or are not generated; as sentences."""
    expected = pages()
    missing = [f"{name} is missing" for name in expected if not (folder / name).exists()]
    changed = [
        f"{name} differs from the code"
        for name, text in expected.items()
        if (folder / name).exists() and (folder / name).read_text(encoding="utf-8") != text
    ]
    found = (path.relative_to(folder).as_posix() for path in (folder / REFERENCE).rglob("*.md"))
    unknown = [f"{name} is not generated" for name in sorted(set(found) - expected.keys())]
    return missing + changed + unknown


def main(arguments: list[str]) -> int:
    """Run the command line; returns its exit code."""
    parser = argparse.ArgumentParser(description="Write the generated pages of the documentation.")
    parser.add_argument("--check", action="store_true", help="only name files that differ")
    if not parser.parse_args(arguments).check:
        write_versions()
        write(DOCS)
        write_chart(CHART)
        return 0
    differences = [f"docs/{sentence}" for sentence in drift(DOCS)]
    differences += [f"charts/snaploom/{sentence}" for sentence in chart_drift(CHART)]
    differences += version_drift()
    for sentence in differences:
        print(f"{sentence}; run `make generate`", file=sys.stderr)  # noqa: T201
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
