"""Recurrences with hand-derived gradients: the fast ways through a cell."""
