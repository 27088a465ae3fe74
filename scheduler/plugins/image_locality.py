"""ImageLocality: nodes that already have the pod's images start it sooner (spec §4.10)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler.api import (
    MAX_NODE_SCORE,
    CycleState,
    EventRegistration,
    Handle,
    ImageState,
    IntColumn,
    NodesView,
    NodeView,
    Pod,
    ScorePlugin,
)

__all__ = ["NAME", "ImageLocality", "new", "normalized_image_name"]

NAME = "ImageLocality"

_MIB = 1024 * 1024
# Bounds of the sum of image sizes: most images on public registries are of a size between them.
_MIN_BYTES = 23 * _MIB
_MAX_BYTES_PER_CONTAINER = 1000 * _MIB
# No image is larger (1 PiB); sums of what nodes report stay far from the end of int64, so both forms add up the same.
_MAX_IMAGE_BYTES = 1 << 50


class ImageLocality(ScorePlugin):
    """Scores by the size of the pod's images on the node, each weighted by how many nodes have it.

    The weight keeps a rare big image from drawing all pods to the one node that has it.
    """

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def events(self) -> Sequence[EventRegistration]:
        return ()

    def node_signature(self, pod: Pod) -> Hashable:
        # How many nodes have an image is not of the node; the engine starts anew when that changes for any image.
        return tuple(_images(pod)), len(pod.spec.containers)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        del state
        num_all_nodes = self._handle.nodes().num_all_nodes
        states = (node.images.get(image) for image in _images(pod))
        total = sum(_weighted_bytes(state, num_all_nodes) for state in states if state is not None)
        return _to_score(total, pod)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        del state
        total: IntColumn | None = None
        for image in _images(pod):
            found = nodes.image(image)
            if found is not None:
                rows, image_state = found
                total = np.zeros(len(nodes), np.int64) if total is None else total
                total[rows] += _weighted_bytes(image_state, nodes.num_all_nodes)
        if total is None:
            return np.full(len(nodes), _to_score(0, pod), np.int64)
        highest = _highest_bytes(pod)
        clamped = np.where(total < _MIN_BYTES, _MIN_BYTES, np.minimum(total, highest))
        return MAX_NODE_SCORE * (clamped - _MIN_BYTES) // (highest - _MIN_BYTES)


def _images(pod: Pod) -> Iterator[str]:
    for container in pod.spec.init_containers:
        yield normalized_image_name(container.image)
    for container in pod.spec.containers:
        yield normalized_image_name(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield normalized_image_name(volume.image.reference)


def normalized_image_name(name: str) -> str:
    """Return the name as nodes report it: with ``:latest`` if it has no tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _weighted_bytes(image: ImageState, num_all_nodes: int) -> int:
    # parity: upstream divides first, in floating point, and truncates
    weighted = int(image.size_bytes * (image.num_nodes / num_all_nodes))
    return max(-_MAX_IMAGE_BYTES, min(weighted, _MAX_IMAGE_BYTES))


def _highest_bytes(pod: Pod) -> int:
    return _MAX_BYTES_PER_CONTAINER * (len(pod.spec.init_containers) + len(pod.spec.containers))


def _to_score(total: int, pod: Pod) -> int:
    # parity: the lower bound comes first, so a pod without containers (the API server refuses it) gets 0 or 100
    highest = _highest_bytes(pod)
    clamped = _MIN_BYTES if total < _MIN_BYTES else min(total, highest)
    return MAX_NODE_SCORE * (clamped - _MIN_BYTES) // (highest - _MIN_BYTES)


def new(args: object, handle: Handle) -> ImageLocality:
    """Make the plugin; it has no arguments."""
    del args
    return ImageLocality(handle)
