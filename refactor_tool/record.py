"""Frozen values that cost little to declare.

`@record` gives a class what `@dataclass(frozen=True, slots=True)` gives it, except `field` and inheritance, and
`replace` is its `dataclasses.replace`. The standard decorator compiles five functions for each class, which was a third
of the time of a whole `scan` (DECISIONS.md). This one makes a tuple whose items have names, and compiles nothing for a
class but what another with as many attributes has not compiled before.
"""

from __future__ import annotations

import collections
from functools import cache
from operator import itemgetter
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")
#: Makes what reads the item at a place of a tuple as an attribute; that of named tuples is faster than a property.
_getter = getattr(collections, "_tuplegetter", lambda at, _doc: property(itemgetter(at)))


@dataclass_transform(frozen_default=True)
def record(cls: type[_T]) -> type[_T]:
    """Make a class of annotated attributes, some with defaults, a frozen value without a dictionary.

    Equal by class and attributes, hashable, picklable, and open to `match` by position and name. Raises `TypeError` for
    an attribute without a default after one with a default.
    """
    namespace = dict(vars(cls))
    names = tuple(cls.__annotations__)
    required = [name in namespace for name in names]
    if required != sorted(required):
        raise TypeError(f"{cls.__name__}: an attribute without a default follows one with a default")
    defaults = tuple(namespace[name] for name in names if name in namespace)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    for name, method in _METHODS.items():
        namespace.setdefault(name, method)
    namespace |= {name: _getter(at, None) for at, name in enumerate(names)}
    namespace |= {"__slots__": (), "__match_args__": names, "__new__": _constructor(names, defaults)}
    namespace["__annotations__"] = cls.__annotations__  # they are not in the namespace of every Python
    return type(cls.__name__, (tuple,), namespace)


def replace(value: _T, **changes: Any) -> _T:
    """Return a record like `value` with some attributes changed, as `dataclasses.replace` does."""
    names = type(value).__match_args__  # type: ignore[attr-defined]
    return type(value)(**dict(zip(names, value, strict=True)) | changes)  # type: ignore[call-overload]


def _constructor(names: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    """Return the `__new__` that takes attributes of these names; that of another class with as many is renamed."""
    code = _pattern(len(names)).replace(co_varnames=("_cls", *names))
    return FunctionType(code, {"_make": tuple.__new__}, "__new__", defaults)


@cache
def _pattern(count: int) -> CodeType:
    """Return the code of a `__new__` for that many attributes; to compile it takes as long as to rename it 70 times."""
    items = "".join(f"_{at}, " for at in range(count))
    scope: dict[str, FunctionType] = {}
    exec(f"def __new__(_cls, {items}): return _make(_cls, ({items}))", scope)
    return scope["__new__"].__code__


def _eq(self: Any, other: Any) -> bool:
    return other.__class__ is self.__class__ and tuple.__eq__(self, other)


def _ne(self: Any, other: Any) -> bool:
    return not self == other  # noqa: SIM201 - this is what != is


def _repr(self: Any) -> str:
    shown = (f"{name}={item!r}" for name, item in zip(self.__match_args__, self, strict=True))
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _reduce(self: Any) -> tuple[Any, tuple[Any, ...]]:
    return type(self), tuple(self)


def _true(_self: Any) -> bool:
    """Be true: a value without attributes is no empty tuple."""
    return True


def _frozen(self: Any, name: str, *_value: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} is frozen: cannot change {name!r}")


_METHODS = {
    "__eq__": _eq,
    "__ne__": _ne,
    "__hash__": tuple.__hash__,
    "__repr__": _repr,
    "__reduce__": _reduce,
    "__bool__": _true,
    "__setattr__": _frozen,
    "__delattr__": _frozen,
}
