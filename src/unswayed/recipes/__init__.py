"""Recipes that ship with the package, one TOML file each."""

AUTO = "cpu/auto"
"""The recipe that is planned for the user's data, machine and time."""
