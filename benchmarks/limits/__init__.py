"""How soon a run ends after its time limit or a signal, and how long a start takes, in seconds on this machine."""
