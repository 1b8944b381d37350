"""Refuses changes that break users of the last release: of kinds, chart, documents, and commands.

    python .ci/lint/interfaces.py              compares today's interfaces with the last release's
    python .ci/lint/interfaces.py --freeze     keeps today's as those of this version
    python .ci/lint/interfaces.py --is-frozen  compares today's with those kept of this version

Prints a line `place: what changed` for each fault. Ends with 0 when there is none, 1 otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "docs")]
from generation.versions import project_version  # noqa: E402
from packaging.version import Version  # noqa: E402
from support.compatibility.interfaces import documents, interfaces  # noqa: E402
from support.compatibility.releases import ACCEPTED, FOLDER, KeptRelease, breaking, kept_releases  # noqa: E402


def main(arguments: list[str]) -> int:
    """Run one of the commands; returns the exit code."""
    version = project_version()
    present = KeptRelease(FOLDER / Version(version).base_version)
    match arguments:
        case ["--freeze"]:
            present.freeze(interfaces())
            for name, text in documents().items():
                present.document(name).parent.mkdir(exist_ok=True)
                present.document(name).write_text(text, "utf-8")
            print(f"kept as the interfaces of {present.version}: {present.folder}")  # noqa: T201
            return 0
        case ["--is-frozen"]:
            faults = present.drift(interfaces())
            advice = f"differs from today's interfaces: make freeze, and commit {present.folder}"
            faults = [f"{name}: {advice}" for name in faults]
        case []:
            last = kept_releases()[-1]
            faults = list(breaking(last, interfaces()))
            if faults:
                faults.append(
                    f"These break users of {last.version}. Keep what was there, and add beside it; "
                    f"what was decided goes into {last.folder.name}/{ACCEPTED}, with the reason."
                )
        case _:
            print(__doc__, file=sys.stderr)  # noqa: T201
            return 2
    for fault in faults:
        print(fault, file=sys.stderr)  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
