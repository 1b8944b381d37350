"""Faults of formats and options that declarations name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from snaploom.errors import FormatNotAllowed
from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.allowances import Allowances
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.fileformats import BUILT_IN, FileFormat, file_format, format_names, format_of

FORMAT_CODE = "SL136"
OPTION_CODE = "SL137"
"""Code of an option that is not on the list, or holds something else than it is for."""

_LONGEST_SHOWN = 60
"""Characters of a value that a message shows: enough to recognise it."""
_UNKNOWN = "options go into the configuration of Hadoop, where they can name classes and servers"


REFUSED: Mapping[str, str] = {
    "archivePathFilter": "it opens archives, whose size nothing bounds",
    "avroSchemaUrl": "it names a file or server that is asked for the schema; use avroSchema",
    "basePath": "it names a place; use captures of sourceUriPrefix for values in paths",
    "ignoredPathSegmentRegex": "it is a regular expression, and brings hidden files to light",
    "path": "it names a place, which has a field of its own",
    "paths": "it names places, which have a field of their own",
    "rowValidationXSDPath": "it names a file whose own references are fetched from anywhere",
}
"""Options of Spark that are refused unless an administrator allows them, and why."""


@dataclass(frozen=True)
class FormatPlace:
    """Where a resource declares a format and its options."""

    resource: str
    """`Kind/name`; empty where no resource declares it."""
    format: str
    options: str

    def finding(
        self, option: str | None, message: str, found: str, expected: str, hint: str
    ) -> Finding:
        """A fault of an option, or of the format itself (None).

        `found` is never the value of an option that may hold a secret.
        """
        return make_finding(
            FORMAT_CODE if option is None else OPTION_CODE,
            message,
            resource=self.resource,
            path=self.format if option is None else f"{self.options}.{option}",
            found=found,
            expected=expected,
            hint=hint,
        )


def source_place(resource: str) -> FormatPlace:
    """Where a DataSource declares them."""
    return FormatPlace(resource, "spec.hdfsLike.format", "spec.hdfsLike.formatOptions")


def target_place(resource: str) -> FormatPlace:
    """Where a SkippingIndex declares them."""
    return FormatPlace(resource, "spec.target.path.format", "spec.target.path.options")


def allowed_format(name: str, allow: Allowances) -> FileFormat | None:
    """A format by its name; None where it is on no list."""
    folded = name.casefold()
    added = next((one for one in allow.formats if one.casefold() == folded), None)
    return file_format(name) or (None if added is None else format_of(added))


def spark_format(name: str, allow: Allowances) -> str:
    """The name by which Spark finds a format, of which nothing is at fault."""
    return (allowed_format(name, allow) or format_of(name)).in_spark


def format_findings(
    name: str, options: Mapping[str, str], allow: Allowances, place: FormatPlace
) -> tuple[Finding, ...]:
    """Faults of a declared format and its options."""
    found = allowed_format(name, allow)
    if found is None:
        return (_unlisted_format(name, place),)
    return tuple(_option_findings(found, options, allow, place))


def require_format(
    name: str, options: Mapping[str, str], allow: Allowances, place: FormatPlace
) -> str:
    """The name by which Spark finds a format, of which nothing is at fault."""
    for fault in format_findings(name, options, allow, place):
        raise FormatNotAllowed(
            fault.message,
            resource=place.resource or None,
            path=fault.path,
            found=fault.found,
            expected=fault.expected,
            hint=fault.hint,
        )
    return spark_format(name, allow)


def _unlisted_format(name: str, place: FormatPlace) -> Finding:
    shown = name[:_LONGEST_SHOWN]
    names = format_names()
    by_class = next((each.name for each in BUILT_IN.values() if each.spark_name == name), "")
    guess = f"write `{by_class}`" if by_class else did_you_mean(name, names)
    return place.finding(
        None,
        "this is not a file format that may be read",
        shown,
        ", ".join(names),
        f"{f'{guess} Otherwise' if guess else 'use one of these, or'} have `{shown}` added to the "
        f"list `formats` (chart value allow.formats, or --allow formats={shown})",
    )


def _option_findings(
    file_format: FileFormat, options: Mapping[str, str], allow: Allowances, place: FormatPlace
) -> Iterator[Finding]:
    found = file_format.name
    listed = {option.casefold(): holds for option, holds in file_format.options.items()}
    added = frozenset(entry.casefold() for entry in allow.options)
    given: set[str] = set()
    for option, value in options.items():
        folded = option.casefold()
        if folded in given:
            yield place.finding(
                option, "an option is given twice, since case does not count",
                option, "every option once", "remove one of the two",
            )  # fmt: skip
        given.add(folded)
        if f"{found}.{option}".casefold() in added:
            continue
        holds = listed.get(folded)
        if holds is None:
            yield _unlisted_option(file_format, option, place)
        elif not holds.fits(value):
            yield place.finding(
                option, f"the option of {found} cannot hold this",
                value[:_LONGEST_SHOWN], holds.expected, holds.hint,
            )  # fmt: skip
    missing = file_format.missing_option and file_format.missing_option(options)
    if missing is not None:
        option, value, expected = missing
        yield place.finding(
            option, "JSON in lines cannot be read in this character set as it stands",
            value[:_LONGEST_SHOWN], expected,
            "set these options (lines have no byte order mark then), or convert the files to "
            f"UTF-8, such as by `iconv -f {value[:_LONGEST_SHOWN]} -t UTF-8`, and leave this out",
        )  # fmt: skip


def _unlisted_option(file_format: FileFormat, option: str, place: FormatPlace) -> Finding:
    found = file_format.name
    shown = option[:_LONGEST_SHOWN]
    reasons = {name.casefold(): reason for name, reason in REFUSED.items()}
    reason = reasons.get(option.casefold())
    guess = "" if reason else did_you_mean(option, file_format.options)
    return place.finding(
        option,
        f"this option of {found} may not be given: {reason or _UNKNOWN}",
        shown,
        f"options of {found} that are on the list",
        f"{f'{guess} Otherwise' if guess else 'leave it out, or'} have `{found}.{shown}` added to "
        f"the list `options` (chart value allow.options, or --allow options={found}.{shown})",
    )
