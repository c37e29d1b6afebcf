"""What a person reads: one offline page, or Markdown with figures."""

from regard.report.markdown import write_markdown
from regard.report.page import render, write_ledger, write_report

__all__ = ["render", "write_ledger", "write_markdown", "write_report"]
