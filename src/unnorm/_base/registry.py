"""Registries: the parts of one kind (domains, references, …) by name.

A registry stands beside the abstract class of its kind and is filled by one module, which imports every part: that
import is the one line by which a part is added. Reading saved descriptions, the public names of `unnorm` and the
generic tests all go by the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, final

from ..errors import InputError, UnnormError, unknown


class Part(Protocol):
    """What can be registered."""

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], /) -> Any:
        """The part that `to_dict` described."""
        ...

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Small instances for the generic tests."""
        ...


P = TypeVar("P", bound=Part)


@final
class Registry(Mapping[str, type[P]], Generic[P]):
    """Name → class, for every part of one kind; `kind` is the key of a description that holds the name."""

    def __init__(self, kind: str, base: type[P]) -> None:
        self.kind, self.base = kind, base
        self._parts: dict[str, type[P]] = {}

    def fill(self, namespace: Mapping[str, Any]) -> None:
        """Register every concrete class of this kind in a module's namespace."""
        for value in namespace.values():
            if isinstance(value, type) and issubclass(value, self.base) and not inspect.isabstract(value):
                self._parts[value.__name__] = value

    @contextmanager
    def including(self, part: type[P]) -> Iterator[None]:
        """One more part inside the block; the registry is as before afterwards."""
        before = dict(self._parts)
        self._parts[part.__name__] = part
        try:
            yield
        finally:
            self._parts = before

    def read(self, description: Mapping[str, Any]) -> P:
        """The part that `to_dict` described, as `{kind: name of the class, …}`."""
        name = description.get(self.kind)
        if not isinstance(name, str) or name not in self._parts:
            raise InputError(unknown(f"The {self.kind!r} of a description", name, self._parts))
        try:
            return self._parts[name].from_dict(description)
        except UnnormError:
            raise
        except (KeyError, TypeError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else f"cannot be read ({error})"
            raise InputError(f"The description of {name} {what}; it has {sorted(description)}.") from error

    def examples(self) -> tuple[Any, ...]:
        """The examples of every part."""
        return tuple(example for part in self._parts.values() for example in part.examples())

    def __getitem__(self, name: str) -> type[P]:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Registry({self.kind}: {', '.join(self._parts)})"
