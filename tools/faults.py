"""Small faults that can be put into a file of Python: one change in one expression or statement."""

# ruff: noqa: D102 (what is visited says the method's name)

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORE = ("models", "training", "runs", "recordings", "instruments", "papers", "tasks")

COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "=="}
COMPARISONS |= {"Is": "is not", "IsNot": "is", "In": "not in", "NotIn": "in"}
OPERATORS = {"Add": "-", "Sub": "+", "Mult": "/", "Div": "*", "MatMult": "*", "Mod": "*"}
OPERATORS |= {"FloorDiv": "*", "Pow": "*", "BitAnd": "|", "BitOr": "&"}
SYMMETRIC = ("min", "max", "minimum", "maximum", "equal", "array_equal", "mul")
SYMMETRIC += ("addcmul", "addcmul_", "allclose", "isclose")  # as methods of what is added to
# Arguments for who writes or reads the code; a class that could be changed is changed by nobody.
LEFT_OUT = ("strict", "description", "encoding", "exist_ok", "frozen", "repr", "prefix")
NAMES = {"mean": "sum", "sum": "mean", "min": "max", "max": "min", "argmax": "argmin"}
NAMES |= {"argmin": "argmax", "any": "all", "all": "any", "exp": "log", "tanh": "sigmoid"}


@dataclass
class Mutant:
    """One fault: where, what it was, what it became, and what the tests said."""

    path: str
    line: int
    last: int
    what: str
    before: str
    after: str
    start: int  # in characters of the file
    stop: int
    outcome: str = ""
    by: str = ""
    imported: bool = False  # in no function: it is run by whichever test first imports the module


class Finder(ast.NodeVisitor):
    """All faults that can be put into a file."""

    def __init__(self, path: str, text: str):
        self.path, self.text, self.found = path, text, list[Mutant]()
        lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = [line.encode() for line in lines]
        self.inside = 0

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def add(self, node: ast.expr | ast.stmt, what: str, after: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start, stop = (
            self.place(node.lineno, node.col_offset),
            self.place(node.end_lineno, node.end_col_offset),
        )
        before = self.text[start:stop]
        if before != after:
            place = (self.path, node.lineno, node.end_lineno)
            mutant = Mutant(*place, what, before, after, start, stop, imported=not self.inside)
            self.found.append(mutant)

    def source(self, node: ast.expr) -> str:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.place(node.lineno, node.col_offset)
        return self.text[start : self.place(node.end_lineno, node.end_col_offset)]

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages are for people."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not self.source(node.value).startswith("Field"):
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are for people."""

    def visit_If(self, node: ast.If) -> None:
        if self.source(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.inside += 1
        for statement in node.body:
            self.visit(statement)
        self.inside -= 1

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if self.inside and isinstance(node.value, ast.Call):
            self.add(node, "a call not made", "pass")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            new = COMPARISONS.get(type(node.ops[0]).__name__)
            left, right = self.source(node.left), self.source(node.comparators[0])
            if new and left and right:
                self.add(node, "a comparison", f"{left} {new} {right}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        new = OPERATORS.get(type(node.op).__name__)
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if new and not text:
            self.add(
                node, "an operator", f"({self.source(node.left)} {new} {self.source(node.right)})"
            )
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        new = " or " if isinstance(node.op, ast.And) else " and "
        self.add(node, "and, or", "(" + new.join(f"({self.source(v)})" for v in node.values) + ")")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
            self.add(node, "a sign", f"({self.source(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, "a constant", str(not value))
        elif isinstance(value, int):
            self.add(node, "a constant", str(value + 1))
        elif isinstance(value, float):
            self.add(node, "a constant", repr(value * 2 if value else 1.0))

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in LEFT_OUT:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = self.source(node.func)
        if name in ("RegardError", "Field", "cast", "TypeVar", "Literal", "getattr", "isinstance"):
            return
        plain = not any(isinstance(a, ast.Starred) for a in node.args)
        if len(node.args) >= 2 and plain and not isinstance(node.args[0], ast.Constant):
            first, second, *rest = [self.source(a) for a in node.args]
            if first != second:
                self._call(node, name, [second, first, *rest], node.keywords, "two arguments")
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in LEFT_OUT:
                kept = [k for k in node.keywords if k is not keyword]
                args = [self.source(a) for a in node.args]
                self._call(node, name, args, kept, f"without {keyword.arg}")
        if isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
            other = name[: -len(node.func.attr)] + NAMES[node.func.attr]
            self._call(
                node, other, [self.source(a) for a in node.args], node.keywords, "a function"
            )
        self.generic_visit(node)

    def _call(
        self, node: ast.Call, name: str, args: list[str], keywords: list[ast.keyword], what: str
    ) -> None:
        named = [
            f"{k.arg}={self.source(k.value)}" if k.arg else f"**{self.source(k.value)}"
            for k in keywords
        ]
        self.add(node, what, f"{name}({', '.join([*args, *named])})")


def find_all(tree: Path) -> Iterator[Mutant]:
    """Every fault that can be put into the core folders."""
    for folder in CORE:
        for path in sorted((tree / "src/regard" / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            finder = Finder(str(path.relative_to(tree)), text)
            finder.visit(ast.parse(text))
            yield from finder.found


def draw(tree: Path, every: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of all faults, such as Python can read and as change anything."""
    order = random.Random(seed).sample(every, len(every))
    drawn: list[Mutant] = []
    for mutant in order:
        called = mutant.before.split("(")[0].split(".")[-1]
        if mutant.what == "two arguments" and called in SYMMETRIC:
            continue
        text = (tree / mutant.path).read_text(encoding="utf-8")
        try:
            ast.parse(text[: mutant.start] + mutant.after + text[mutant.stop :])
        except SyntaxError:
            continue
        drawn.append(mutant)
        if len(drawn) == count:
            break
    return drawn
