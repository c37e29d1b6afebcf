"""Rules: what must hold of the measurements for a claim to count as reproduced.

A rule is written in the ledger before any run, as an expression over the names of measures:
`inside >= 0.9 and high(beyond) <= 0.1`. A name stands for the mean over seeds; `low(x)` and
`high(x)` for the ends of its 95 % interval, which one seed leaves open. Nothing else can be said
in a rule.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from regard.errors import RegardError, unknown
from regard.statistics import Estimate

FUNCTIONS: dict[str, Callable[[Estimate], float]] = {
    "low": lambda estimate: estimate.low if estimate.n > 1 else -math.inf,
    "high": lambda estimate: estimate.high if estimate.n > 1 else math.inf,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
COMPARES = "A rule compares with <, <=, > and >= only."
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def holds(rule: str, measures: Mapping[str, Estimate]) -> bool:
    """Whether a rule is true of the measures."""
    return bool(_value(_parse(rule), measures))


def check_rule(rule: str) -> None:
    """Refuse a rule that says what rules cannot say, whatever is measured."""
    _check_statement(_parse(rule))


def _check_statement(node: ast.expr) -> None:
    """Comparisons, and what is joined of them by `and` and `or`."""
    match node:
        case ast.BoolOp(values=parts):
            for part in parts:
                _check_statement(part)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            for part in (left, *rights):
                _check_number(part)
            if any(type(op) not in COMPARISONS for op in ops):
                raise RegardError(COMPARES)
        case _:
            raise RegardError(f"A rule compares measures with numbers: '{ast.unparse(node)}'.")


def _check_number(node: ast.expr) -> None:
    """Numbers, measures, ends of their intervals, and sums and products of all these."""
    match node:
        case ast.Constant(value=int() | float()) | ast.Name():
            return
        case ast.Call(func=ast.Name(id=name), args=[ast.Name()]) if name in FUNCTIONS:
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check_number(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            _check_number(left)
            _check_number(right)
        case _:
            raise RegardError(f"A rule may not say '{ast.unparse(node)}'.")


def names_in(rule: str) -> set[str]:
    """The measures that a rule speaks of."""
    names = {node.id for node in ast.walk(_parse(rule)) if isinstance(node, ast.Name)}
    return names - set(FUNCTIONS)


def _parse(rule: str) -> ast.expr:
    try:
        return ast.parse(rule, mode="eval").body
    except SyntaxError as error:
        raise RegardError(f"The rule '{rule}' cannot be read: {error.msg}.") from None


def _value(node: ast.expr, measures: Mapping[str, Estimate]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, measures)
        case ast.Name(id=name):
            return _measure(name, measures).mean
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=of)]) if name in FUNCTIONS:
            return FUNCTIONS[name](_measure(of, measures))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, measures) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, measures) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            values = [_value(part, measures) for part in (left, *rights)]
            pairs = zip(ops, values, values[1:], strict=False)
            return all(_compare(op, a, b) for op, a, b in pairs)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            return ARITHMETIC[type(op)](_value(left, measures), _value(right, measures))
        case _:
            raise RegardError(f"A rule may not say '{ast.unparse(node)}'.")


def _compare(op: ast.cmpop, a: Any, b: Any) -> bool:
    if type(op) not in COMPARISONS:
        raise RegardError(COMPARES)
    return COMPARISONS[type(op)](a, b)


def _measure(name: str, measures: Mapping[str, Estimate]) -> Estimate:
    if name not in measures:
        raise RegardError(unknown("measure", name, measures))
    return measures[name]
