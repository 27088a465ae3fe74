"""Tables of side-by-side results: rates, waits, costs; and ratios with their spread over runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.contestants import KUBE, NULL, PODIUM
from tests.benchmarks.stats import spread
from tests.benchmarks.tables import NOTHING, markdown
from tests.benchmarks.workloads import BY_KEY

Result = dict[str, Any]
Group = tuple[str, int, int, int]

RATE_HEADER = (
    "workload|nodes|pods|scheduler|runs|pods/s|least … most|sampled pods/s|pods/s until at rest|start to first bind s"
    "|wait p50 ms|wait p99 ms"
)
COST_HEADER = (
    "workload|nodes|scheduler|CPU ms/pod: scheduler|API server|etcd|until at rest: scheduler|API server|etcd|peak RSS MB"
    "|requests/pod|bind request p50 ms|p99 ms|events|dropped|cores busy elsewhere"
)
RATIO_HEADER = (
    "workload|nodes|pods|compared by|Podium / kube-scheduler|least … most|Podium / null|least … most|kube-scheduler / null"
    "|CPU of all three processes: kube-scheduler / Podium"
)
JUDGED = {"rate": "pods/s", "wait": "median wait", "start": "start to first bind"}
WAITS = (
    "A wait is counted from the creation of the pod where pods arrive while the scheduler runs (W1a, W8a, W8q), from the "
    "moment its port becomes free in W12, else from the start of the scheduler's process, because the pods were there "
    'before. "Sampled" are scheduler_perf\'s one-second samples. "At rest" is when the scheduler has posted its last '
    "event. A ratio above 1 says that the first is so many times as fast."
)


def valid(results: Sequence[Result]) -> list[Result]:
    """Return the results of valid runs."""
    return [r for r in results if "problem" not in r]


def groups(results: Sequence[Result]) -> dict[Group, list[Result]]:
    """Return the valid results by workload and size, in the order of the workloads."""
    order = list(BY_KEY)
    found: dict[Group, list[Result]] = {}
    # The row with default client limits has fewer pods, yet belongs to its workload.
    sizes = {
        (r["workload"], r["nodes"], r["init"], r["pods"]) for r in valid(results) if r["contestant"] in (KUBE, PODIUM)
    }
    for size in sorted(sizes, key=lambda s: (order.index(s[0]), s[1:])):
        found[size] = [r for r in valid(results) if (r["workload"], r["nodes"], r["init"], r["pods"]) == size]
    rest = [r for r in valid(results) if not any(r in mine for mine in found.values())]
    for r in rest:
        home = next((s for s in found if s[:3] == (r["workload"], r["nodes"], r["init"])), None)
        found.setdefault(home or (r["workload"], r["nodes"], r["init"], r["pods"]), []).append(r)
    return found


def report(results: Sequence[Result]) -> str:
    """Return everything as Markdown: ratios first, then rates, costs, and what was invalid."""
    parts = (
        [ratio_table(results), WAITS, rate_table(results), cost_table(results)] if valid(results) else ["no valid run"]
    )
    return "\n\n".join([*parts, *invalid(results)])


def invalid(results: Sequence[Result]) -> list[str]:
    """Return one sentence for each invalid run."""
    return [
        f"INVALID: {r['workload']} {r['contestant']} run {r['run']}: {r['problem']}" for r in results if "problem" in r
    ]


def ratio_table(results: Sequence[Result]) -> str:
    """Return the ratios between contestants, with least and most over the runs."""
    rows = []
    for (key, nodes, _, pods), mine in groups(results).items():
        cells: list[Any] = [f"{key} {mine[0]['title']}", nodes, pods, JUDGED[BY_KEY[key].judged_by]]
        for over, under in ((PODIUM, KUBE), (PODIUM, NULL)):
            found = spread(ratios(mine, over, under))
            cells += [None, NOTHING] if found is None else [round(found[0], 2), f"{found[1]:.2f} … {found[2]:.2f}"]
        kube = spread(ratios(mine, KUBE, NULL))
        rows.append([*cells, None if kube is None else round(kube[0], 2), cpu_ratio(mine)])
    return markdown(RATIO_HEADER.split("|"), rows)


def rate_table(results: Sequence[Result]) -> str:
    """Return how fast each contestant was on each workload: medians over the runs."""
    return markdown(RATE_HEADER.split("|"), _rows(results, _rate_cells))


def cost_table(results: Sequence[Result]) -> str:
    """Return what each contestant cost on each workload: medians over the runs."""
    return markdown(COST_HEADER.split("|"), _rows(results, _cost_cells))


def _rows(results: Sequence[Result], cells: Callable[[str, list[Result]], list[Any]]) -> list[list[Any]]:
    rows = []
    for mine in groups(results).values():
        for name in dict.fromkeys(r["contestant"] for r in mine):
            rows.append(cells(name, [r for r in mine if r["contestant"] == name]))
    return rows


def _rate_cells(name: str, mine: list[Result]) -> list[Any]:
    rates = spread([r["pods_per_s"] for r in mine])
    assert rates is not None
    first = mine[0]
    return [
        f"{first['workload']} {first['title']}", first["nodes"], first["pods"], name, len(mine),
        rates[0], f"{rates[1]:,.0f} … {rates[2]:,.0f}",
        *(median(mine, key) for key in ("pods_per_s_sampled", "pods_per_s_until_rest", "start_to_first_bind_s")),
        *(wait_ms(mine, p) for p in (50, 99)),
    ]  # fmt: skip


def _cost_cells(name: str, mine: list[Result]) -> list[Any]:
    first = mine[0]
    cpu = [cpu_ms(mine, which, part) for which in ("cpu_ms_per_pod", "cpu_ms_per_pod_settled") for part in PARTS]
    keys = ("peak_rss_mb", "requests_per_pod", "bind_request_ms_p50", "bind_request_ms_p99")
    keys += ("events_posted", "events_dropped", "others_cores")
    return [f"{first['workload']} {first['title']}", first["nodes"], name, *cpu, *(median(mine, key) for key in keys)]


PARTS = ("scheduler", "apiserver", "etcd")


def median(results: Sequence[Result], key: str) -> float | None:
    """Return the median of a figure over the runs in which it is known."""
    return _median([r[key] for r in results])


def wait_ms(results: Sequence[Result], per_cent: float) -> float | None:
    """Return a percentile of the waits, the median over the runs."""
    return _median([r["wait_ms"][str(per_cent)] for r in results])


def cpu_ms(results: Sequence[Result], which: str, part: str) -> float | None:
    """Return the CPU milliseconds a pod of a process, the median over the runs."""
    return _median([(r[which] or {}).get(part) for r in results])


def ratios(results: Sequence[Result], over: str, under: str) -> list[float]:
    """Return how many times as fast one contestant was as another, run by run within one invocation."""
    speeds: dict[tuple[str, int, int], float] = {}
    for r in results:
        speeds[r["contestant"], r.get("session", 0), r["run"]] = _speed(r)
    runs = sorted({(r.get("session", 0), r["run"]) for r in results})
    return [speeds[over, *n] / speeds[under, *n] for n in runs if speeds.get((over, *n)) and speeds.get((under, *n))]


def cpu_ratio(results: Sequence[Result]) -> float | None:
    """Return how many times the CPU time a pod (scheduler, API server and etcd) kube-scheduler takes; noise-proof."""
    spent = {name: _median([_all_cpu_ms(r) for r in results if r["contestant"] == name]) for name in (KUBE, PODIUM)}
    kube, ours = spent[KUBE], spent[PODIUM]
    return round(kube / ours, 2) if kube and ours else None


def _speed(result: Result) -> float:
    judged_by = BY_KEY[result["workload"]].judged_by
    if judged_by == "rate":
        return float(result["pods_per_s"])
    time = result["wait_ms"]["50"] if judged_by == "wait" else result["start_to_first_bind_s"]
    return 1 / time if time else 0.0


def _all_cpu_ms(result: Result) -> float | None:
    spent = result["cpu_ms_per_pod_settled"]
    return sum(spent.values()) if spent else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
