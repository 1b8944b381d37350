"""From the store to everything that one decision is made from."""
