"""Lookup tables and their compositions (baan2019)."""
