"""Commands of `snaploom` that talk to a cluster, by name; light to import, for `--help`."""

from __future__ import annotations

COMMANDS = (
    (
        "status",
        "snaploom_operator.commands.status:status",
        "Tell how outputs and indexes of a cluster stand.",
    ),
    (
        "logs",
        "snaploom_operator.commands.logs:logs",
        "Show what driver and operator wrote about a run.",
    ),
    ("trigger", "snaploom_operator.commands.asking:trigger", "Ask a cluster for a run now."),
    ("suspend", "snaploom_operator.commands.asking:suspend", "Start no further run."),
    ("resume", "snaploom_operator.commands.asking:resume", "Start runs again."),
    (
        "operator run",
        "snaploom_operator.commands.run:run",
        "Make the declarations of a cluster live.",
    ),
    (
        "operator webhook",
        "snaploom_operator.commands.webhook:webhook",
        "Check resources before the API server stores them.",
    ),
    (
        "operator settings",
        "snaploom_operator.commands.settings:settings",
        "Show the settings in force, and what their lists allow.",
    ),
)
GROUPS = {"operator": "What runs in a cluster: the operator and its webhook."}
