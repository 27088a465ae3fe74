"""Image states: first reporter's size, number of nodes."""

from scheduler.state.cache.images import ImageStates
from scheduler.testing.builders import node


def reporting(name, **sizes):
    made = node(name)
    for image, size in sizes.items():
        made = made.image(image, size_bytes=size)
    return made.obj()


def states(images, *names):
    return {name: (s.size_bytes, s.num_nodes) if (s := images.get(name)) else None for name in names}


def test_first_reporter_decides_the_size():
    """Later nodes only add to the count."""
    images = ImageStates()

    images.replace("n1", None, reporting("n1", app=10))
    images.replace("n2", None, reporting("n2", app=99))

    assert states(images, "app") == {"app": (10, 2)}


def test_size_stays_when_the_first_reporter_leaves():
    """The size is kept until no node has the image."""
    images = ImageStates()
    n1, n2 = reporting("n1", app=10), reporting("n2", app=99)
    images.replace("n1", None, n1)
    images.replace("n2", None, n2)

    images.replace("n1", n1, None)
    assert states(images, "app") == {"app": (10, 1)}

    images.replace("n2", n2, None)
    assert states(images, "app") == {"app": None}
    assert len(images) == 0

    images.replace("n2", None, n2)
    assert states(images, "app") == {"app": (99, 1)}


def test_update_touches_what_changed_only():
    """Images that stay keep their entry and generation."""
    images = ImageStates()
    old, new = reporting("n1", app=10, db=5), reporting("n1", app=10, web=3)
    images.replace("n1", None, old)
    app, generation = images.get("app"), images.get("app").generation

    images.replace("n1", old, new)

    assert states(images, "app", "db", "web") == {"app": (10, 1), "db": None, "web": (3, 1)}
    assert app is images.get("app")
    assert generation == images.get("app").generation


def test_sole_reporter_may_correct_the_size():
    """As upstream, which takes the node's images out and puts them in again."""
    images = ImageStates()
    old, new = reporting("n1", app=10), reporting("n1", app=12)
    images.replace("n1", None, old)

    images.replace("n1", old, new)

    assert states(images, "app") == {"app": (12, 1)}


def test_one_of_several_reporters_may_not():
    """The size of a shared image stays."""
    images = ImageStates()
    old, new = reporting("n1", app=10), reporting("n1", app=12)
    images.replace("n1", None, old)
    images.replace("n2", None, reporting("n2", app=10))

    images.replace("n1", old, new)

    assert states(images, "app") == {"app": (10, 2)}


def test_name_listed_twice_counts_once_with_its_first_size():
    """A node is one holder."""
    images = ImageStates()

    images.replace("n1", None, node("n1").image("app", size_bytes=10).image("app", size_bytes=20).obj())

    assert states(images, "app") == {"app": (10, 1)}


def test_heartbeat_changes_no_generation():
    """Equal image lists are no change."""
    images = ImageStates()
    images.replace("n1", None, reporting("n1", app=10))
    generation = images.generation

    images.replace("n1", reporting("n1", app=10), reporting("n1", app=10))

    assert generation == images.generation


def test_images_of_a_node_are_the_shared_entries():
    """What one node sees is what all see."""
    images = ImageStates()
    n1 = node("n1").image("app", "app@sha256:1", size_bytes=10).obj()
    images.replace("n1", None, n1)

    of_node = images.of_node(n1)
    images.replace("n2", None, reporting("n2", app=10))

    assert {name: state.num_nodes for name, state in of_node.items()} == {"app": 2, "app@sha256:1": 1}
