"""Prints the bill of materials of an image: packages of Debian and of Python, and jars.

`python .ci/sbom.py ROOT NAME VERSION`, where ROOT is the image's files. The form is CycloneDX 1.6
in JSON; the same files give the same text. SOURCE_DATE_EPOCH is its time.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import Parser
from importlib.metadata import Distribution, distributions
from itertools import chain
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from cyclonedx.contrib.license.exceptions import InvalidLicenseExpressionException
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

PYTHON = ("opt/snaploom/code", "opt/snaploom/python/lib/python3*/site-packages")
"""Folders of Python's packages; globs."""
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[^/]*)\.jar")
_LICENSES = LicenseFactory()


def debian(root: Path) -> Iterator[Component]:
    """What dpkg has installed."""
    release = (root / "etc/os-release").read_text("utf-8").splitlines()
    named = dict(line.replace('"', "").split("=", 1) for line in release if "=" in line)
    distribution = named["ID"]
    distro = f"{distribution}-{named['VERSION_ID']}" if "VERSION_ID" in named else distribution
    for paragraph in (root / "var/lib/dpkg/status").read_text("utf-8").split("\n\n"):
        fields = Parser().parsestr(paragraph, headersonly=True)
        if fields.get("Status", "").endswith(" installed"):
            # Advisories name what a package was built from, as `upstream`: scanners read it so.
            qualifiers = {"arch": fields["Architecture"], "distro": distro}
            if source := fields.get("Source"):
                qualifiers["upstream"] = re.sub(r" \((.+)\)", r"@\1", source)
            yield a_component(
                PackageURL("deb", distribution, fields["Package"], fields["Version"], qualifiers)
            )


def python(root: Path) -> Iterator[Component]:
    """Distributions of Python."""
    folders = [str(folder) for pattern in PYTHON for folder in root.glob(pattern)]
    for found in distributions(path=folders):
        name = re.sub(r"[-_.]+", "-", found.name).lower()
        yield a_component(PackageURL("pypi", None, name, found.version), license_of(found))


def license_of(distribution: Distribution) -> License | None:
    """The licence that a distribution declares as an expression; None for others."""
    expression = distribution.metadata.get("License-Expression")
    try:
        return _LICENSES.make_with_expression(expression) if expression else None
    except InvalidLicenseExpressionException:
        return None


def jars(root: Path) -> Iterator[Component]:
    """Jars wherever they lie, each as it describes itself, or else by its name."""
    for path in sorted(path for path in root.rglob("*.jar") if not path.is_symlink()):
        named = _JAR.fullmatch(path.name)
        name, version = (named["name"], named["version"]) if named else (path.stem, "")
        group = group_of(path, name)
        purl = PackageURL("maven" if group else "generic", group, name, version)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        component = a_component(purl)
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
        yield component


def group_of(jar: Path, artifact: str) -> str | None:
    """Maven's group of a jar; a jar that has others inside lists them too."""
    with zipfile.ZipFile(jar) as opened:
        for entry in opened.namelist():
            parts = entry.split("/")
            if parts[:2] == ["META-INF", "maven"] and parts[3:] == [artifact, "pom.properties"]:
                return parts[2]
    return None


def a_component(purl: PackageURL, license_: License | None = None) -> Component:
    """A library, which its package URL identifies."""
    return Component(
        name=purl.name,
        version=purl.version,
        group=purl.namespace if purl.type == "maven" else None,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=[license_] if license_ else (),
    )


def bill(root: Path, name: str, version: str) -> str:
    """The bill of an image, as JSON."""
    components: dict[PackageURL | None, Component] = {}
    for each in chain(debian(root), python(root), jars(root)):
        components.setdefault(each.purl, each).hashes.update(each.hashes)  # copies may differ
    text = "\n".join(sorted(str(purl) for purl in components))
    image = Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref=name)
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    found = Bom(
        components=components.values(),
        serial_number=uuid5(NAMESPACE_OID, f"{name} {version}\n{text}"),
        metadata=BomMetaData(component=image, timestamp=moment),
    )
    found.register_dependency(image, components.values())
    return JsonV1Dot6(found).output_as_string(indent=2)


if __name__ == "__main__":
    folder, name, version = sys.argv[1:]
    sys.stdout.write(bill(Path(folder), name, version) + "\n")
