"""Sources that are tables of Iceberg or Delta: one place, and nothing that belongs to files."""

from __future__ import annotations

from collections.abc import Iterator

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource, HdfsLike
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.tableformats import TABLE_FORMATS, table_format
from snaploom.planning.validation.outputfolder import brings
from snaploom.planning.validation.scope import Scope

_GLOB = frozenset("*?[{")


def table_findings(spec: HdfsLike, owner: DataSource) -> Iterator[Finding]:
    """What a table cannot have, where the source is one."""
    if table_format(spec) is None:
        return
    globs = spec.source_uri_globs
    if len(globs) > 1 or _GLOB & set(globs[0]):
        yield _not_with_tables(
            owner, "sourceUriGlobs", ", ".join(globs[:3]), "the place of one table, without `*`"
        )
    given = {
        "sourceUriPrefix": spec.source_uri_prefix,
        "formatOptions": ", ".join(sorted(spec.format_options)),
        "schemaFields": ", ".join(field.name for field in spec.schema_fields or ()),
    }
    for field, found in given.items():
        if found:
            yield _not_with_tables(owner, field, found, f"a source without {field}")


def library_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """Libraries that an output's sources need, and that its Spark configuration does not name."""
    wanted: dict[str, str] = {}
    waiting = [
        output.spec.data_model.root_data_source.data_source,
        *(other.data_source for other in output.spec.data_model.other_data_sources),
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        source = scope.sources.get(name)
        if source is None or name in seen:
            continue
        seen.add(name)
        waiting.extend(source.spec.reads)
        kind = None if source.spec.hdfs_like is None else table_format(source.spec.hdfs_like)
        if kind is not None:
            wanted[kind] = min(name, wanted.get(kind, name))
    for kind, name in sorted(wanted.items()):
        if not brings(output, kind):
            yield make_finding(
                "SL149",
                f"DataSource/{name} is a table of {TABLE_FORMATS[kind]}, which Spark reads by a "
                "library that only a run can see",
                resource=output.identity,
                path="spec.run.spark.sparkConf",
                found=f"no jar of {TABLE_FORMATS[kind]}",
                expected="its library, for the Spark that is used, on Spark's class path",
            )


def _not_with_tables(owner: DataSource, field: str, found: str, expected: str) -> Finding:
    return make_finding(
        "SL148",
        "a table has its own files, schema and versions, and is read as it is",
        resource=owner.identity,
        path=f"spec.hdfsLike.{field}",
        found=found,
        expected=expected,
        hint="to choose or shape columns, use a FieldTransformer or a simpleVirtual source",
    )
