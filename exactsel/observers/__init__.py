"""Observers: what is made of the events of a search while it runs; nothing in the search depends on them."""
