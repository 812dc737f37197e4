"""Ways to close regions, one beside the other (base.py), and the relaxation that every search has."""
