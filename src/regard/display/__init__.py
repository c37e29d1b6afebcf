"""What a result looks like: figures and tables, described once and shown everywhere."""

from regard.display.figure import Bars, Boxes, Edges, Figure, Heat, Line, Panel, Points, Rule, Span
from regard.display.table import Table

__all__ = [
    "Bars",
    "Boxes",
    "Edges",
    "Figure",
    "Heat",
    "Line",
    "Panel",
    "Points",
    "Rule",
    "Span",
    "Table",
]
