"""``exactsel data``: commands that convert, reduce, generate and copy data files."""
