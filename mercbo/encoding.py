"""Index rows <-> bits: how a point becomes the variables of a binary quadratic model.

| variable               | bits                 | label of a bit, which is 1 if and only if ...    |
|------------------------|----------------------|--------------------------------------------------|
| one value              | none                 |                                                  |
| two values             | one                  | ``(name, second value)``: it has that value      |
| k values, one-hot      | k, exactly one is 1  | ``(name, value)``: it has that value             |
| k values, binary       | ceil(log2 k)         | ``(name, "bit j")``: bit j of the value's index  |

Codewords of the binary encoding that belong to no value are infeasible and decode to nothing.

Variables that look alike (same graph, size and encoding) form a `Block`, so that the work on a
hundred variables is one array operation and not a hundred. A variable of the model that carries
its own beta is called a *factor*: most variables are one factor; a binary-encoded one has a
factor per bit.

Variables of one kind with the same set of values are *alike*. They share one order of the values,
the order of the first of them, whatever order each of them declares: `shared_orders`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np

from mercbo.arrays import Bits, Index, Mask, Rows
from mercbo.domain.variables import Value, Variable

Label: TypeAlias = tuple[str, Value]
Code: TypeAlias = Literal["none", "bit", "one-hot", "binary"]


class HasVariables(Protocol):
    """A space or a region."""

    @property
    def variables(self) -> Mapping[str, Variable]: ...


@dataclass(frozen=True)
class Block:
    """Variables with the same graph, number of values and encoding.

    | symbol    | meaning                                            | shape  |
    |-----------|----------------------------------------------------|--------|
    | variables | positions of the block's variables in a row        | (v,)   |
    | columns   | the bits of each variable                          | (v, b) |
    | codebook  | the bits of each value                             | (k, b) |
    """

    graph: Literal["complete", "path"]
    size: int
    code: Code
    variables: Index
    columns: Index
    codebook: Bits

    @property
    def factors_each(self) -> int:
        """Factors per variable: its bits where these are the model's variables, else one."""
        if self.code == "none":
            return 0
        return self.columns.shape[1] if self.code == "binary" else 1


def code_of(size: int, encoding: str, *, native: bool) -> Code:
    if size == 1:
        return "none"
    if size == 2:
        return "bit"
    return "binary" if encoding == "binary" and not native else "one-hot"


def codebook(size: int, code: Code) -> Bits:
    """The bits of each of `size` values, (size, b); bit j is worth 2**j."""
    if code == "one-hot":
        return np.eye(size, dtype=np.int8)
    width = (size - 1).bit_length()
    return ((np.arange(size)[:, np.newaxis] >> np.arange(width)) & 1).astype(np.int8)


