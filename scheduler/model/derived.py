"""derived: a fact worked out of a frozen value at its first use and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["derived"]

T = TypeVar("T")


class derived(Generic[T]):  # noqa: N801  reads as the decorator it is
    """``functools.cached_property`` without its lock, whose price (about 1 µs a fact) every pod would pay many times.

    Two threads that ask at the same moment both work the fact out, and get equal answers.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self._name = ""
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Note under which name the fact is kept."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        """Work the fact out; later uses find it in the instance and do not come here."""
        if instance is None:
            return self
        fact = instance.__dict__[self._name] = self.make(instance)
        return fact
