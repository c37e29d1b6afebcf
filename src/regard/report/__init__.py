"""What a person reads: one offline page."""

from regard.report.page import render, write_report

__all__ = ["render", "write_report"]
