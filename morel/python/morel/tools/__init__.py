"""Command-line helpers: python -m morel.tools.<name>."""
