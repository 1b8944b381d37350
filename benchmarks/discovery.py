"""What `snaploom init --from` finds in public data sets, beside what their publishers document.

Each set of `publicsets.toml` is written as people have it. Relationships that `init` declares are
held against the publisher's; `validate`, `run` and `page` follow, and DuckDB computes from the same
tables which rows the published output has to have.
"""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import duckdb
from figures import Figure, print_figures, publish
from publicsets import PublicSet, public_sets
from scores import Score, plain, scored
from support.discovery.datasetfiles import Link
from wovenrows import Compared, DeclaredModel, compared

COMMAND = "make bench-discovery"
PROGRAM = Path(sys.executable).with_name("snaploom")
SECONDS = 300
"""Of one command, before it is given up."""
GOAL = 0.95
"""Recall and precision of the sets that are only counted."""


@dataclass(frozen=True)
class Ended:
    """A command that ended, or was given up."""

    name: str
    code: int | None
    """Exit code; None where it took too long."""
    seconds: float
    out: str
    err: str

    @property
    def problem(self) -> str:
        """The error's first lines; empty where it did not fail."""
        if self.code == 0:
            return ""
        if self.code is None:
            return f"{self.name}: no end after {SECONDS} s"
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        named = [n for n, line in enumerate(lines) if line.startswith(("error ", "failed "))]
        lines = lines[named[0] :] if named else lines[-1:]
        return f"{self.name}: exit code {self.code}: {'; '.join(lines[:2])}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one set."""

    of: PublicSet
    score: Score
    ended: tuple[Ended, ...]
    rows: Compared | None
    """None where nothing was published, or nothing was run."""

    @property
    def problems(self) -> list[str]:
        """Errors of its commands."""
        return [one.problem for one in self.ended if one.problem]

    @property
    def figure(self) -> Figure:
        """One line for people."""
        found, score = len(self.of.truth), self.score
        parts = [
            f"{score.found} of {found} found, {len(score.wrong)} wrong, {len(score.silent)} silent",
            ", ".join(f"{one.name} {one.code} in {one.seconds:.0f} s" for one in self.ended),
        ]
        if self.rows is not None:
            parts.append(
                f"{self.rows.rows:,} rows, {self.rows.paths - len(self.rows.differences)} of "
                f"{self.rows.paths} paths as DuckDB's"
            )
        kind = "counted only" if self.of.is_counted_only else "looked at"
        return Figure(f"{self.of.name} ({self.of.dress}, {kind})", "; ".join(parts))


