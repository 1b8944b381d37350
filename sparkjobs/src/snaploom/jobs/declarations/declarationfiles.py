"""From files to what a job works on: load, validate, pick; every finding at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from snaploom.loading.load import Loaded, load, load_resources
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding, InvalidDeclarations, NoUniqueJoinTree, errors_of
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.projectfile import NO_CHOICE, VariableChoice
from snaploom.models.resource import Resource
from snaploom.planning.bundle import Bundle
from snaploom.planning.bundles import bundle_for
from snaploom.planning.treefindings import AMBIGUOUS, UNREACHABLE
from snaploom.planning.validation.validator import validate

TREE_CODES = frozenset({AMBIGUOUS, UNREACHABLE})
"""Codes of an ambiguous or unreachable join tree, which have an exit code of their own."""


@dataclass(frozen=True)
class Declarations:
    """Everything that some files declare, and all that is wrong or doubtful with it."""

    loaded: Loaded
    findings: tuple[Finding, ...]
    allow: Allowances = NO_ALLOWANCES
    """Entries that they may use beyond the built-in lists: handed on to their jobs."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources, in the order of files and documents."""
        return self.loaded.resources

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the OutputDatasets."""
        return tuple(r.name for r in self.resources if isinstance(r, OutputDataset))

    def placed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Findings with file, line and column of what they are about."""
        return self.loaded.placed(findings)

    def place_of(self, resource: str, path: str) -> str:
        """`file:line` of a field of a resource (`Kind/name`); empty where it is in no file."""
        for located in self.loaded.located:
            if located.resource.identity == resource:
                return f"{located.file}:{located.position(path).line}"
        return ""

    def bundle(self, name: str, kind: str = OutputDataset.__name__) -> Bundle:
        """An output, or a skipping index, with everything that it refers to.

        Raises:
            InvalidDeclarations: there is no such resource; with what is wrong in the files, since
                the output may be among what could not be read.
        """
        try:
            return bundle_for(kind, name, self.resources)
        except InvalidDeclarations as error:
            broken = f"{kind}/{name}" in self.loaded.broken
            unread = tuple(f for f in self.findings if self._is_about_reading(f))
            # Where nothing could be read at all, only that is the fault.
            explained = broken or (unread and not self.resources)
            raise InvalidDeclarations([*unread, *(() if explained else error.findings)]) from None

    def findings_for(self, bundle: Bundle) -> tuple[Finding, ...]:
        """Findings about an output or an index: about its resources, and about files as such."""
        members = {resource.identity for resource in _members(bundle)}
        return tuple(
            finding
            for finding in self.findings
            if finding.resource in members or self._is_about_reading(finding)
        )

    def _is_about_reading(self, finding: Finding) -> bool:
        known = {resource.identity for resource in self.resources}
        return finding.is_error and finding.resource not in known


def read_declarations(
    paths: Sequence[Path],
    allow: Allowances = NO_ALLOWANCES,
    choice: VariableChoice = NO_CHOICE,
) -> Declarations:
    """Read files and folders and validate what they declare; never raises for their contents."""
    return _validated(load(paths, choice), allow)


def folder_declared(name: str, paths: Sequence[Path], choice: VariableChoice = NO_CHOICE) -> str:
    """URI of the folder of an output.

    Raises:
        InvalidDeclarations: as `Declarations.bundle`.
    """
    output = read_declarations(paths, choice=choice).bundle(name).output
    return output.spec.output_folder.folder_uri


def declared(
    resources: Sequence[Resource],
    paths: Sequence[Path] = (),
    allow: Allowances = NO_ALLOWANCES,
    choice: VariableChoice = NO_CHOICE,
) -> Declarations:
    """The declarations of resources, and of files beside them; as `read_declarations`."""
    return _validated(load_resources(resources, paths, choice), allow)


def _validated(loaded: Loaded, allow: Allowances) -> Declarations:
    findings = validate(loaded.resources, broken=loaded.broken, allow=allow)
    return Declarations(loaded, (*loaded.findings, *loaded.placed(findings)), allow)


def runnable_bundles(
    declarations: Declarations, names: Sequence[str]
) -> tuple[tuple[Bundle, ...], tuple[Finding, ...]]:
    """Outputs about which nothing is wrong, and the warnings about them.

    Raises:
        InvalidDeclarations: something is wrong with any of them, or there is none; with every
            finding about all of them.
    """
    bundles = []
    findings: list[Finding] = [] if names else list(declarations.findings)
    for name in names:
        try:
            bundles.append(declarations.bundle(name))
            concerning = declarations.findings_for(bundles[-1])
        except InvalidDeclarations as error:
            concerning = error.findings
        findings.extend(finding for finding in concerning if finding not in findings)
    refuse(findings)
    if not bundles:
        raise InvalidDeclarations([_nothing_to_run()])
    return tuple(bundles), tuple(findings)


def _nothing_to_run() -> Finding:
    return make_finding(
        "SL191",
        "these files declare no OutputDataset",
        path="--all",
        found="none",
        expected="at least one OutputDataset",
        hint="name with -f the file or folder that declares it",
    )


def _members(bundle: Bundle) -> tuple[Resource, ...]:
    return (
        bundle.runnable,
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )


def refuse(findings: Iterable[Finding]) -> None:
    """Stop if anything among the findings is an error.

    Raises:
        NoUniqueJoinTree: every error is an ambiguous or unreachable join tree.
        InvalidDeclarations: otherwise.
    """
    listed = tuple(findings)
    errors = errors_of(listed)
    if not errors:
        return
    if all(error.code in TREE_CODES for error in errors):
        raise NoUniqueJoinTree(listed)
    raise InvalidDeclarations(listed)


def exit_code_of(findings: Iterable[Finding]) -> int:
    """0 without errors, 3 when every error is an ambiguous or unreachable join tree, else 2."""
    try:
        refuse(findings)
    except InvalidDeclarations as refusal:
        return refusal.exit_code
    return 0
