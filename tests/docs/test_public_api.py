"""The SemVer promise: what plugins and their tests rely on is recorded, and goes only on purpose."""

from docs.generate.pages import REFERENCE
from docs.generate.public_api import public_api_page
from scheduler.api import API_VERSION, Plugin
from scheduler.framework import registry

RECORDED = REFERENCE / "public-api.txt"


def lines(text):
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_nothing_went_that_somebody_may_rely_on():
    """`make docs-reference` records a change that is wanted; the head of the file says what else it takes."""
    gone = sorted(lines(RECORDED.read_text()) - lines(public_api_page()))
    assert not gone, "this would break plugins, see the head of docs/reference/public-api.txt:\n" + "\n".join(gone)


def test_nothing_came_unnoticed():
    """What is public by accident is hard to take back."""
    new = sorted(lines(public_api_page()) - lines(RECORDED.read_text()))
    assert not new, "new public names; record them with `make docs-reference`:\n" + "\n".join(new)


def test_the_record_sees_what_matters():
    """Names, signatures, fields of structs inside structs, values of enums."""
    recorded = lines(RECORDED.read_text())
    assert "scheduler.api.Code.SKIP = 5" in recorded
    assert "scheduler.api.NodeView.num_pods -> int" in recorded
    assert "scheduler.api.Toleration.key: str = ''" in recorded
    assert any(line.startswith("scheduler.model.pod.PodSpec.node_selector: ") for line in recorded)
    assert any(line.startswith("scheduler.testing.Harness.schedule(self, pod: 'Pod')") for line in recorded)


def test_plugins_of_another_interface_are_refused():
    """A plugin that says nothing was written for the first version, whatever this one is."""
    assert Plugin.api_version == 1
    assert registry.API_VERSION is API_VERSION
