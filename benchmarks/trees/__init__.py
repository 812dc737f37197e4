"""The same search before and after a change: tree hashes, counted work and times, written down and compared."""
