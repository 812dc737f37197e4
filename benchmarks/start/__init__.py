"""How long the first runs take: from an empty cache and again, as a user's and with everything compiled."""
