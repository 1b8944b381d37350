"""Results of the methods of a project: values that print themselves, in notebooks as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TypeVar, overload

from pydantic import JsonValue

from snaploom.confidential import visible_lines
from snaploom.errors import FIX, SnaploomError
from snaploom.models.findings import Finding, errors_of, refuse
from snaploom.models.report import DataFinding, Report, RunPhase, SnapshotReport, Unpublished
from snaploom.output.foldercheck import Fault
from snaploom.plan.bundle import Bundle
from snaploom.plan.differences import DataComparison, RowChanges
from snaploom.plan.drawings import picture_of, published_picture, to_svg
from snaploom.plan.plan import PlannedSnapshot, RunPlan
from snaploom.run.joblog import finding_lines
from snaploom.run.published.diff import Comparison
from snaploom.run.weaving.runs import Planned

Item = TypeVar("Item")


class RunFailed(SnaploomError):
    """A run of a project failed; the results of all of its outputs are attached."""

    def __init__(
        self,
        message: str,
        *,
        runs: Sequence[Run],
        found: str = "",
        expected: str = "",
        hint: str | None = None,
    ) -> None:
        """Attach the results of all outputs, those that are ok too."""
        super().__init__(message, found=found, expected=expected, hint=hint)
        self.runs = tuple(runs)


@dataclass(frozen=True)
class _Items(Sequence[Item]):
    items: tuple[Item, ...]

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


class Findings(_Items[Finding]):
    """Errors and warnings about declarations."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those that stop a run."""
        return errors_of(self.items)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Those that do not."""
        return tuple(each for each in self.items if not each.is_error)

    @property
    def is_ok(self) -> bool:
        """Whether nothing stops a run."""
        return not self.errors

    def raise_for_errors(self) -> Findings:
        """The findings themselves, if none of them is an error.

        Raises:
            NoUniqueJoinTree: every error is an ambiguous or unreachable join tree.
            InvalidDeclarations: otherwise; with all findings.
        """
        refuse(self.items)
        return self

    def __str__(self) -> str:
        return "\n".join(finding_lines(self.items)) or "nothing is wrong"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (
                each.severity.value.lower(),
                each.code,
                f"{each.file}:{each.line}" if each.line else each.file,
                each.resource,
                each.path,
                each.message,
                each.found,
                each.expected,
                each.hint,
            )
            for each in self.items
        ]
        columns = ("", "code", "file", "resource", "path", "message", "found", "expected", "fix")
        return html_table(columns, rows) or html_line("nothing is wrong")


@dataclass(frozen=True)
class Plan:
    """The join tree of an output, and the snapshots of a run."""

    planned: Planned
    bundle: Bundle | None = None

    @property
    def output(self) -> str:
        """Name of the OutputDataset."""
        return self.planned.output

    @property
    def run_plan(self) -> RunPlan | None:
        """The plan as data; None where there is none."""
        return self.planned.plan

    @property
    def snapshots(self) -> tuple[PlannedSnapshot, ...]:
        """Candidates, in the order in which they are processed; none of an offline plan."""
        return () if self.planned.plan is None else self.planned.plan.snapshots or ()

    @property
    def findings(self) -> Findings:
        """Errors and warnings."""
        return Findings(self.planned.findings)

    @property
    def is_ok(self) -> bool:
        """Whether a run would begin."""
        return self.planned.failure is None and self.findings.is_ok

    @property
    def document(self) -> dict[str, JsonValue]:
        """The plan as `snaploom plan -o json` prints it."""
        return self.planned.document

    @property
    def svg(self) -> str:
        """The join tree as a picture; empty where there is none."""
        if self.planned.plan is None or self.bundle is None:
            return ""
        return to_svg(picture_of(self.bundle, self.planned.plan.graph, self.planned.plan.tree))

    def raise_for_errors(self) -> Plan:
        """The plan itself, if a run would begin.

        Raises:
            SnaploomError: why it would not.
        """
        if self.planned.failure is not None:
            raise self.planned.failure
        self.findings.raise_for_errors()
        return self

    def __str__(self) -> str:
        parts = [self.planned.text] if self.planned.plan is not None else []
        parts += [str(self.findings)] if self.planned.findings else []
        parts += [str(self.planned.failure)] if self.planned.failure is not None else []
        return "\n".join(part.rstrip("\n") for part in parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        failure = self.planned.failure
        parts = [html_heading(self.output), self.svg]
        if self.planned.plan is not None:
            parts.append(f"<pre>{html_text(self.planned.text)}</pre>")
        if self.planned.findings:
            parts.append(self.findings._repr_html_())
        if failure is not None:
            parts.append(html_line(failure))
        return "".join(parts)


@dataclass(frozen=True)
class Run:
    """Result of a run of one output."""

    report: Report
    """The Report, as `snaploom run -o json` prints it."""

    @property
    def output(self) -> str:
        """Name of the OutputDataset."""
        return self.report.output

    @property
    def is_ok(self) -> bool:
        """Whether all that was due is published."""
        return self.report.phase is RunPhase.SUCCEEDED

    @property
    def published(self) -> tuple[SnapshotReport, ...]:
        """Snapshots that this run published."""
        return self.report.snapshots

    @property
    def skipped(self) -> tuple[Unpublished, ...]:
        """Snapshots that were left out without being failures."""
        return self.report.skipped

    @property
    def failed(self) -> tuple[Unpublished, ...]:
        """Snapshots that failed."""
        return self.report.failed

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the published snapshots."""
        return tuple(text for snapshot in self.published for text in snapshot.warnings)

    @property
    def data_findings(self) -> tuple[DataFinding, ...]:
        """Faults and changes in the data; they stopped nothing."""
        return self.report.data_findings

    @property
    def cause(self) -> str:
        """Return why it is not ok; empty if it is."""
        if self.is_ok:
            return ""
        first = next(iter(self.failed), None)
        message = self.report.message or (first.message if first else "")
        return message.splitlines()[0] if message else self.report.phase.value

    @property
    def _failure(self) -> tuple[str, str]:
        """The whole message of what made it fail, with keys and all, and its fix."""
        first = next(iter(self.failed), None)
        message = self.report.message or (first.message if first else "") or self.cause
        text, mark, fix = message.rpartition(FIX)
        return (text, fix) if mark else (message, "")

    def __str__(self) -> str:
        lines = [
            f"published {each.time}: {each.rows:,} rows, {each.files} files"
            for each in self.published
        ]
        lines += [f"skipped {each.time}: {each.reason.value}" for each in self.skipped]
        lines += [
            f"failed {each.time}: {each.reason.value}: {each.message}" for each in self.failed
        ]
        if not self.is_ok and not self.failed:
            lines.append(f"{self.report.phase.value}: {self.cause}")
        head = f"{self.output}: {'' if lines else 'nothing to publish'}"
        return "\n".join([head, *lines, *chain(*(each.lines for each in self.data_findings))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        published = html_table(
            ("snapshot", "rows", "files", "bytes", "seconds", "joins"),
            [
                (
                    each.time,
                    f"{each.rows:,}",
                    each.files,
                    f"{each.bytes:,}",
                    f"{each.seconds:.1f}",
                    ", ".join(join.label for join in each.joins),
                )
                for each in self.published
            ],
        )
        left = html_table(
            ("not published", "", "reason", "message"),
            [
                (each.time, kind, each.reason.value, each.message)
                for kind, group in (("skipped", self.skipped), ("failed", self.failed))
                for each in group
            ],
        )
        nothing = "" if published or left else html_line(self.cause or "nothing to publish")
        warnings = "".join(html_line(f"warning: {text}") for text in self.warnings)
        data = html_table(
            ("about the data", "fix"), [(each, each.fix) for each in self.data_findings]
        )
        return f"{html_heading(self.output)}{published}{left}{nothing}{warnings}{data}"


class Runs(_Items[Run]):
    """Results of runs of several outputs, in the order in which they were asked for."""

    @property
    def is_ok(self) -> bool:
        """Whether all that was due is published."""
        return all(run.is_ok for run in self.items)

    def raise_for_failures(self) -> Runs:
        """The runs themselves, if all of them are ok.

        Raises:
            RunFailed: one is not.
        """
        failed = [(run.output, *run._failure) for run in self.items if not run.is_ok]
        if failed:
            raise RunFailed(
                "a run failed, or was interrupted",
                runs=self.items,
                found="\n".join(f"{output}: {text}" for output, text, _ in failed),
                expected="everything that is due is published",
                hint="; ".join(dict.fromkeys(fix for *_, fix in failed if fix)) or None,
            )
        return self

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(run._repr_html_() for run in self.items)


@dataclass(frozen=True)
class Diff:
    """Effects of changed declarations."""

    comparison: Comparison

    @property
    def is_same(self) -> bool:
        """Whether nothing would change."""
        return not self.comparison.differences

    @property
    def is_refused(self) -> bool:
        """Whether a run would refuse any of it."""
        return self.comparison.is_refused

    @property
    def svg(self) -> str:
        """The join trees before and after in one picture; empty where there are none.

        Additions, removals and changes are marked.
        """
        tree = self.comparison.tree
        return "" if tree is None else to_svg(published_picture(tree))

    @property
    def document(self) -> JsonValue:
        """The differences as `snaploom diff -o json` prints them."""
        return self.comparison.document

    def __str__(self) -> str:
        warnings = [f"warning {text}" for text in self.comparison.warnings]
        lines = [*warnings, *map(str, self.comparison.differences)]
        return "\n".join(lines or [f"{self.comparison.output}: nothing would change"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        comparison = self.comparison
        rows = [
            (
                "refused" if one.is_refused else "",
                one.area.value,
                *(one.subject, one.before, one.after, one.effect),
            )
            for one in comparison.differences
        ]
        columns = ("", "about", "what", "before", "after", "effect")
        warnings = "".join(html_line(f"warning {text}") for text in comparison.warnings)
        table = html_table(columns, rows) or html_line("nothing would change")
        return f"{html_heading(comparison.output)}{self.svg}{warnings}{table}"


@dataclass(frozen=True)
class DataDiff:
    """Difference of two versions of snapshots, row by row."""

    comparison: DataComparison

    @property
    def is_same(self) -> bool:
        """Whether rows and columns are the same."""
        return self.comparison.is_same

    @property
    def rows(self) -> RowChanges:
        """Return the numbers of rows and columns that differ, and some of them."""
        return self.comparison.rows

    @property
    def document(self) -> JsonValue:
        """The comparison as `snaploom diff --data -o json` prints it."""
        return self.comparison.document

    def __str__(self) -> str:
        return str(self.comparison)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows, fields = self.rows, self.comparison.fields
        counts = html_table(
            ("added", "removed", "changed", "unchanged"),
            [[f"{n:,}" for n in (rows.added, rows.removed, rows.changed, rows.unchanged)]],
        )
        schema = html_table(
            ("column", "before", "after"),
            [
                *((one.path, "", one.type) for one in fields.added),
                *((one.path, one.type, "") for one in fields.removed),
                *((one.path, one.before, one.after) for one in fields.retyped),
            ],
        )
        columns = html_table(
            ("column", "rows that differ"), [(one.path, f"{one.rows:,}") for one in rows.columns]
        )
        samples = html_table(
            ("row", "key", "column", "before", "after"),
            [
                (
                    sample.change.value.lower(),
                    ", ".join(f"{name} = {value}" for name, value in sample.key),
                    *line,
                )
                for sample in rows.samples
                for line in (
                    [
                        (
                            value.path,
                            *(
                                "NULL" if side is None else side
                                for side in (value.before, value.after)
                            ),
                        )
                        for value in sample.values
                    ]
                    or [("", "", "")]
                )
            ],
        )
        title = f"{self.comparison.output}: {self.comparison.before} → {self.comparison.after}"
        return f"{html_heading(title)}{counts}{schema}{columns}{samples}"


@dataclass(frozen=True)
class Checked:
    """Result of a check of published data."""

    uri: str
    faults: tuple[Fault, ...]
    snapshots: int
    """Number that was looked at."""

    @property
    def is_ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def __str__(self) -> str:
        summary = f"{self.uri}: {self.snapshots} snapshots, {len(self.faults)} faults"
        return "\n".join([summary, *map(str, self.faults)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(self)}</pre>"


# Tables and lists for notebooks: plain HTML that follows the colours of the page.

_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top;white-space:pre-wrap"


def html_text(value: object) -> str:
    """Text from anywhere, safe inside HTML."""
    return escape(visible_lines(str(value)))


def html_heading(value: object) -> str:
    """A heading."""
    return f'<div style="font-weight:600;margin:6px 0">{html_text(value)}</div>'


def html_line(value: object) -> str:
    """A paragraph of one line."""
    return f"<div>{html_text(value)}</div>"


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; empty where it has no rows."""
    listed = list(rows)
    if not listed:
        return ""
    head = "".join(f'<th scope="col" style="{_CELL}">{html_text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html_text(cell)}</td>' for cell in row) + "</tr>"
        for row in listed
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
