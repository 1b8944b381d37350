"""Pages of outputs in a cluster: what the operator wrote into statuses, for whom may read it.

`access` asks the API server who a user is and what they may list, `pageserver` answers requests,
and `pagesprocess` composes the process.
"""
