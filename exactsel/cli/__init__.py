"""The command line; heavy imports happen inside the commands."""
