"""The version, for those who need nothing else of the package."""

__version__ = "0.1.0"
