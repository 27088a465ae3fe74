"""The table of rights is what the manifests grant, and what the documentation says."""

import pytest
import yaml

from scheduler.app.kinds import is_optional
from scheduler.app.rights import LIVE_PROFILE_RIGHTS, RIGHTS, Where
from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.model.kinds import KINDS
from tests.controlplane.cluster import REPOSITORY, rbac_documents
from tests.faults.rights import PAGE, Right, deployed, documented


def as_granted(right):
    return Right(right.verbs, right.resource, right.group)


def test_they_are_the_deployed_ones():
    """No more, no fewer, none twice."""
    assert {as_granted(right) for right in RIGHTS} == deployed()
    assert len(RIGHTS) == len(deployed())


def test_the_page_has_the_same_rights():
    assert documented().keys() == {as_granted(right) for right in RIGHTS}


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_the_page_has_the_same_words(right):
    """What it is for and what becomes of it without."""
    assert f"| `{right}` | {right.purpose} | {right.without} |\n" in PAGE.read_text()


def test_where_they_are_granted():
    """In the ClusterRole, in the Role of the lease, or by the role that every cluster has."""
    by_kind = {Where.CLUSTER: set(), Where.ELECTION: set()}
    for document in rbac_documents():
        where = {"ClusterRole": Where.CLUSTER, "Role": Where.ELECTION}.get(document["kind"])
        for rule in document.get("rules", ()):
            by_kind[where] |= {(group, name) for group in rule["apiGroups"] for name in rule["resources"]}
    for where, granted in by_kind.items():
        assert {(right.group, right.resource) for right in RIGHTS if right.where is where} == granted
    assert [str(right) for right in RIGHTS if right.where is Where.AUTHENTICATION] == ["get configmaps"]


def test_nothing_is_decided_without_a_hard_kind_alone():
    plurals = {info.plural: kind for kind, info in KINDS.items()}
    for right in RIGHTS:
        is_hard = right.verbs == ("list", "watch") and not is_optional(plurals[right.resource])
        assert right.without.startswith("not ready, nothing is decided") == is_hard, str(right)


def test_plugins_that_alone_need_a_right_exist():
    assert {right.plugin for right in RIGHTS} - {""} <= KNOWN_POINTS.keys()


def test_live_profiles_need_what_their_component_grants():
    """The patches of deploy/components/live-profiles."""
    file = REPOSITORY / "deploy" / "components" / "live-profiles" / "kustomization.yaml"
    patches = [
        patch["value"]
        for entry in yaml.safe_load(file.read_text())["patches"]
        if entry["target"]["kind"] == "ClusterRole"
        for patch in yaml.safe_load(entry["patch"])
    ]
    granted = {
        Right(tuple(rule["verbs"]), resource, group)
        for rule in patches
        for resource in rule["resources"]
        for group in rule["apiGroups"]
    }
    assert {as_granted(right) for right in LIVE_PROFILE_RIGHTS} == granted
