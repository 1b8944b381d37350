"""What to index, and how to sort: estimated from data, before anything is built."""
