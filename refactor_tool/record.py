"""Frozen values that cost little to declare.

`@record` gives a class what `@dataclass(frozen=True, slots=True)` gives it, except `field` and inheritance, and
`replace` is its `dataclasses.replace`. The standard decorator compiles five functions for each class, which was a third
of the time of a whole `scan` (DECISIONS.md); this one compiles the constructor only.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def record(cls: type[_T]) -> type[_T]:
    """Make a class of annotated attributes, some with defaults, a frozen value with slots.

    Equal by class and attributes, hashable, picklable, and open to `match` by position and name. `__post_init__` is
    called where there is one. Raises `TypeError` for an attribute without a default after one with a default.
    """
    namespace = dict(vars(cls))
    names = tuple(namespace.get("__annotations__", ()))
    defaults = {name: namespace.pop(name) for name in names if name in namespace}
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    for name, method in _METHODS.items():
        namespace.setdefault(name, method)
    namespace |= {"__slots__": names, "__match_args__": names}
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _constructor(made, names, defaults)
    made._values = _getter(names)
    return made  # type: ignore[no-any-return]


def replace(value: _T, **changes: Any) -> _T:
    """Return a record like `value` with some attributes changed, as `dataclasses.replace` does."""
    names = type(value).__match_args__  # type: ignore[attr-defined]
    return type(value)(**{name: getattr(value, name) for name in names} | changes)


def _constructor(cls: type, names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    required = [name in defaults for name in names]
    if required != sorted(required):
        raise TypeError(f"{cls.__name__}: an attribute without a default follows one with a default")
    scope: dict[str, Any] = {f"_set_{name}": getattr(cls, name).__set__ for name in names}
    scope |= {f"_default_{name}": value for name, value in defaults.items()}
    params = "".join(f", {name}=_default_{name}" if name in defaults else f", {name}" for name in names)
    body = [f"_set_{name}(self, {name})" for name in names]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__(self{params}):\n " + "\n ".join(body or ["pass"]), scope)
    return scope["__init__"]


def _getter(names: tuple[str, ...]) -> Any:
    """Return a function from an instance to the tuple of its attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return staticmethod(lambda instance: tuple(getattr(instance, name) for name in names))


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = type(self)._values
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(type(self)._values(self))


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _reduce(self: Any) -> tuple[Any, tuple[Any, ...]]:
    return type(self), type(self)._values(self)


def _frozen(self: Any, name: str, *_value: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} is frozen: cannot change {name!r}")


_METHODS = {
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__reduce__": _reduce,
    "__setattr__": _frozen,
    "__delattr__": _frozen,
}
