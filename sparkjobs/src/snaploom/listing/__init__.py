"""Files and snapshots of sources, listed without Spark where possible.

Questions only Spark can answer go through `otherfiles.OtherFiles`. Reading is the engine's task.
"""
