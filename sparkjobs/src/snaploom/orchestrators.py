"""Outputs in orchestrators: `snaploom.orchestrators.airflow` and `.dagster`.

The modules are those of a plug-in, found in its folder by these names.
"""

from typing import cast

from snaploom.installed import plugged

__path__ = cast(list[str], plugged("snaploom.orchestrators", "folder", "support of orchestrators"))
