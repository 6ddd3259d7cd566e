"""Which members of a cluster cannot reach one another. Clients reach all of them."""

from collections.abc import Sequence

from ..errors import WrongValueError
from ..requests.values import check_choice, check_names


class Partition:
    """Pairs of members that are cut off from each other. Several partitions add up until `heal`."""

    def __init__(self) -> None:
        self._pairs: set[frozenset[str]] = set()

    def cut(self, one_side: Sequence[str], other_side: Sequence[str], members: Sequence[str]) -> None:
        """Add a partition. Raises `WrongValueError` for a name that no member has, or one on both sides."""
        sides = [
            [check_choice("a member", name, members) for name in check_names(word, side)]
            for word, side in (("one_side", one_side), ("other_side", other_side))
        ]
        for name in sides[0]:
            if name in sides[1]:
                raise WrongValueError(f"{name} must be on one side of a partition only", list(members))
        self._pairs |= {frozenset((one, other)) for one in sides[0] for other in sides[1]}

    def heal(self) -> None:
        self._pairs.clear()

    def separates(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self._pairs
