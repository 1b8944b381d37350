"""Upgrades of the chart: what outlives them, and a chart to upgrade to."""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.cluster.wholeflights import Flights

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd_name

FOLDERS = ("sources", "wide", "indexes")


@dataclass(frozen=True)
class Kept:
    """What outlives an upgrade of the chart: values by what they are of."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, flights: Flights) -> Kept:
        """What there is now: kinds, resources, their statuses, ConfigMaps, published files."""
        return cls(dict(_values(flights)))

    def lost(self, later: Kept) -> list[str]:
        """What is no longer there, or has another value; what has come is none of it."""
        return [
            f"{name}: {value} before, {later.values.get(name)} after"
            for name, value in self.values.items()
            if later.values.get(name) != value
        ]


def _values(flights: Flights) -> Iterator[tuple[str, Any]]:
    kubectl = flights.whole.cluster.kubectl
    for kind in map(crd_name, KINDS):
        yield f"{kind}: UID", kubectl.get("crd", kind)["metadata"]["uid"]
        for each in flights.list(kind):
            name = f"{kind}/{each['metadata']['name']}"
            yield f"{name}: UID", each["metadata"]["uid"]
            yield f"{name}: spec", each["spec"]
            for field, value in each.get("status", {}).items():
                yield f"{name}: status.{field}", value
    for each in flights.list("configmaps"):
        yield f"configmap/{each['metadata']['name']}", each.get("data")
    for folder in FOLDERS:
        for path in flights.files(folder):
            yield path, "file"


def raised_chart(chart: Path, folder: Path) -> Path:
    """A copy of a chart, a folder or an archive, with a version above all others."""
    raised = folder / "snaploom"
    if chart.is_dir():
        shutil.copytree(chart, raised)
    else:
        with tarfile.open(chart) as opened:
            opened.extractall(folder, filter="data")
    about = raised / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version: .*", "version: 99.0.0", about.read_text("utf-8")))
    return raised
