"""Folders of outputs, for commands that look at what is published and at nothing else.

They need neither references between declarations nor judged SQL, whose modules take a third of the
time of such a command to import.
"""

from collections.abc import Sequence
from pathlib import Path

from snaploom import ondemand
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.loading.load import load
from snaploom.models.allowances import VariableChoice
from snaploom.models.outputdataset import OutputDataset


def folder_of(name: str, paths: Sequence[Path], choice: VariableChoice) -> str:
    """URI of the folder of an output; what else is declared is not judged."""
    found = [
        resource.spec.output_folder.folder_uri
        for resource in load(paths, choice).resources
        if isinstance(resource, OutputDataset) and resource.name == name
    ]
    if len(found) == 1:
        return found[0]
    return ondemand.folder_declared(name, paths, choice)


def open_named(uri: str) -> ObjectStore:
    """The store of a folder that is there; Spark is started where nothing else knows the scheme."""
    return open_store(uri, create=False, others=by_hadoop)


def by_hadoop(uri: str, create: bool) -> ObjectStore:
    """The store of a folder that only Hadoop's client knows; Spark is started for it."""
    return ondemand.open_place(uri, create)
