"""From objects to verdicts and a plan: pure functions, no memory but what serves."""

import pytest

from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import load
from scheduler.controllers.objects import MAX_OBJECTS, ObjectMeta, SchedulerProfile, decode_list
from scheduler.controllers.reconcile import Serving, judge, plan
from scheduler.framework.profile import Resolved
from scheduler.kube.errors import ProtocolError

CONFIGURATION = load(
    b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: podium}]\n"
)
RESOLVED = Resolved({}, {})


def obj(name, scheduler_name=None, *, generation=1, created=1, **spec):
    meta = ObjectMeta(name, f"uid-{name}", generation, f"2026-01-01T00:00:{created:02}Z")
    return SchedulerProfile(meta, {"schedulerName": scheduler_name or name, **spec})


def verdicts(*objects):
    return judge(objects, CONFIGURATION, DEFAULT_GATES)


def served(*objects):
    """What serves when exactly these objects have been taken over."""
    return {
        v.profile.scheduler_name: Serving(v.obj.metadata.uid, v.obj.metadata.generation, v.profile, RESOLVED)
        for v in verdicts(*objects)
    }


BAD = {"percentageOfNodesToScore": 300}


def test_a_new_object_is_put_and_a_gone_one_removed():
    planned = plan(verdicts(obj("new")), served(obj("old")))
    assert [v.obj.name for v in planned.puts] == ["new"]
    assert planned.removes == ("old",)


def test_an_object_that_means_the_same_is_left_alone():
    """A generation more, but nothing that decides is another."""
    planned = plan(verdicts(obj("a", generation=2, plugins={"score": {}})), served(obj("a")))
    assert (planned.puts, planned.removes) == ((), ())
    assert planned.same["a"].obj.metadata.generation == 2


def test_a_changed_object_is_put():
    planned = plan(verdicts(obj("a", percentageOfNodesToScore=5)), served(obj("a")))
    assert [v.profile.percentage_of_nodes_to_score for v in planned.puts] == [5]
    assert planned.removes == ()


def test_a_refused_change_leaves_the_last_good_version_in_place():
    planned = plan(verdicts(obj("a", generation=2, **BAD)), served(obj("a")))
    assert (planned.puts, planned.removes, planned.same) == ((), (), {})


def test_a_refused_object_that_is_deleted_takes_its_last_good_version_with_it():
    assert plan(verdicts(obj("b", **BAD)), served(obj("a"))).removes == ("a",)


def test_a_renamed_profile_is_put_before_the_old_name_goes():
    """The schema forbids it; an object from before the schema may do it all the same."""
    planned = plan(verdicts(obj("a", "second", generation=2)), served(obj("a", "first")))
    assert [v.profile.scheduler_name for v in planned.puts] == ["second"]
    assert planned.removes == ("first",)
    refused = plan(verdicts(obj("a", "podium", generation=2)), served(obj("a", "first")))
    assert (refused.puts, refused.removes) == ((), ())


def test_a_name_passes_on_when_its_owner_is_gone():
    """The younger object was refused; it takes the name over in one step."""
    older, younger = obj("older", "x", created=1), obj("younger", "x", created=2, percentageOfNodesToScore=7)
    first, second = verdicts(older, younger)
    assert first.problems == ()
    assert second.problems == (
        'spec.schedulerName: Duplicate value: "x": it belongs to SchedulerProfile "older", which is older',
    )
    planned = plan(verdicts(younger), served(older))
    assert ([v.obj.name for v in planned.puts], planned.removes) == (["younger"], ())


def test_an_object_that_is_refused_keeps_its_name_all_the_same():
    """Else who serves would depend on who came to read first."""
    first, second = verdicts(obj("older", "x", **BAD), obj("younger", "x"))
    assert first.profile is None
    assert second.problems == (
        'spec.schedulerName: Duplicate value: "x": it belongs to SchedulerProfile "older", which is older',
    )


def test_all_reasons_are_given_at_once():
    spec = {
        "percentageOfNodesToScore": 101,
        "plugins": {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Other"}]}, "foo": {}},
    }
    (verdict,) = verdicts(obj("a", "podium", **spec))
    assert verdict.problems == (
        'spec.schedulerName: Duplicate value: "podium": it belongs to a profile of the configuration file',
        'strict decoding error: unknown field "spec.plugins.foo"',
        "spec.percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        (
            'spec.plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Other","Weight":0}],'
            '"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles'
        ),
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (None, "spec.schedulerName: Required value"),
        ({}, "spec.schedulerName: Required value"),
        ({"schedulerName": 1}, "spec.schedulerName: cannot unmarshal number into a field of type string"),
        ([], "spec: cannot unmarshal array into a field of type object"),
        ("x", "spec: cannot unmarshal string into a field of type object"),
    ],
)
def test_nonsense_is_refused(spec, problem):
    (verdict,) = verdicts(SchedulerProfile(ObjectMeta("a", "u"), spec))
    assert (verdict.profile, verdict.problems) == (None, (problem,))


def test_there_is_a_limit():
    """The oldest count."""
    found = verdicts(*(obj(f"p{i:03}") for i in range(MAX_OBJECTS + 1)))
    assert [v.obj.name for v in found if v.profile is None] == ["p100"]
    assert found[-1].problems == ("there are more than 100 SchedulerProfile objects; the oldest 100 count",)


def test_a_list_is_read_oldest_first():
    body = b"""{"kind": "SchedulerProfileList", "items": [
        {"metadata": {"name": "c", "uid": "3", "creationTimestamp": "2026-01-01T00:00:02Z", "generation": 4}, "spec": {}},
        {"metadata": {"name": "b", "uid": "2", "creationTimestamp": "2026-01-01T00:00:01Z"}},
        {"metadata": {"name": "a", "uid": "1", "creationTimestamp": "2026-01-01T00:00:02Z"}, "status": {"x": 1}}]}"""
    found = decode_list(body)
    assert [(o.name, o.metadata.generation) for o in found] == [("b", 1), ("a", 1), ("c", 4)]
    assert found[1].known_status == {"x": 1}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items": [{}]}', b"<html>", b'{"items":' + b"[" * 100_000])
def test_what_is_no_list_is_an_error(body):
    with pytest.raises(ProtocolError, match="list of schedulerprofiles"):
        decode_list(body)
