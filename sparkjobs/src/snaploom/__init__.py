"""Snaploom weaves declared data sources into wide, point-in-time, query-ready tables on Spark.

`load` reads declarations and returns a `Project`, which validates, plans, runs and reads; the six
kinds, such as `DataSource`, are what declarations are made from in Python. `read`, `schema` and
`absences` are about the folder of an output.

Names are resolved when they are first used, so that `import snaploom` takes no time and works
without Spark; type checkers and editors see them as they are.
"""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.errors import SnaploomError as SnaploomError
    from snaploom.models.findings import InvalidDeclarations as InvalidDeclarations
    from snaploom.models.kinds import to_yaml as to_yaml
    from snaploom.project.project import Project as Project
    from snaploom.project.project import load as load
    from snaploom.project.resources import DataRelationship as DataRelationship
    from snaploom.project.resources import DataSource as DataSource
    from snaploom.project.resources import FieldTransformer as FieldTransformer
    from snaploom.project.resources import MetadataApplicator as MetadataApplicator
    from snaploom.project.resources import OutputDataset as OutputDataset
    from snaploom.project.resources import SkippingIndex as SkippingIndex
    from snaploom.project.results import RunFailed as RunFailed
    from snaploom.reader import absences as absences
    from snaploom.reader import read as read
    from snaploom.reader import schema as schema

    __version__: str

_PLACES = {
    "__version__": "snaploom.installed:VERSION",
    "InvalidDeclarations": "snaploom.models.findings:InvalidDeclarations",
    "Project": "snaploom.project.project:Project",
    "RunFailed": "snaploom.project.results:RunFailed",
    "SnaploomError": "snaploom.errors:SnaploomError",
    "absences": "snaploom.reader:absences",
    "load": "snaploom.project.project:load",
    "read": "snaploom.reader:read",
    "schema": "snaploom.reader:schema",
    "to_yaml": "snaploom.models.kinds:to_yaml",
    **{
        kind: f"snaploom.project.resources:{kind}"
        for kind in (
            "DataRelationship",
            "DataSource",
            "FieldTransformer",
            "MetadataApplicator",
            "OutputDataset",
            "SkippingIndex",
        )
    },
}

__all__ = sorted(_PLACES)
__getattr__ = attributes_of(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
