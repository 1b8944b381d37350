"""Rules of declarations: SQL, regular expressions, settings, pods, addresses, secrets."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.policy.sql import judge as judge
else:
    __getattr__ = attributes_of(__name__, {"judge": "snaploom.policy.sql:judge"})