class Encoding:
    """The bits of a space and the way there and back.

    With ``native=True`` the binary-encoded variables are taken as one-hot groups as well: the
    layout in which every feasible one-variable move is a flip or a change inside a group.

    >>> from mercbo import Binary, Categorical, Space
    >>> code = Encoding(Space({"base": Categorical("A C G".split()), "wash": Binary()}))
    >>> code.labels
    (('base', 'A'), ('base', 'C'), ('base', 'G'), ('wash', 1))
    >>> code.to_bits(np.array([[2, 1]])).tolist()
    [[0, 0, 1, 1]]
    """

    def __init__(self, space: HasVariables, *, native: bool = False) -> None:
        members: dict[tuple[str, int, Code, str], list[int]] = {}
        columns: list[list[int]] = []
        labels: list[Label] = []
        for position, (name, variable) in enumerate(space.variables.items()):
            code = code_of(variable.size, variable.encoding, native=native)
            # A binary-encoded variable keeps its own block in the native layout as well, so that
            # blocks of the two layouts correspond one to one.
            key = (
                variable.graph if variable.size > 2 else "complete",
                variable.size,
                code,
                variable.encoding if variable.size > 2 else "",
            )
            members.setdefault(key, []).append(position)
            new = _labels(name, variable.values, code)
            columns.append(list(range(len(labels), len(labels) + len(new))))
            labels += new
        self.native = native
        self.names = tuple(space.variables)
        orders = shared_orders(space.variables.values())
        # (variables,): the same number for variables that are alike
        self.alike: Index = np.array([number for number, _ in orders], dtype=np.intp)
        # the values of each variable in the shared order
        self.values = tuple(values for _, values in orders)
        # (k,) per variable: the place of each declared value in the shared order
        self.ranks = tuple(
            _ranks(variable.values, values)
            for variable, values in zip(space.variables.values(), self.values, strict=True)
        )
        self.labels = tuple(labels)
        self.variables = len(columns)
        self.blocks = tuple(
            Block(
                graph=graph,  # type: ignore[arg-type]
                size=size,
                code=code,
                variables=np.array(chosen, dtype=np.intp),
                columns=np.array([columns[i] for i in chosen], dtype=np.intp),
                codebook=codebook(size, code),
            )
            for (graph, size, code, _), chosen in members.items()
        )

    @property
    def width(self) -> int:
        return len(self.labels)

    @cached_property
    def groups(self) -> tuple[Index, ...]:
        """The columns of each one-hot group: exactly one of them is 1 in a feasible point."""
        return tuple(g for b in self.blocks if b.code == "one-hot" for g in b.columns)

    def to_bits(self, rows: Rows) -> Bits:
        bits = np.zeros((len(rows), self.width), dtype=np.int8)
        for block in self.blocks:
            bits[:, block.columns] = block.codebook[rows[:, block.variables]]
        return bits

    def from_bits(self, bits: Bits) -> tuple[Rows, Mask]:
        """Rows (N, n) and which of their entries are feasible, (N, n).

        An entry that is not (a group with no or several ones, an unused codeword) holds a value
        near by: that of the first one, that of the codeword without its highest bit.
        """
        rows = np.zeros((len(bits), self.variables), dtype=np.int64)
        valid = np.ones(rows.shape, dtype=np.bool_)
        for block in self.blocks:
            part = bits[:, block.columns]  # (N, v, b)
            if block.code == "one-hot":
                rows[:, block.variables] = part.argmax(axis=2)
                valid[:, block.variables] = part.sum(axis=2) == 1
            else:
                number = part @ (1 << np.arange(part.shape[2], dtype=np.int64))
                # an unused codeword is mended by clearing its highest bit
                top = (1 << part.shape[2]) >> 1
                rows[:, block.variables] = np.where(number < block.size, number, number - top)
                valid[:, block.variables] = number < block.size
        return rows, valid


Values: TypeAlias = tuple[Value, ...]


def shared_orders(variables: Iterable[Variable]) -> list[tuple[int, Values]]:
    """The group of like variables that each variable belongs to, and the group's order of values.

    A variable joins a group only if the model stays the same in the group's order. A one-hot or
    two-valued variable joins in any order. An ordered variable joins in the same or the reversed
    order. A binary-encoded variable joins in the same order: its bits come from the order.
    """
    groups: dict[tuple[type[Variable], frozenset[Value]], list[tuple[int, Values]]] = {}
    found, count = [], 0
    for variable in variables:
        like = groups.setdefault((type(variable), frozenset(variable.values)), [])
        own = next((group for group in like if _is_same_model(variable, group[1])), None)
        if own is None:
            own = count, variable.values
            like.append(own)
            count += 1
        found.append(own)
    return found


def _is_same_model(variable: Variable, order: Values) -> bool:
    """True if the model of a variable stays the same in another order of its values."""
    if variable.size > 2 and variable.encoding == "binary":
        return order == variable.values
    if variable.size > 2 and variable.graph == "path":
        return order in (variable.values, variable.values[::-1])
    return True


def _ranks(values: Values, order: Values) -> Index:
    if values == order:
        return np.arange(len(values))
    place = {value: i for i, value in enumerate(order)}
    return np.array([place[value] for value in values], dtype=np.intp)


def _labels(name: str, values: tuple[Value, ...], code: Code) -> list[Label]:
    if code == "none":
        return []
    if code == "bit":
        return [(name, values[1])]
    if code == "one-hot":
        return [(name, value) for value in values]
    return [(name, f"bit {j}") for j in range((len(values) - 1).bit_length())]
