"""Codes of requests: SL19x."""

from __future__ import annotations

from snaploom.models.catalogue.code import error

ASKING = (
    error(
        "SL191", "Request not valid",
        "A command was asked for a name that is not among the resources, or given an option that "
        "it cannot read.",
        "Correct the name or the option.",
    ),
    error(
        "SL192", "Preflight failed",
        "The folder or a source contradicts the declarations, or cannot be reached.",
        "Follow the message; its first word is the reason, which has a section of its own "
        "among the reasons.",
    ),
)  # fmt: skip
