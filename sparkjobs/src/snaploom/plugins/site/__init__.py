"""The state of outputs as pages of HTML: data without Spark, drawings, and files that need nothing.

`pagedata` is what a page shows, `outputpage` derives it, `document` renders it.
"""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.plugins.site.indexstates import column_facts as column_facts
    from snaploom.plugins.site.indexstates import index_states as index_states
else:
    __getattr__ = attributes_of(
        __name__,
        {
            name: f"snaploom.plugins.site.indexstates:{name}"
            for name in ("column_facts", "index_states")
        },
    )

COMMANDS = (
    ("page", "snaploom.plugins.site.commands:page", "Write the state of outputs as pages of HTML."),
    (
        "serve",
        "snaploom.plugins.site.commands:serve",
        "Show the same pages in a browser, as of now.",
    ),
)
