"""Lineage: what was made of what, told to others as a run goes on, in the words of OpenLineage.

From the bottom: `datasets` names what is read and written, `queries` and `columns` say which column
comes from which, `events` makes events of all that, and `following` sends them. Everything but the
last is pure, and the last is given a run's events and its Report like everybody else who is told.
"""
