"""Options in `WITH (...)`: our names, and the peer's, which are kept and shown.

| name | values | meaning |
|---|---|---|
| `location` | URI | folder or `opensearch://host:port`; by default the session's |
| `form` | NATIVE, XSKIPPER, OPENSEARCH | form of the store |
| `refresh_mode` | FULL, INCREMENTAL, AUTO | what a refresh looks at |
| `auto_refresh`, `incremental_refresh` | true, false | the peer's names of AUTO and INCREMENTAL |
| `enabled` | true, false | whether queries use the index |
| `footer_key_label`, `plaintext_footer` | text; true, false | encryption of the index as a whole |
"""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.skipping.lifecycle.forms import FORMS

TRUTHS = ("true", "false")
REFRESH_MODES = ("FULL", "INCREMENTAL", "AUTO")

PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "location": (),
    "form": FORMS,
    "refresh_mode": REFRESH_MODES,
    "auto_refresh": TRUTHS,
    "incremental_refresh": TRUTHS,
    "enabled": TRUTHS,
    "footer_key_label": (),
    "plaintext_footer": TRUTHS,
    # The peer's, for its streaming job, which follows the files; nothing here follows by stream.
    "refresh_interval": (),
    "scheduler_mode": (),
    "checkpoint_location": (),
    "watermark_delay": (),
    "output_mode": (),
    "index_settings": (),
    "id_expression": (),
    "extra_options": (),
}
"""Names, and the values that each may have; any text where there are none."""

FIXED = frozenset({"location", "form", "footer_key_label", "plaintext_footer"})
"""Properties that are fixed when an index is created."""


OWN_PROPERTIES = frozenset(
    {"location", "form", "refresh_mode", "enabled", "footer_key_label", "plaintext_footer"}
)
"""Properties that a declaration has fields for; the others are kept as they are."""


def value_as_kept(name: str, value: str) -> str | None:
    """Normalised value of a property, or None if the name cannot have it."""
    allowed = PROPERTIES.get(name, ())
    if not allowed:
        return value
    return {choice.casefold(): choice for choice in allowed}.get(value.casefold())
