"""kopf's watches, and the lists that keep the store true whatever becomes of them."""
