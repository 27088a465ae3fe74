"""NodeTree: in which order the nodes are offered to pods (spec §1.9).

Nodes are grouped by zone, zones in order of first appearance, and listed in turn: the first node of every zone, then
the second of every zone, and so on. A cycle that looks at the first hundred nodes only has so seen all zones.

Invariant: ``version`` grows exactly when a name appears or disappears, which is when an order that was read before
must be read again. A node that only changes its zone moves within the tree but leaves the version alone.
"""

from __future__ import annotations

from itertools import zip_longest

from scheduler.model.meta import NodeName

__all__ = ["NodeTree"]


class NodeTree:
    """Names of the nodes by zone; every change is O(1), listing is O(nodes).

    Attributes:
        version: changes with the set of names.
    """

    __slots__ = ("_zone_of", "_zones", "version")

    def __init__(self) -> None:
        # Dictionaries serve as ordered sets: removing a name must not scan a zone of thousands.
        self._zones: dict[str, dict[NodeName, None]] = {}
        self._zone_of: dict[NodeName, str] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._zone_of)

    def put(self, name: NodeName, zone_key: str) -> None:
        """Add the node, or move it to the end of ``zone_key`` if it stands in another zone."""
        known = self._zone_of.get(name)
        if known == zone_key:
            return
        if known is None:
            self.version += 1
        else:
            # parity: upstream's snapshot does not re-read the order when only a zone changed.
            self._leave(name, known)
        self._zones.setdefault(zone_key, {})[name] = None
        self._zone_of[name] = zone_key

    def remove(self, name: NodeName) -> bool:
        """Take the node out; say whether it was there."""
        zone_key = self._zone_of.pop(name, None)
        if zone_key is None:
            return False
        self._leave(name, zone_key)
        self.version += 1
        return True

    def names(self) -> list[NodeName]:
        """Return all names, zones interleaved."""
        if len(self._zones) == 1:
            return list(*self._zones.values())
        return [name for rank in zip_longest(*self._zones.values()) for name in rank if name is not None]

    def _leave(self, name: NodeName, zone_key: str) -> None:
        zone = self._zones[zone_key]
        del zone[name]
        if not zone:
            del self._zones[zone_key]  # a zone that comes back stands last
