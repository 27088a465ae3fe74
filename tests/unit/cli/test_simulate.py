"""`podium simulate`: what cannot be understood is said in a line that names where it stands, never by a traceback."""

import json

import pytest

from scheduler.cli.simulate import simulate
from scheduler.testing.cases import answer_case

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
spec:
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels:}
spec: {containers: [{name: web, image: app, resources: {requests: {cpu:, memory: 1Gi}}}]}
status:
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


def run(tmp_path, *documents):
    (tmp_path / "all.yaml").write_text("\n---\n".join(documents))
    return simulate(["-f", str(tmp_path)])


def test_manifests_of_other_kinds_and_nulls(tmp_path, capsys):
    """A directory holds more than pods and nodes, and whoever leaves a field empty leaves it out."""
    assert run(tmp_path, CONFIG_MAP, NODE, POD) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["default/web", "n1"]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param("just a text", "all.yaml#1: not a Kubernetes object", id="text"),
        pytest.param("kind: [Pod]", "all.yaml#1: not a Kubernetes object", id="kind that is a list"),
        pytest.param("kind: Pod\nmetadata: {name: a}\nspec: 5", "all.yaml#1: Expected `object`, got `int` - at `$.spec`", id="spec that is a number"),
        pytest.param("kind: Pod\nmetadata: 5", "all.yaml#1: Expected `object`, got `int` - at `$.metadata`", id="metadata that is a number"),
        pytest.param("kind: Node\nmetadata: {name: a}\nstatus: []", "all.yaml#1: Expected `object`, got `array` - at `$.status`", id="status that is a list"),
        pytest.param("kind: Deployment\nspec: 5", "all.yaml#1: Deployment cannot be understood: ", id="deployment of a number"),
        pytest.param("kind: Deployment\nspec: {replicas: many}", "all.yaml#1: Deployment cannot be understood: ", id="replicas that are a text"),
        pytest.param("kind: Deployment\nspec: {template: {metadata: [a]}}", "all.yaml#1: Deployment cannot be understood: ", id="template of a list"),
        pytest.param("kind: List\nitems: [5]", "all.yaml#1.items[0]: not a Kubernetes object", id="list of numbers"),
    ],
)  # fmt: skip
def test_broken_manifests(tmp_path, capsys, document, text):
    """One line on standard error."""
    assert run(tmp_path, document) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"podium simulate: {text}")


@pytest.mark.parametrize(
    ("case", "error"),
    [
        pytest.param({"objects": 5}, "objects: not a list", id="objects"),
        pytest.param({"objects": [5]}, "objects[0]: not an object", id="one object"),
        pytest.param({"objects": [{"kind": "ConfigMap"}]}, "objects[0]: kind 'ConfigMap' is none of those", id="kind"),
        pytest.param({"objects": [{"kind": 7}]}, "objects[0]: kind 7 is none of those", id="kind that is a number"),
        pytest.param({"pods": {"a": 1}}, "pods: not a list", id="pods"),
        pytest.param({"pods": [7]}, "pods[0]: not an object", id="one pod"),
        pytest.param({"pods": [{"metadata": {"name": "a"}, "spec": "x"}]}, "pods[0]: Expected `object`", id="spec"),
        pytest.param({"pods": [{"metadata": []}]}, "pods[0]: Expected `object`", id="metadata"),
        pytest.param({"profile": 7}, "profile: not an object", id="profile"),
        pytest.param({"profile": {"plugins": 5}}, "plugins: not an object", id="plugins"),
        pytest.param({"profile": {"nonsense": 5}}, 'strict decoding error: unknown field "profiles[0].nonsense"', id="field"),
    ],
)  # fmt: skip
def test_broken_cases(case, error):
    """The answer says what is wrong, as for a case that the API server would refuse."""
    answer = answer_case({"id": "x", **case})
    assert answer["results"] == []
    assert answer["error"].startswith(error)


def test_other_cases_are_answered(tmp_path, capsys):
    """A line that is no case is reported, and those behind it are answered."""
    file = tmp_path / "cases.jsonl"
    file.write_text('nonsense\n5\n{"id": "1", "objects": 5}\n{"id": "2"}\n')
    assert simulate(["--cases", str(file)]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1", "2"]
    assert len(err.splitlines()) == 2
