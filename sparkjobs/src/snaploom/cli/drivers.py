"""`snaploom drivers`: fetches JDBC drivers and Comet, and lists what is known."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from snaploom import ondemand
from snaploom.cli.console import result_console
from snaploom.confidential import visible
from snaploom.errors import ArgumentInvalid
from snaploom.loading.nearmisses import did_you_mean
from snaploom.run import driverlock
from snaploom.sources.databases.drivers import KNOWN_JARS, DriverJar

Folder = Annotated[
    Path,
    Parameter(help=f"Folder of the project, where `{driverlock.LOCK_FILE}` is.", show_default=True),
]


def install(
    names: Annotated[
        tuple[str, ...],
        Parameter(
            name="NAME",
            help="Names of drivers, as `drivers list` shows them, or Maven coordinates "
            "(`GROUP:ARTIFACT:VERSION`); omitted, those of the lock file.",
        ),
    ] = (),
    /,
    *,
    folder: Folder = Path(),
    repository: Annotated[
        str,
        Parameter(
            help="Folder or URL of a Maven repository; default: the environment variable "
            f"`{driverlock.REPOSITORY_VARIABLE}`, else what Spark resolves packages by."
        ),
    ] = "",
    update: Annotated[
        bool, Parameter(help="Take this Snaploom's version instead of the locked one.")
    ] = False,
    unlisted: Annotated[
        bool,
        Parameter(
            help="Also fetch a named jar that `drivers list` does not know: its code runs with "
            "your rights."
        ),
    ] = False,
) -> int:
    """Fetch JDBC drivers, and lock their versions and hashes for everybody who has the project.

    `snaploom run` gives a source the locked driver of its database, after its hash was compared.
    `comet` is no driver, but the accelerator of Spark, for runs that ask for it.
    """
    file = folder / driverlock.LOCK_FILE
    held = driverlock.read_lock(file)
    wanted = [_wanted(name, held, update=update) for name in names or held]
    for jar in wanted:
        is_new = not (jar.sha256 and driverlock.cached_jar(jar).is_file())
        if not jar.is_known and is_new and not (unlisted and names):
            raise _unlisted(jar, file if jar.name in held else None)
    if not wanted:
        raise ArgumentInvalid(
            "no driver is named, and none is locked",
            path="NAME",
            found=f"no name, and no driver in {file}",
            expected=f"one of {', '.join(KNOWN_JARS)}, or coordinates",
            hint="name the database that is to be read: snaploom drivers install postgresql",
        )
    place = repository or os.environ.get(driverlock.REPOSITORY_VARIABLE, "")
    for jar in wanted:
        installed = ondemand.install_jar(jar, place)
        held[installed.name] = installed
        driverlock.write_lock(file, held)
        result_console().print(f"installed {installed.coordinates}, locked in {file}")
    return 0


def list_(*, folder: Folder = Path()) -> int:
    """List the JDBC drivers that are known or locked, and what is installed of them."""
    held = driverlock.read_lock(folder / driverlock.LOCK_FILE)
    table = Table("driver", "coordinates", "locked", "installed", box=None, pad_edge=False)
    for jar in {**KNOWN_JARS, **held}.values():
        locked = "yes" if jar.name in held else "no"
        table.add_row(
            jar.name,
            jar.coordinates,
            locked,
            "yes" if driverlock.cached_jar(jar).is_file() else "no",
        )
    result_console().print(table)
    return 0


def _unlisted(jar: DriverJar, lock: Path | None) -> ArgumentInvalid:
    return ArgumentInvalid(
        "this jar is none of the drivers that Snaploom knows",
        path="NAME",
        found=visible(jar.coordinates + (f", which {lock} names" if lock is not None else "")),
        expected=f"one of {', '.join(KNOWN_JARS)}, or {driverlock.UNLISTED} and its coordinates",
        hint=driverlock.install_hint(jar),
    )


def _wanted(name: str, held: dict[str, DriverJar], *, update: bool) -> DriverJar:
    known = KNOWN_JARS.get(name)
    if name in held and not (update and known is not None):
        return held[name]
    if known is not None:
        return known
    if driverlock.COORDINATES.fullmatch(name):
        listed = {jar.coordinates: jar for jar in KNOWN_JARS.values()}
        return listed.get(name) or DriverJar(name, name, "")
    raise ArgumentInvalid(
        "there is no driver of this name",
        path="NAME",
        found=name,
        expected=f"{', '.join(KNOWN_JARS)}, or GROUP:ARTIFACT:VERSION",
        hint=did_you_mean(name, list(KNOWN_JARS))
        or "give the coordinates of a driver that is not listed",
    )
