"""ImageLocality: facts of upstream's image_locality_test.go."""

import pytest

from scheduler.plugins.image_locality import NAME, normalized_image_name
from scheduler.testing import node, pod

MIB = 1024 * 1024


def having(name, *sizes):
    """A node that has the images ``gcr.io/<size in MiB>``."""
    made = node(name)
    for size in sizes:
        made = made.image(f"gcr.io/{size}:latest", f"gcr.io/{size}:v1", size_bytes=size * MIB)
    return made


def running(*sizes):
    first, *others = sizes
    made = pod("p").image(f"gcr.io/{first}")
    for size in others:
        made = made.container(image=f"gcr.io/{size}")
    return made


@pytest.mark.parametrize(
    ("waiting", "nodes", "scores"),
    [
        pytest.param(running(40, 250), [(40, 300, 2000), (250, 10)], [0, 5], id="the larger image wins"),
        pytest.param(running(40, 300), [(40, 300, 2000), (250, 10)], [7, 0], id="two images on one node"),
        pytest.param(running(10, 4000), [(4000, 30), (250, 10)], [100, 0], id="sums are limited"),
        pytest.param(running(10, 4000), [(4000, 30), (250, 10), ()], [66, 0, 0], id="rare images count less"),
        pytest.param(
            running(300, 600, 900), [(600, 40, 900), (300, 600, 900), ()], [32, 36, 0], id="several large images"
        ),
        pytest.param(running(30, 40), [(20, 30, 40), (4000, 30)], [1, 0], id="several small images"),
        pytest.param(
            running(30).volume("v", image={"reference": "gcr.io/300"}),
            [(300, 600, 900), (4000, 30)],
            [12, 0],
            id="image volumes count",
        ),
        pytest.param(
            running(30).init_container(image="gcr.io/300"),
            [(40, 300, 2000), (20, 30, 40)],
            [6, 0],
            id="init containers count",
        ),
        pytest.param(running(77), [(40,), ()], [0, 0], id="nobody has the image"),
        pytest.param(running(900, 900), [(900,), ()], [44, 0], id="an image that is used twice counts twice"),
    ],
)
def test_score(bench, waiting, nodes, scores):
    """Sizes of the images that the node has, each by the share of nodes that have it."""
    bench.cluster([having(f"n{i}", *sizes) for i, sizes in enumerate(nodes)])
    assert bench.scores(bench.make(NAME), waiting.obj()) == scores


@pytest.mark.parametrize(
    ("size_mib", "score"),
    [
        pytest.param(0, 0, id="no image"),
        pytest.param(22, 0, id="a small image volume"),
        pytest.param(300, 100, id="a large image volume is over the limit, which is 0"),
    ],
)
def test_pod_without_containers(bench, size_mib, score):
    """The API server refuses such pods; the arithmetic is upstream's all the same and nothing is divided by zero."""
    bench.cluster([node("n").image("gcr.io/v:latest", size_bytes=size_mib * MIB)])
    waiting = pod("p").set("spec.containers", []).volume("v", image={"reference": "gcr.io/v"})
    assert bench.scores(bench.make(NAME), waiting.obj()) == [score]


@pytest.mark.parametrize("size_bytes", [pytest.param(2**63 - 1, id="largest"), pytest.param(-(2**63), id="smallest")])
def test_absurd_sizes_stay_in_range(bench, size_bytes):
    """What a broken node reports neither overflows nor parts the two forms."""
    bench.cluster([node("n").image("gcr.io/x:latest", size_bytes=size_bytes), node("m")])
    waiting = pod("p").image("gcr.io/x").container(image="gcr.io/x").container(image="gcr.io/x")
    scores = bench.scores(bench.make(NAME), waiting.obj())
    assert scores == ([100, 0] if size_bytes > 0 else [0, 0])


@pytest.mark.parametrize(
    ("given", "normalized"),
    [
        pytest.param("root", "root:latest", id="a bare name"),
        pytest.param("root:tag", "root:tag", id="a tag"),
        pytest.param("gcr.io:5000/root", "gcr.io:5000/root:latest", id="a port is no tag"),
        pytest.param("root@" + "a" * 8, "root@" + "a" * 8 + ":latest", id="a digest without colon"),
        pytest.param("", ":latest", id="no name"),
    ],
)
def test_normalized_image_name(given, normalized):
    """Nodes report names with tags."""
    assert normalized_image_name(given) == normalized


def test_events(bench):
    """Scores reject nobody."""
    assert not bench.make(NAME).events()
