"""What a result looks like: figures and tables, described once and shown everywhere."""

from regard.display.figure import Bars, Figure, Heat, Line, Panel, Points, Rule, Span
from regard.display.table import Table

__all__ = ["Bars", "Figure", "Heat", "Line", "Panel", "Points", "Rule", "Span", "Table"]
