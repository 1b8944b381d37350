"""Pages with Python and SQL, run block by block in one session of Spark.

`python` blocks share their names and have `spark`; `sql` blocks are statements between semicolons,
of which the last is shown; `text` behind either is what it prints. Files with a title are written,
and `console` blocks run, as on any page.
"""

import contextlib
import io
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession
from support.documentation.examples import PLACE
from support.documentation.pagecommands import run
from support.documentation.pages import Block, Command, blocks_of, commands_of, pattern_of

from snaploom.cli.main import run_command

IN_A_SESSION = (
    "python", "compare-data", "data-contract", "skip-files", "why-not-skipped",
    "opensearch-indexes", "xskipper",
)  # fmt: skip
"""How-tos whose blocks need a session."""


@dataclass
class PageSession:
    """One page, in a folder in place of the usual one."""

    spark: SparkSession
    folder: Path
    replacements: Mapping[str, str] = field(default_factory=dict)
    names: dict[str, object] = field(default_factory=dict)
    status: int = 0
    printed: str = ""

    def run(self, page: Path) -> None:
        self.names["spark"] = self.spark
        for block in self._blocks(page):
            if block.title:
                (self.folder / block.title).write_text(block.text, "utf-8")
            elif block.language == "console":
                for command in commands_of(block):
                    self._command(command)
            elif block.language == "python":
                self.printed = self._python(block.text)
            elif block.language == "sql":
                self.printed = self._sql(block.text)
            elif block.language == "text":
                assert pattern_of(block.lines).fullmatch(self.printed), self.printed

    def _blocks(self, page: Path) -> Iterator[Block]:
        given = {PLACE: str(self.folder), **self.replacements}
        for block in blocks_of(page):
            lines = block.lines
            for usual, ours in given.items():
                lines = tuple(line.replace(usual, ours) for line in lines)
            yield replace(block, lines=lines)

    def _command(self, command: Command) -> None:
        """Ours in this process, whose Spark is there already; others as a shell runs them."""
        arguments = shlex.split(command.text.replace("\\\n", " "))
        if arguments[0] != "snaploom" or ">" in arguments:
            self.status = run(command, self.folder, self.status)
            return
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            self.status = run_command(arguments[1:])
        shown = f"$ {command.text}\n{printed.getvalue()}"
        assert pattern_of(command.expected).fullmatch(printed.getvalue()), shown

    def _python(self, text: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "page", "exec"), self.names)
        return printed.getvalue()

    def _sql(self, text: str) -> str:
        printed = io.StringIO()
        *earlier, last = text.split(";")
        for statement in earlier:
            self.spark.sql(statement)
        with contextlib.redirect_stdout(printed):
            self.spark.sql(last).show(truncate=False)
        return printed.getvalue().rstrip("\n") + "\n"
