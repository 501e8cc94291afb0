"""Every error that mercbo raises on purpose.

    MercboError
    ├── SpaceError (ValueError)        a variable or a space that cannot be
    │   └── PointError                 a point that is not in the space
    ├── SettingError (ValueError)      an option that is not one of its choices
    ├── ResultError (ValueError)       told results that cannot be used
    ├── NoResults                      asked for something that needs a result first
    ├── SpaceExhausted                 fewer unseen points are left than were asked for
    │   └── NoneFound (SpaceError)     the same as far as a long search can tell
    ├── BackendError                   a solver that is missing, refuses, or gave nothing usable
    ├── NumericalError                 a covariance matrix that cannot be factored
    ├── ExecutorError                  an executor that is shut down, broken or closed
    └── StateError                     a saved run that cannot be read

A call that raises one of these has changed nothing.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral


class MercboError(Exception):
    """The root of the tree: catch this to catch them all."""


class SpaceError(MercboError, ValueError):
    """A variable or a space that cannot be: no values, duplicates, low > high."""


class PointError(SpaceError):
    """A point that is not in the space: wrong name, wrong value, wrong length."""


class SettingError(MercboError, ValueError):
    """An option that is not one of its choices."""


class ResultError(MercboError, ValueError):
    """Told results that cannot be used: infinite, not a number, or too many."""


class NoResults(MercboError):
    """Something that needs at least one result was asked for before any was told."""


class SpaceExhausted(MercboError):
    """Fewer unseen points are left than were asked for; `left` says how many."""

    def __init__(self, message: str, *, left: int = 0) -> None:
        super().__init__(message)
        self.left = left


class NoneFound(SpaceExhausted, SpaceError):
    """Fewer unseen points were found than were asked for, in a space that cannot be listed and has
    predicates: there may be others."""


class BackendError(MercboError):
    """A solver that is not installed, not known, that refused the problem (as too large, for
    example), or that answered with nothing usable."""


class NumericalError(MercboError, ArithmeticError):
    """A covariance matrix that is not positive definite, even with jitter on its diagonal."""


class ExecutorError(MercboError):
    """An executor that takes no evaluations: it is shut down, its workers died, its cluster is
    closed, or it cannot send the objective."""


class StateError(MercboError):
    """A saved run that cannot be read: cut short, of a newer version, or not a run at all."""


def choose(option: str, came: object, choices: Iterable[str]) -> str:
    """Return `came` if it is one of `choices`, else raise a `SettingError` that lists them."""
    known = list(choices)
    if isinstance(came, str) and came in known:
        return came
    raise SettingError(f"{option}={quoted(came)} is not one of {known}{hint(came, known)}")


def whole(option: str, came: object, *, least: int = 1) -> int:
    """`came` as an int, else a `SettingError`; NumPy's integers are whole numbers, booleans not."""
    if isinstance(came, bool) or not isinstance(came, Integral) or came < least:
        raise SettingError(f"{option}={quoted(came)} is not a whole number of at least {least}")
    return int(came)


# Characters of a value that a message quotes, and digits of a number at either end.
MOST_QUOTED, END_DIGITS = 200, 12


def quoted(value: object) -> str:
    """`repr(value)` for a message: long values are cut, and a huge integer is given by its first
    and last digits, since Python refuses to write out more than 4,300.

    >>> quoted("DMSO"), quoted(10**500)
    ("'DMSO'", '100000000000...000000000000 (501 digits)')
    """
    if isinstance(value, int) and value.bit_length() > 1024:
        return _huge(value)
    try:
        text = repr(value)
    except ValueError:  # a container of a huge integer
        return f"a {type(value).__name__} of integers with thousands of digits"
    return (
        text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}... ({len(text):,} characters)"
    )


def _huge(value: int) -> str:
    size = abs(value)
    digits = int(size.bit_length() * math.log10(2)) + 1
    digits -= size < 10 ** (digits - 1)
    first, last = size // 10 ** (digits - END_DIGITS), size % 10**END_DIGITS
    return f"{'-' * (value < 0)}{first}...{last:0{END_DIGITS}} ({digits:,} digits)"


def hint(came: object, known: Iterable[object]) -> str:
    """A "did you mean" clause for a name that is close to a known one, whatever the case of its
    letters, else an empty string."""
    shown: dict[str, object] = {}
    for each in known:
        shown.setdefault(str(each).casefold(), each)
    text = came if isinstance(came, str) else quoted(came)
    close = difflib.get_close_matches(text.casefold(), list(shown), n=1)
    return f"; did you mean {shown[close[0]]!r}?" if close else ""
