"""Settings that the first publication into a folder fixes, and how declarations differ from them.

The folder's own record is what counts, at preflight (rule P15); admission compares two states of
one declaration by the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.partition import hive_of
from snaploom.storage.entries import FolderIdentity, FolderSettings
from snaploom.storage.state import FolderState

_COMPRESSION = "dataCompression"
_FOLDER = "spec.outputFolder"
_HIVE = f"{_FOLDER}.snapshotFormat.hivePartitioned"
SETTING_PATHS = {
    "dataFormat": f"{_FOLDER}.dataFormat",
    _COMPRESSION: f"{_FOLDER}.dataCompression",
    "partitionFieldName": f"{_HIVE}.fieldName",
    "timestampFormat": f"{_HIVE}.timestampFormat",
    "outputTimezone": f"{_HIVE}.outputTimezone",
    "output": "metadata.name",
    "root": "spec.dataModel.rootDataSource.dataSource",
}
"""Where each setting stands in an OutputDataset."""


def folder_settings(output: OutputDataset) -> FolderSettings:
    """Settings to fix at the first publication, with defaults for those left open."""
    folder = output.spec.output_folder
    hive = hive_of(folder)
    return FolderSettings(
        data_format=folder.data_format.value,
        data_compression=folder.new_compression.value,
        partition_field_name=hive.field_name,
        timestamp_format=hive.timestamp_format.value,
        output_timezone=hive.output_timezone,
    )


def left_open(output: OutputDataset) -> frozenset[str]:
    """Names of the settings that a declaration leaves to the folder, if that was begun."""
    is_open = output.spec.output_folder.data_compression is None
    return frozenset({_COMPRESSION} if is_open else ())


def settled(
    settings: FolderSettings, fixed: FolderSettings | None, open_names: AbstractSet[str]
) -> FolderSettings:
    """Settings of a folder: as asked, and those left open as the folder has them."""
    if fixed is None or _COMPRESSION not in open_names:
        return settings
    return settings.model_copy(update={"data_compression": fixed.data_compression})


def folder_identity(output: OutputDataset) -> FolderIdentity:
    """Identity of the owner that a declaration names."""
    return FolderIdentity(
        output=output.name,
        root=output.spec.data_model.root_data_source.data_source,
        namespace=output.metadata.namespace or "",
        uid=output.metadata.uid or "",
    )


def fixed_by(settings: FolderSettings, identity: FolderIdentity) -> dict[str, str]:
    """Fixed settings by the names of `SETTING_PATHS`."""
    return {
        **{name: str(value) for name, value in settings.dump().items()},
        "output": identity.output,
        "root": identity.root,
    }


def fixed_in(state: FolderState) -> dict[str, str]:
    """Settings that a folder has fixed; empty before its first publication began."""
    if state.settings is None or state.identity is None:
        return {}
    return fixed_by(state.settings, state.identity)


def asked_by(output: OutputDataset, fixed: Mapping[str, str]) -> dict[str, str]:
    """Settings that a declaration asks for, by name; those left open are as the folder has them."""
    asked = fixed_by(folder_settings(output), folder_identity(output))
    return asked | {name: fixed[name] for name in left_open(output) if name in fixed}


def changed_settings(
    fixed: Mapping[str, str], asked: Mapping[str, str], *, accept_root_change: bool
) -> tuple[str, ...]:
    """Names of fixed settings that declarations ask to change."""
    return tuple(
        name
        for name in fixed
        if fixed[name] != asked.get(name) and not (name == "root" and accept_root_change)
    )
