"""What runs the tests: which ones, in which order, how long, and how much of a proof."""
