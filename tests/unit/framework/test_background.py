"""What plugins have done beside the cycle: begun with the profile, ended with it, faults caught."""

import pytest

from scheduler.framework.background import Refreshes


class Background:
    """Keeps what it shall call."""

    def __init__(self):
        self.tasks = []

    def __call__(self, name, function, every_s):
        task = (name, function, every_s)
        self.tasks.append(task)
        return lambda: self.tasks.remove(task)


@pytest.fixture
def background():
    return Background()


@pytest.fixture
def refreshes(background, metrics):
    return Refreshes("Carbon", background, metrics)


def test_work_begins_with_the_profile_and_ends_with_it(refreshes, background):
    """A plugin asks while it is made; what it asks for later begins at once."""
    refreshes.add(lambda: None, 60)
    assert background.tasks == []
    refreshes.start()
    refreshes.add(lambda: None, 5)
    assert [(name, every_s) for name, _, every_s in background.tasks] == [("Carbon", 60), ("Carbon", 5)]
    refreshes.close()
    assert background.tasks == []


def test_what_a_call_raises_is_counted_and_goes_no_further(refreshes, background, metrics):
    """The next call comes when it is due."""

    def broken():
        raise OSError("no route to host")

    refreshes.add(broken, 60)
    refreshes.start()
    background.tasks[0][1]()
    assert metrics.faults == [("Carbon", "Background", "exception")]


@pytest.mark.parametrize("every_s", [0, -1, 0.05, float("nan")])
def test_periods_that_would_spin_are_refused(refreshes, every_s):
    with pytest.raises(ValueError, match="too short"):
        refreshes.add(lambda: None, every_s)
