"""The page that lists decisions, by their headings, so that none is forgotten."""

from __future__ import annotations

from pathlib import Path

from generation.markdown import NOTE

FOLDER = Path(__file__).parents[1] / "decisions"


def decisions_page() -> str:
    """The page."""
    lines = [f"- [{_title(path)}](decisions/{path.name})\n" for path in sorted(FOLDER.glob("*.md"))]
    return "\n".join([
        "# Decisions\n",
        NOTE,
        "Choices between alternatives, with their reasons. The [rules](design/index.md) state "
        "what holds today, and link to the decisions behind them. Cite a decision by the four "
        "digits of its file (`decision 0035`).\n",
        "".join(lines),
    ])  # fmt: skip


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