def called(name: str, *arguments: object) -> Ended:
    """Run a command of Snaploom as a shell does, without a terminal."""
    started = perf_counter()
    command = [str(PROGRAM), name, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Ended(name, None, perf_counter() - started, "", "")
    return Ended(name, done.returncode, perf_counter() - started, done.stdout, done.stderr)


def measured(one: PublicSet, folder: Path, with_run: bool) -> Outcome:
    """Start from one set in a new folder, and go on to its page."""
    one.write(folder / "data")
    declarations = folder / "model"
    ended = [called("init", declarations, "--from", folder / "data")]
    if ended[0].code != 0:
        return Outcome(one, scored({}, one.truth), tuple(ended), None)
    model = DeclaredModel(declarations, (table.stem for table in one.tables.glob("*.parquet")))
    score = scored(
        {link: is_called_a_guess(link, ended[0].out) for link in model.links},
        one.truth,
        one.also_right,
        lambda table, columns: is_key(one.tables / f"{table}.parquet", columns),
    )
    ended.append(called("validate", declarations))
    rows = None
    if with_run:
        drivers = re.findall(r"^  snaploom drivers (.+)$", ended[0].out, re.MULTILINE)
        ended += [called("drivers", *shlex.split(each)) for each in drivers]
        ended.append(called("run", model.output, "-f", declarations))
        ended.append(called("page", model.output, "--to", folder / "site", "-f", declarations))
        if (declarations / "wide" / "data").exists():
            rows = compared(model, declarations / "wide", one.tables)
    return Outcome(one, score, tuple(ended), rows)


def is_called_a_guess(link: Link, summary: str) -> bool:
    """Whether what `init` printed has the child's columns in a line, or below a heading, that
    calls it a guess.
    """
    child, columns, _, _ = link
    is_below = False
    for line in summary.splitlines():
        if line and not line.startswith(" "):
            is_below = "guess" in line.casefold()
        named = plain(line)
        if (is_below or "guess" in line.casefold()) and all(
            plain(name) in named for name in (child, *columns)
        ):
            return True
    return False


def is_key(table: Path, columns: Sequence[str]) -> bool:
    """Whether columns of a table are unique, where none is NULL."""
    if not table.exists():
        return False
    with duckdb.connect() as database:
        known = {plain(name): name for name in database.sql(f"FROM '{table}'").columns}
        shown = ", ".join(f'"{known.get(plain(column), column)}"' for column in columns)
        query = f"SELECT count(*), count(DISTINCT ({shown})) FROM '{table}'"
        row = database.execute(f"{query} WHERE ({shown}) IS NOT NULL").fetchone()
    return row is not None and row[0] == row[1]


def figures_of(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Recall, precision and silent errors of both kinds of sets, and what failed."""
    figures = []
    for is_counted_only, kind in ((True, "counted only"), (False, "looked at")):
        scores = [one for one in outcomes if one.of.is_counted_only is is_counted_only]
        found = sum(one.score.found for one in scores)
        wrong = sum(len(one.score.wrong) for one in scores)
        silent = sum(len(one.score.silent) for one in scores)
        recall = found / max(1, sum(len(one.of.truth) for one in scores))
        precision = found / max(1, found + wrong)
        bound = GOAL if is_counted_only else 0
        figures += [
            at_least(f"{kind}, recall of documented relationships", recall, bound),
            at_least(f"{kind}, precision", precision, bound),
            Figure.at_most(f"{kind}, wrong ones not called a guess", silent, 0)
            if is_counted_only
            else Figure(f"{kind}, wrong ones not called a guess", silent),
        ]
    failed = sum(bool(one.problems) for one in outcomes)
    figures += [
        Figure.at_most("sets with a command that failed", failed, 0),
        Figure("init, seconds of all sets", round(sum(o.ended[0].seconds for o in outcomes), 1)),
    ]
    if rows := [one.rows for one in outcomes if one.rows is not None]:
        unlike = sum(bool(one.differences) for one in rows)
        figures += [
            Figure.at_most("sets with rows unlike DuckDB's", unlike, 0),
            Figure("rows of outputs compared", sum(one.rows for one in rows)),
        ]
    return figures


def at_least(name: str, value: float, limit: float) -> Figure:
    """A share that must not be smaller than a limit, if there is one."""
    if not limit:
        return Figure(name, round(value, 3))
    return Figure(name, round(value, 3), f">= {limit:g}", value >= limit)


def show(one: Outcome) -> None:
    """Print a set's line; and what is wrong, in full only of sets that may be looked at."""
    print_figures([one.figure])
    for problem in one.problems:
        line = problem.partition("; ")[0] if one.of.is_counted_only else problem
        print(f"failed: {one.of.name} {line}")
    if one.of.is_counted_only:
        return
    for missed in sorted(one.score.missed):
        print(f"missed: {one.of.name} {shown(missed)}")
    for wrong in sorted(one.score.wrong):
        silently = ", silently" if wrong in one.score.silent else ""
        print(f"wrong{silently}: {one.of.name} {shown(wrong)}")
    for difference in one.rows.differences if one.rows is not None else ():
        print(f"differs: {one.of.name} {difference}")


def shown(link: Link) -> str:
    """A relationship as the list of sets has it."""
    child, mine, parent, theirs = link
    return f"{child}.{'+'.join(mine)} > {parent}.{'+'.join(theirs)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="SET", help="these sets, nothing published")
    parser.add_argument("--no-run", action="store_true", help="only init and validate")
    parser.add_argument("--print", action="store_true", help="write no line of history")
    given = parser.parse_args()
    sets = [one for one in public_sets() if given.only is None or one.name in given.only]
    outcomes = []
    for one in sets:
        with TemporaryDirectory() as folder:
            outcomes.append(measured(one, Path(folder), not given.no_run))
        show(outcomes[-1])
    figures = figures_of(outcomes)
    if given.only or given.print:
        print_figures(figures)
    else:
        command = f"{COMMAND} OPTIONS=--no-run" if given.no_run else COMMAND
        publish("Start from files", command, figures)
    sys.exit(not all(figure.ok for figure in figures))


if __name__ == "__main__":
    main()
