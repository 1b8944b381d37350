"""Physical sources: prefix and globs fit, the snapshot field can hold a time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from snaploom.models.allowances import Allowances
from snaploom.models.codes import make_finding
from snaploom.models.common import DataType, SchemaField
from snaploom.models.datasource import DataSource, FromFieldValue, HdfsLike, Jdbc, TimeFormat
from snaploom.models.finding import Finding
from snaploom.planning.fileformats import format_findings, source_place
from snaploom.planning.prefix import SNAPSHOT_TYPES, PrefixInvalid, UriPrefix
from snaploom.planning.tableformats import table_format
from snaploom.planning.validation.fields import Findings, duplicate_findings, zone_findings
from snaploom.planning.validation.tables import table_findings

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")
_WHOLE = ("byte", "short", "integer", "long", "decimal")
COLUMN_TYPES = {
    TimeFormat.ISO8601_DATE: ("string", "date"),
    TimeFormat.ISO8601_DATE_TIME: ("string",),
    TimeFormat.TIMESTAMP: ("timestamp", "timestampNtz", "date"),
    TimeFormat.UNIX_MILLISECONDS: _WHOLE,
    TimeFormat.UNIX_SECONDS: _WHOLE,
}
"""Types of a column from which each time format is read (rule W14)."""


def hdfs_like_findings(spec: HdfsLike, owner: DataSource, allow: Allowances) -> Findings:
    """Everything that is wrong with one hdfsLike source by itself.

    Args:
        spec: the source.
        owner: what it is of.
        allow: what it may use beyond the built-in lists.
    """
    prefix, findings = _prefix(spec, owner)
    # Tables of Iceberg and Delta have no options at all, which `table_findings` reports.
    options = {} if table_format(spec) is not None else dict(spec.format_options)
    return (
        *format_findings(spec.format, options, allow, source_place(owner.identity)),
        *findings,
        *_globs(spec, prefix, owner),
        *_relative(spec, owner),
        *table_findings(spec, owner),
        *schema_findings(spec.schema_fields or (), owner, "spec.hdfsLike.schemaFields"),
        *snapshot_findings(spec, owner, "spec.hdfsLike", prefix),
    )


def schema_findings(fields: Sequence[SchemaField], owner: DataSource, path: str) -> Findings:
    """Fields of one struct whose names are equal ignoring case, at every level."""
    inner = (
        finding
        for index, field in enumerate(fields)
        for finding in _type_findings(field.data_type, owner, f"{path}[{index}].dataType")
    )
    # One finding a name: at the field's name rather than at the whole field.
    own = duplicate_findings((field.name for field in fields), owner, path)
    return (*(f.model_copy(update={"path": f"{f.path}.name"}) for f in own), *inner)


def _type_findings(data_type: DataType, owner: DataSource, path: str) -> Findings:
    if data_type.struct is not None:
        return schema_findings(data_type.struct.fields_, owner, f"{path}.struct.fields")
    if data_type.array is not None:
        return _type_findings(data_type.array.element_type, owner, f"{path}.array.elementType")
    if data_type.map_ is not None:
        return (
            *_type_findings(data_type.map_.key_type, owner, f"{path}.map.keyType"),
            *_type_findings(data_type.map_.value_type, owner, f"{path}.map.valueType"),
        )
    return ()


def _prefix(spec: HdfsLike, owner: DataSource) -> tuple[UriPrefix | None, Findings]:
    if spec.source_uri_prefix is None:
        return None, ()
    try:
        prefix = UriPrefix.parse(spec.source_uri_prefix)
    except PrefixInvalid as error:
        return None, (_prefix_finding(str(error), spec.source_uri_prefix, owner),)
    columns = {field.name.casefold() for field in spec.schema_fields or ()}
    return prefix, tuple(
        _prefix_finding(f"'{name}' is captured, but is a column of the data too", name, owner)
        for name in prefix.names
        if name.casefold() in columns
    )


def _prefix_finding(message: str, found: str, owner: DataSource) -> Finding:
    return make_finding(
        "SL140",
        f"the prefix is not valid: {message}",
        resource=owner.identity,
        path="spec.hdfsLike.sourceUriPrefix",
        found=found,
        expected="literal text with captures {NAME:TYPE}, ending with a literal character",
    )


def _globs(spec: HdfsLike, prefix: UriPrefix | None, owner: DataSource) -> Findings:
    if prefix is None:
        return ()
    return tuple(
        make_finding(
            "SL141",
            "no file that this glob matches can begin with sourceUriPrefix",
            resource=owner.identity,
            path=f"spec.hdfsLike.sourceUriGlobs[{index}]",
            found=glob,
            expected=f"files that begin with {prefix.text}",
            hint="make both begin with the same folders, in the same spelling",
        )
        for index, glob in enumerate(spec.source_uri_globs)
        if not prefix.fits_glob(glob)
    )


def _relative(spec: HdfsLike, owner: DataSource) -> Findings:
    """Globs of files whose meaning would depend on where a job runs."""
    if table_format(spec) is not None:  # a table may be one of the session's catalogs
        return ()
    return tuple(
        make_finding(
            "SL173",
            "files must be given by an absolute path or a URI",
            resource=owner.identity,
            path=f"spec.hdfsLike.sourceUriGlobs[{index}]",
            found=glob,
            expected="/folder/{0}, or scheme://bucket/{0}".format(_below(glob)),
        )
        for index, glob in enumerate(spec.source_uri_globs)
        if not _ABSOLUTE.match(glob)
    )


def _below(glob: str) -> str:
    """The part of a glob below a folder: without scheme, `./` and `../`."""
    return (glob.partition(":")[2] or glob).lstrip("./")


def snapshot_findings(
    spec: HdfsLike | Jdbc, owner: DataSource, path: str, prefix: UriPrefix | None
) -> Findings:
    """What is wrong with the field of the snapshot time, as far as declarations show."""
    by_field = spec.snapshot.from_field_value
    if by_field is None:
        return ()
    at = f"{path}.snapshot.fromFieldValue"
    return (
        *zone_findings(by_field.default_timezone, owner, f"{at}.defaultTimezone"),
        *_time_type(by_field, spec.schema_fields or (), owner, at, prefix),
    )


def _time_type(
    by_field: FromFieldValue,
    columns: Sequence[SchemaField],
    owner: DataSource,
    path: str,
    prefix: UriPrefix | None,
) -> Findings:
    capture = prefix.capture(by_field.field_name) if prefix else None
    if capture is not None:
        given, allowed = str(capture.type), tuple(map(str, SNAPSHOT_TYPES[by_field.time_format]))
    else:
        folded = by_field.field_name.casefold()
        column = next((c for c in columns if c.name.casefold() == folded), None)
        if column is None:
            return ()  # only the data shows it; where a schema is declared, it is judged there
        given, allowed = _variant(column.data_type), COLUMN_TYPES[by_field.time_format]
    if given in allowed:
        return ()
    return (
        make_finding(
            "SL142",
            f"{by_field.time_format} cannot be read from a field of this type",
            resource=owner.identity,
            path=f"{path}.timeFormat",
            found=f"{by_field.field_name} of type {given}",
            expected=f"a field of type {' or '.join(allowed)}",
        ),
    )


def _variant(data_type: DataType) -> str:
    variant = DataType.variant_of(data_type)
    if data_type.decimal is not None and data_type.decimal.scale != 0:
        return f"decimal with {data_type.decimal.scale} digits after the point"
    return variant
