"""Whole objects beside the typed values."""

import json

from scheduler.kube.originals import Originals
from scheduler.model.decode import decode_list, decode_watch_line
from scheduler.model.node import Node
from scheduler.model.pod import Pod

WEB = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "managedFields": [{"manager": "kubectl"}]},
    "spec": {"containers": [{"name": "c", "image": "i", "args": ["--x"]}], "dnsPolicy": "Default"},
}
BROKEN = {"metadata": {"namespace": "shop"}}


def whole(kind="Pod"):
    trimmed = {**WEB["metadata"]}
    del trimmed["managedFields"]
    return {"apiVersion": "v1", "kind": kind, "metadata": trimmed, "spec": WEB["spec"]}


def test_list():
    """Items of a list bear no kind of their own; broken ones are passed over."""
    body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [BROKEN, WEB]}).encode()
    page = decode_list(Pod, body)
    Originals(Pod, lambda pod: True).of_page(page.items, body)
    assert json.loads(page.items[1].original) == whole()


def test_watch_line():
    """Fields that scheduling does not read are there, managedFields are not."""
    line = json.dumps({"type": "ADDED", "object": {"kind": "Pod", "apiVersion": "v1", **WEB}}).encode()
    decoded = decode_watch_line(Pod, line)
    Originals(Pod, lambda pod: pod.namespace == "shop").of_line(decoded.obj, line)
    assert json.loads(decoded.obj.original) == whole()
    assert decoded.obj.on_node("n1").original is not None, "the assumed pod is shown too"


def test_only_what_is_wanted():
    """Memory is spent on objects that somebody will see."""
    line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "n1"}}}).encode()
    decoded = decode_watch_line(Node, line)
    originals = Originals(Node, lambda node: False)
    originals.of_line(decoded.obj, line)
    originals.of_line(None, b'{"type":"BOOKMARK"}')
    assert decoded.obj.original is None
