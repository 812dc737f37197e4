"""Tools for work on exactsel itself, outside its wheel: campaigns, and the reference twin of the checkers.

* :mod:`exactsel_dev.campaigns` holds solves of random tiny instances against the truth (``exactsel dev fuzz``);
* :mod:`exactsel_dev.reference` writes the bounds out slowly and plainly, for tests.
"""
