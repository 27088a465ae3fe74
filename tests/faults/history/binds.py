"""G3: a pod is bound once, and a bind reaches only the pod that it was decided for."""

from __future__ import annotations

from collections import defaultdict

from tests.faults.history.record import History, Request, Violation, is_bind


def double_binds(history: History) -> list[Violation]:
    """G3: at most one successful bind for each UID, by us at most; and every bind of ours names the pod's UID."""
    found = [*_without_uid(history), *_of_unknown_uids(history)]
    done: dict[tuple[int, str], list[Request]] = defaultdict(list)
    for request in history.requests:
        if is_bind(request) and request.is_done and request.binding_uid:
            done[request.epoch, request.binding_uid].append(request)
    for (_, uid), requests in done.items():
        if len(requests) > 1:
            users = ", ".join(f"{r.user} to {r.target}" for r in requests)
            what = f"{requests[0].key} ({uid}) was bound {len(requests)} times: {users}"
            found.append(Violation("G3", what, requests[-1].finished_s))
    return [*found, *_moved(history)]


def _without_uid(history: History) -> list[Violation]:
    """Return binds of ours that would have bound whatever pod has the name now."""
    return [
        Violation("G3", f"{r.user} bound {r.key} without a UID", r.received_s)
        for r in history.binds()
        if r.body is not None and not r.binding_uid
    ]


def _of_unknown_uids(history: History) -> list[Violation]:
    """Return successful binds of ours for a UID that no pod of this name ever had."""
    uids = defaultdict(set)
    for version in history.versions:
        if version.kind == "Pod":
            uids[version.key].add(version.uid)
    return [
        Violation("G3", f"{r.user} bound {r.key} as {r.binding_uid}, which it never was", r.received_s)
        for r in history.binds()
        if r.is_done and r.binding_uid and r.binding_uid not in uids[r.key]
    ]


def _moved(history: History) -> list[Violation]:
    """Return pods that were seen on two nodes."""
    nodes: dict[tuple[int, str], str] = {}
    found = []
    for version in history.ordered():
        name = version.object["spec"].get("nodeName") if version.kind == "Pod" else None
        if name and nodes.setdefault((version.epoch, version.uid), name) != name:
            what = f"{version.key} moved from {nodes[version.epoch, version.uid]} to {name}"
            found.append(Violation("G3", what, version.at_s))
    return found
