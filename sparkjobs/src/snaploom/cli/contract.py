"""`snaploom contract`: the contract of an output, written or checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter
from pydantic import JsonValue

from snaploom.cli.console import (
    OutputForm,
    counted,
    message_console,
    print_findings,
    print_json,
    result_console,
)
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    Now,
    OutputName,
    ProjectOptions,
    instant_of,
)
from snaploom.jobs.contracts.contractcheck import Verdict
from snaploom.jobs.contracts.contractdocument import FIRST_VERSION
from snaploom.jobs.contracts.outputcontract import (
    contract_deviations,
    contract_reader,
    output_contract,
)
from snaploom.jobs.declarations.declarationfiles import runnable_bundles
from snaploom.jobs.namedfolders import open_named
from snaploom.planning.bundle import Bundle
from snaploom.storage.objectstore import ObjectStore


def contract(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    check: Annotated[
        Path | None,
        Parameter(help="File with a contract to compare; omitted, the contract is written."),
    ] = None,
    contract_version: Annotated[
        str, Parameter(help="Version of the written contract.", show_default=True)
    ] = FIRST_VERSION,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Write the data contract of an output, or check whether one is kept.

    The contract is one of the Open Data Contract Standard, version 3: columns and types of the
    newest snapshot, keys, checks, service levels and sources. It is printed as YAML, and as JSON
    with `-o json`.

    With `--check`, a contract is compared with the declarations and with what is published. What
    it promises and is not so is marked with `!` and ends with 1; what it does not mention is marked
    with `+`. Text of people, such as descriptions and teams, is not compared.
    """
    declarations = project.read(file, allow)
    (bundle,), warnings = runnable_bundles(declarations, [name])
    print_findings(warnings, message_console())
    store = open_named(bundle.output.spec.output_folder.folder_uri)
    if check is not None:
        return _check(check, bundle, store, now, output)
    document = output_contract(bundle, store, contract_version)
    if output is OutputForm.JSON:
        print_json(document)
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
        result_console().print(text, markup=False, end="")
    return 0


def _check(
    path: Path, bundle: Bundle, store: ObjectStore, now: str | None, output: OutputForm
) -> int:
    contract_of_file = contract_reader()(path)
    found = contract_deviations(contract_of_file, bundle, store, instant_of(now))
    broken = [one for one in found if one.verdict is Verdict.BROKEN]
    if output is OutputForm.JSON:
        listed: list[JsonValue] = [one.document for one in found]
        print_json({"output": bundle.output.name, "kept": not broken, "deviations": listed})
    else:
        console = result_console()
        for one in found:
            style = "red" if one.verdict is Verdict.BROKEN else None
            console.print(str(one), markup=False, style=style)
        end = f"broken in {counted(len(broken), 'place')}" if broken else "kept"
        console.print(f"{bundle.output.name}: the contract is {end}.", markup=False)
    return int(bool(broken))
