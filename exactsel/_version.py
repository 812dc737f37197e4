"""The version, in a module without other imports."""

__version__ = "0.1.0"
