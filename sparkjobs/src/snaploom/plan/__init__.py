"""Planning: the join tree, intervals, and the steps of a run; pure data."""
