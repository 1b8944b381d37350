"""Reads the sources of one snapshot, each when it is needed.

Which of them take part is decided in breadth-first order. What hangs on a source that is left out
is not looked at, so that nothing that is wrong with it fails the snapshot (rule W18).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from pyspark.sql.types import StructType

from snaploom.engine.sources.port import SourceFrame
from snaploom.planning.steps import ReadSource


class Reading(Mapping[str, StructType]):
    """Schemas by field name; a source is read when its schema is first asked for."""

    def __init__(
        self, steps: Iterable[ReadSource], read: Callable[[ReadSource], SourceFrame]
    ) -> None:
        """Nothing is read yet.

        Args:
            steps: what the plan takes of each source.
            read: reads one; whatever it raises comes out of the look at a schema.
        """
        self._steps = {step.field_name: step for step in steps}
        self._read = read
        self._found: dict[str, SourceFrame] = {}

    def source(self, field_name: str) -> SourceFrame:
        """The frame of a source; read once."""
        if field_name not in self._found:
            self._found[field_name] = self._read(self._steps[field_name])
        return self._found[field_name]

    def __getitem__(self, field_name: str) -> StructType:
        return self.source(field_name).frame.schema

    def __contains__(self, field_name: object) -> bool:
        return field_name in self._steps

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)
