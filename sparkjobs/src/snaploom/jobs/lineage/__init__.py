"""Lineage: sends OpenLineage events about a run's inputs and outputs while it works.

`datasets` names what is read and written, `querycolumns` and `columnlineage` trace columns,
`openlineageevents` builds events, and `runlistener` and `sender` send them. All but the last two
are pure; they get a run's events and its Report as every other listener does.
"""
