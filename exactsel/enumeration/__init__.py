"""Searches below a node that a kernel does by itself: in closed form, over dependent columns, by a relaxation."""
