"""How soon a run ends after its time limit or a signal, in seconds on this machine."""
