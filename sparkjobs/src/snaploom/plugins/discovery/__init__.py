"""From data that is there to declarations: `snaploom init DIR --from URI`.

Effects come first: `foundfiles`, `samples` and `databases` read, bounded; `start` writes. All else
is pure: `layout` finds sources in names, `profiles` and `relationships` judge frozen samples,
`jointree` makes an output of them, `declarations` the text. What is not certain stands in the text
as a comment with its evidence.
"""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.plugins.discovery import discover
    from snaploom.plugins.discovery.databases import read_database as read_database
    from snaploom.plugins.discovery.discover import explained as explained

    discover_data = discover.discover
else:
    __getattr__ = attributes_of(
        __name__,
        {
            "discover_data": "snaploom.plugins.discovery.discover:discover",
            "explained": "snaploom.plugins.discovery.discover:explained",
            "read_database": "snaploom.plugins.discovery.databases:read_database",
        },
    )
