"""The version, in this place alone: pyproject.toml reads it here."""

__version__ = "0.2.0"
