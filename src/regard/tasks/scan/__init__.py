"""SCAN and eSCAN: commands and the actions they stand for."""
