"""Commands of `snaploom` that use a cluster.

This module only lists them, so that `--help` imports nothing heavy; commands without a cluster are
in `snaploom.cli`.
"""

COMMANDS = (
    (
        "status",
        "snaploom_operator.commands.status:status",
        "Show the status of outputs and indexes in a cluster.",
    ),
    (
        "logs",
        "snaploom_operator.commands.logs:logs",
        "Show the logs of a run: driver and operator.",
    ),
    ("trigger", "snaploom_operator.commands.runcontrol:trigger", "Start a run now."),
    (
        "suspend",
        "snaploom_operator.commands.runcontrol:suspend",
        "Suspend the runs of an output or index.",
    ),
    (
        "resume",
        "snaploom_operator.commands.runcontrol:resume",
        "Resume the runs of an output or index.",
    ),
    (
        "operator run",
        "snaploom_operator.commands.run:run",
        "Run the operator.",
    ),
    (
        "operator webhook",
        "snaploom_operator.commands.webhook:webhook",
        "Run the admission webhook.",
    ),
    (
        "operator pages",
        "snaploom_operator.commands.pages:pages",
        "Serve the pages of outputs in a cluster.",
    ),
    (
        "operator settings",
        "snaploom_operator.commands.settings:settings",
        "Show the effective operator settings and allow lists.",
    ),
)
GROUPS = {"operator": "Run the operator, its webhook, and its pages."}
