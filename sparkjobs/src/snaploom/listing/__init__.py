"""Files and snapshots of sources, listed without Spark where that is possible.

What only Spark can answer is asked through `otherfiles.OtherFiles`. Reading is the engine's.
"""
