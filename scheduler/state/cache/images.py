"""Which images lie on which nodes, and how large they are.

The registry is shared: a node's ``images`` are the registry's own entries, so the number of nodes that have an image
is the same wherever it is read.

Invariants: an image without a node has no entry; the size is that of the node that reported the image first and stays
until that image is gone from all nodes, except that a sole holder may correct itself (parity: upstream takes a node's
images out and puts them back at every update).
"""

from __future__ import annotations

from scheduler.model.meta import NodeName
from scheduler.model.node import Node
from scheduler.state.cache.generation import next_generation

__all__ = ["ImageStates", "ImageSummary"]


class ImageSummary:
    """One image name; implements ``scheduler.api.ImageState``.

    Attributes:
        size_bytes: the size that the first node reported.
        nodes: the nodes that have it.
        generation: grows with every change of the two.
    """

    __slots__ = ("generation", "nodes", "size_bytes")

    def __init__(self, size_bytes: int, node: NodeName) -> None:
        self.size_bytes = size_bytes
        self.nodes = {node}
        self.generation = next_generation()

    def __repr__(self) -> str:
        return f"ImageSummary(size_bytes={self.size_bytes}, num_nodes={len(self.nodes)})"

    @property
    def num_nodes(self) -> int:
        """Return how many nodes have the image."""
        # differs: upstream freezes the count into a node's snapshot and refreshes it when that node changes.
        return len(self.nodes)


class ImageStates:
    """All images of the cluster by name.

    Attributes:
        generation: grows with every change of any image; scores that count images are stale when it has.
    """

    __slots__ = ("_states", "generation")

    def __init__(self) -> None:
        self._states: dict[str, ImageSummary] = {}
        self.generation = 0

    def __len__(self) -> int:
        return len(self._states)

    def get(self, name: str) -> ImageSummary | None:
        """Return the image, or None if no node has it."""
        return self._states.get(name)

    def of_node(self, node: Node) -> dict[str, ImageSummary]:
        """Return the node's images by every name they have."""
        return {name: self._states[name] for name in reported_sizes(node) if name in self._states}

    def replace(self, name: NodeName, old: Node | None, new: Node | None) -> None:
        """Account for a node that appeared (``old`` None), changed, or went (``new`` None)."""
        if old is not None and new is not None and old.status.images == new.status.images:
            return  # most node updates are heartbeats
        before = reported_sizes(old)
        after = reported_sizes(new)
        for image in before:
            if image not in after:
                self._drop(image, name)
        for image, size_bytes in after.items():
            self._report(image, name, size_bytes)

    def _report(self, image: str, node: NodeName, size_bytes: int) -> None:
        state = self._states.get(image)
        if state is None:
            state = self._states[image] = ImageSummary(size_bytes, node)
        elif node not in state.nodes:
            state.nodes.add(node)
        elif len(state.nodes) == 1 and state.size_bytes != size_bytes:
            state.size_bytes = size_bytes
        else:
            return
        state.generation = self.generation = next_generation()

    def _drop(self, image: str, node: NodeName) -> None:
        state = self._states.get(image)
        if state is None or node not in state.nodes:
            return
        state.nodes.discard(node)
        if not state.nodes:
            del self._states[image]
        state.generation = self.generation = next_generation()


def reported_sizes(node: Node | None) -> dict[str, int]:
    """Return image name -> size as the node reports it; the first entry of a name counts."""
    sizes: dict[str, int] = {}
    if node is not None:
        for image in node.status.images:
            for name in image.names:
                sizes.setdefault(name, image.size_bytes)
    return sizes
