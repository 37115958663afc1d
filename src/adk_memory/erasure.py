"""What erasing removed, and what of it is left: the reports of `delete_*`, `scrub` and `erase_user`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self


class Erasure(int):
    """What a delete removed: the number of entries, as an int, and the parts of it.

    It equals, adds, formats and prints as that int; its `repr` shows the parts. The sum of two is a plain int.
    """

    def __new__(cls, entries: int = 0, *, vectors: int = 0, index_entries: int = 0, scopes: int = 0) -> Self:  # noqa: D102
        erasure = super().__new__(cls, entries)
        erasure._others = (vectors, index_entries, scopes)
        return erasure

    _others: tuple[int, int, int]

    @classmethod
    def of(cls, parts: Iterable[Erasure]) -> Self:
        """Return what several deletes removed together."""
        sums = [0, 0, 0, 0]
        for part in parts:
            sums = [total + more for total, more in zip(sums, part.parts().values(), strict=True)]
        return cls(sums[0], vectors=sums[1], index_entries=sums[2], scopes=sums[3])

    @property
    def entries(self) -> int:
        """How many entries."""
        return int(self)

    @property
    def vectors(self) -> int:
        """How many vectors of them, of all models."""
        return self._others[0]

    @property
    def index_entries(self) -> int:
        """How many of them were in the keyword index; an entry without a word is not."""
        return self._others[1]

    @property
    def scopes(self) -> int:
        """How many scopes, each with the ids of an app, a user and a project or none; only of what goes as a whole."""
        return self._others[2]

    def parts(self) -> dict[str, int]:
        """Return all numbers by their names: ``entries``, ``vectors``, ``index_entries``, ``scopes``."""
        vectors, index_entries, scopes = self._others
        return {"entries": int(self), "vectors": vectors, "index_entries": index_entries, "scopes": scopes}

    def __repr__(self) -> str:
        return f"Erasure({', '.join(f'{name}={number}' for name, number in self.parts().items())})"

    __str__ = int.__repr__

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]:
        entries, *others = self.parts().items()
        return (entries[1],), dict(others)


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """What `MemoryService.scrub` came to.

    Attributes:
        left: what it could not remove, and why, in words; empty where all is gone. It holds nothing that was stored.
    """

    left: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is left of what was erased."""
        return not self.left


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """What `MemoryService.erase_user` did, and what it found when it looked for what is left.

    Attributes:
        erased: what the delete removed.
        scrub: what removing its traces came to.
        found: how many remainders there are in each place that was looked at, by its name; all 0 where nothing is left.
    """

    erased: Erasure
    scrub: ScrubReport
    found: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def complete(self) -> bool:
        """Whether nothing of the user was found any more."""
        return not any(self.found.values())
