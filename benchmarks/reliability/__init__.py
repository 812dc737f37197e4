"""Attempts to lose a search: kills, interruptions, hours, and more open nodes than memory has room for."""
