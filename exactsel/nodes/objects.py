"""Objects to which rows of a table refer by number: points first, which are packed, then all others as they are.

-1 stands for None. Numbers from -2 down stand for objects that the reader of the table already has (``known``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.bounds.witness import ModelPoint, holds_nothing
from exactsel.nodes.points import MOST_CURVATURES, Points, can_be_packed, different
from exactsel.nodes.sizes import object_bytes
from exactsel.types import IntArray

NOTHING, FIRST_KNOWN = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """Points, and what else nodes refer to; :class:`Numbering` and :meth:`joined` make them."""

    points: Points
    others: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.points) + len(self.others)

    def only(self, numbers: IntArray) -> Objects:
        """Those of these numbers (ascending) alone."""
        if numbers.size == len(self):
            return self
        is_point = numbers < len(self.points)
        others = tuple(self.others[number] for number in (numbers[~is_point] - len(self.points)).tolist())
        return Objects(self.points.only(numbers[is_point]), others)

    @classmethod
    def joined(cls, parts: Sequence[Objects]) -> tuple[Objects, list[IntArray]]:
        """All of some, and for each part the numbers that its objects have now."""
        if not cls.can_be_joined(parts):
            parts = [part.unpacked() for part in parts]
        others, places = list[Any](), dict[Any, int]()
        at, total, numbers = 0, sum(len(part.points) for part in parts), []
        for part in parts:
            mine = [*range(at, at + len(part.points))]
            at += len(part.points)
            for obj in part.others:
                key = _key(obj)
                if key not in places:
                    places[key] = total + len(others)
                    others.append(obj)
                mine.append(places[key])
            numbers.append(np.array(mine, dtype=np.int64))
        return cls(Points.joined([part.points for part in parts]), tuple(others)), numbers

    @staticmethod
    def can_be_joined(parts: Sequence[Objects]) -> bool:
        """Whether their points can be packed together."""
        curvatures = {id(curvature): curvature for part in parts for curvature in part.points.curvatures}
        return len(different(curvatures.values())) <= MOST_CURVATURES

    def unpacked(self) -> Objects:
        """The same by the same numbers, no point being packed."""
        points = (self.points.point(number) for number in range(len(self.points)))
        return Objects(Points.of(()), (*points, *self.others))

    @property
    def nbytes(self) -> int:
        """Memory they take."""
        return self.points.nbytes + sum(map(object_bytes, self.others))


class Numbering:
    """Numbers for objects that are to be kept together."""

    def __init__(self, objects: Iterable[Any], known_objects: Sequence[Any] = ()) -> None:
        self._known = {
            id(obj): FIRST_KNOWN - at for at, obj in reversed([*enumerate(known_objects)]) if obj is not None
        }
        points, others = dict[Any, ModelPoint](), dict[Any, Any]()
        for obj in objects:
            if obj is not None and id(obj) not in self._known:
                (points if isinstance(obj, ModelPoint) else others).setdefault(_key(obj), obj)
        if not can_be_packed(tuple(points.values())):
            points, others = {}, {**points, **others}
        self._numbers = {key: number for number, key in enumerate((*points, *others))}
        self.objects = Objects(Points.of(tuple(points.values())), tuple(others.values()))

    def of(self, objects: Iterable[Any]) -> list[int]:
        """The numbers of some objects."""
        return [self._number(obj) for obj in objects]

    def _number(self, obj: object) -> int:
        if obj is None:
            return NOTHING
        number = self._known.get(id(obj))
        return self._numbers[_key(obj)] if number is None else number


class MadeObjects:
    """Objects by their numbers, each made once."""

    __slots__ = ("_known", "_made", "_objects")

    def __init__(self, objects: Objects, known_objects: Sequence[Any] = ()) -> None:
        self._objects, self._known = objects, known_objects
        self._made: dict[int, ModelPoint] = {}

    def __len__(self) -> int:
        """How many have been made."""
        return len(self._made)

    def __getitem__(self, number: int) -> Any:
        if number < 0:
            return None if number == NOTHING else self._known[FIRST_KNOWN - number]
        points = self._objects.points
        if number >= len(points):
            return self._objects.others[number - len(points)]
        point = self._made.get(number)
        if point is None:
            point = self._made[number] = points.point(number)
        return point

    def forget(self, number: int) -> None:
        """Release a point that no row refers to any more."""
        self._made.pop(number, None)


def _key(obj: object) -> type | int:
    """The key that distinguishes an object from others."""
    return type(obj) if holds_nothing(obj) else id(obj)
