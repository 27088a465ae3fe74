"""``reference/metrics.md``: every metric, from the table of ``scheduler.telemetry``."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.telemetry.catalogue import Entry, catalogue
from scheduler.telemetry.exposition import go_float

_HEAD = """# Metrics

Served over HTTPS on the secure port (10259) to whoever may `get` the path as a nonResourceURL; the chart's
`metricsReader` makes such a role. What begins with `scheduler_`, `rest_client_`, `leader_election_` and `kubernetes_`
has kube-scheduler's names, types, labels and buckets, so dashboards and rules written for it work; a test compares with
a running one. Ours begin with `podium_`.

*STABLE* and *BETA* metrics keep their names and labels as Kubernetes promises; *ALPHA* ones may change. A metric with
labels is absent until it has a value. `--disabled-metrics` leaves metrics out, `--allow-metric-labels` restricts the
values of labels.

*Made from `scheduler/telemetry/families.py` by `make docs-reference`.*
"""
_SECTIONS = {
    "Scheduling": ("scheduler_", "Pods, queues, plugins, under kube-scheduler's names."),
    "Podium's own": ("podium_", "What only Podium shows."),
    "API server and election": (("rest_client_", "leader_election_"), "Requests, and who leads."),
    "Build and metrics": (
        ("kubernetes_build", "kubernetes_feature", "version_info", "registered", "disabled", "hidden", "cardinality"),
        "What runs, and what the flags make of its metrics.",
    ),
    "Process": (("process_", "python_"), "Python's runtime; kube-scheduler shows `go_*` instead."),
}
_PAGES = {
    "/metrics/slis": "Results of the health checks.",
    "/metrics/resources": "One series a pod and resource, of the leader. It grows with the cluster: scrape it seldom.",
}


def metrics_page() -> str:
    """Return the page as Markdown."""
    entries = catalogue()
    parts = [_HEAD]
    for title, (prefixes, text) in _SECTIONS.items():
        found = [entry for entry in entries if entry.path == "/metrics" and entry.name.startswith(prefixes)]
        parts.append(_section(title, text, found))
    parts += [_section(path, text, [e for e in entries if e.path == path]) for path, text in _PAGES.items()]
    return "".join(parts)


def _section(title: str, text: str, entries: Iterable[Entry]) -> str:
    rows = "".join(map(_row, entries))
    return f"\n## {title}\n\n{text}\n\n| metric | type | labels | stability | meaning |\n|---|---|---|---|---|\n{rows}"


def _row(entry: Entry) -> str:
    labels = ", ".join(f"`{label}`" for label in entry.labels)
    text = entry.help.replace("|", "\\|").replace("<", "&lt;").rstrip(".") + "."
    if entry.buckets:
        bounds = [go_float(bound) for bound in entry.buckets]
        text += f" Buckets: {bounds[0]} … {bounds[-1]} ({len(bounds)})."
    return f"| `{entry.name}` | {entry.kind} | {labels} | {entry.stability} | {text} |\n"
