"""Broken configuration files, as an operator meets them: on the command line."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.faults.bench import FaultBench, fault
from tests.faults.results import at_least, at_most, exactly
from tests.fuzz.regressions import BOMB, DEEP_FLOW, DEEP_JSON, MERGE_BOMB

HEADER = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def args(plugin: str, text: str) -> bytes:
    return HEADER + f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {text}}}]}}]\n".encode()


FILES: dict[bytes, tuple[str, ...]] = {
    b"": ("Object 'Kind' is missing",),
    b"\xff\xfe": ("invalid UTF-8",),
    b"\0": ("yaml:",),
    b"[]": ("does not hold an object",),
    b"a: b: c": ("yaml: line 1",),
    b"- a\nb": ("yaml:",),
    b"*a": ("unknown anchor",),
    b"&a [*a]": ("contains itself",),
    b"a: !!python/object:os.system x": ("tag",),
    b"{a: " + b"x" * (10 << 20): ("more than the 1048576",),
    BOMB: ("excessive aliasing",),
    MERGE_BOMB: ("excessive aliasing",),
    DEEP_FLOW: ("max depth",),
    DEEP_JSON: ("nesting depth",),
    b"apiVersion: v1\nkind: Pod\n": ('no kind "Pod"',),
    b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: [x]\n": ("kind is not a text",),
    b"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n": ("v1beta3",),
    HEADER + b"parallelism: 1\nparallelism: 2\n": ('key "parallelism" already set',),
    HEADER + b"parallelism: 0\n": ("parallelism: Invalid value: 0",),
    HEADER + b"parallelism: " + b"9" * 5_000 + b"\n": ("parallelism",),
    HEADER + b"parallelism: .nan\n": ("unsupported value",),
    HEADER + b"parallelism: many\nnonsense: 1\npodMaxBackoffSeconds: []\n": (
        "parallelism: cannot unmarshal string", 'unknown field "nonsense"', "podMaxBackoffSeconds: cannot unmarshal array",
    ),
    HEADER + b"percentageOfNodesToScore: 101\npodInitialBackoffSeconds: -1\n": (
        "percentageOfNodesToScore: Invalid value: 101", "podInitialBackoffSeconds: Invalid value: -1",
    ),
    HEADER + b"profiles: {}\n": ("profiles: cannot unmarshal object",),
    HEADER + b"profiles: [{schedulerName: a}, {schedulerName: a}]\n": ("profiles[1].schedulerName: Duplicate value",),
    HEADER + b"profiles: [{}, {}]\n": ("profiles[0].schedulerName: Required value",),
    HEADER + b"profiles: [{plugins: {filter: {enabled: [{name: Nobody}]}}}]\n": ('plugin "Nobody"',),
    HEADER + b"profiles: [{plugins: {filter: {enabled: [5]}}}]\n": ("profiles[0].plugins.filter.enabled[0]",),
    HEADER + b"profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: x}]}}}]\n": ("weight",),
    HEADER + b"profiles: [{plugins: {nowhere: {}}}]\n": ("profiles[0].plugins.nowhere",),
    HEADER + b"extenders: [{urlPrefix: x, prioritizeVerb: p, weight: -1}]\n": ("extenders[0].weight",),
    HEADER + b"extenders: [{tlsConfig: {keyData: '!!'}}]\n": ("illegal base64",),
    HEADER + b"leaderElection: {leaseDuration: 1s}\n": ("leaderElection.leaseDuration",),
    HEADER + b"leaderElection: {leaseDuration: soon, retryPeriod: -1s}\n": (
        "leaderElection.leaseDuration", "leaderElection.retryPeriod",
    ),
    HEADER + b"clientConnection: {burst: -1}\n": ("clientConnection.burst",),
    args("NodeResourcesFit", "{foo: 1}"): ('unknown field "foo"',),
    args("NodeResourcesFit", "[1]"): ("pluginConfig[0]",),
    args("NodeResourcesFit", "{scoringStrategy: {type: Foo, resources: [{name: cpu, weight: -1}]}}"): (
        "scoringStrategy.type", "scoringStrategy.resources[0].weight",
    ),
    args("InterPodAffinity", "{hardPodAffinityWeight: -1}"): ("hardPodAffinityWeight: Invalid value: -1",),
    args("PodTopologySpread", "{defaultingType: Foo}"): ("defaultingType",),
    args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"): ("minCandidateNodesPercentage",),
}  # fmt: skip


@fault(50, "41 broken configuration files: duplicates, alias bombs, 10 MB, wrong kinds, negative weights")
def test_broken_configurations(bench: FaultBench) -> None:
    """Each is refused with every problem in it, in a moment, and without a traceback."""
    file = bench.directory / "config.yaml"
    slowest_s, costs_s, tracebacks, silent = 0.0, {}, 0, []
    for data, problems in FILES.items():
        begun_s, cpu_s = time.monotonic(), children_cpu_s()
        code, said = checked(file, data)
        slowest_s = max(slowest_s, time.monotonic() - begun_s)
        costs_s[data] = children_cpu_s() - cpu_s
        tracebacks += "Traceback" in said
        if code != 1 or not all(problem in said for problem in problems):
            silent.append((data[:200], code, said[:500]))
    bench.figure("files", at_least(40), len(FILES))
    bench.figure("files of which a problem was not said", exactly(0), len(silent))
    bench.figure("tracebacks", exactly(0), tracebacks)
    bench.figure("slowest", at_most(1.0), slowest_s, "s")
    dearest = max(costs_s, key=costs_s.__getitem__)
    bench.figure("CPU of the dearest", at_most(1.0), costs_s[dearest], "s")
    bench.note(
        f"the dearest begins with {dearest.removeprefix(HEADER)[:40]!r}; half of them cost less than {median(costs_s.values()):.2f} s"
    )
    assert silent == []
    bench.verdict()


def children_cpu_s() -> float:
    """Return the CPU seconds of all processes that have been started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def checked(file: Path, data: bytes) -> tuple[int, str]:
    """Return the exit code of ``podium check-config`` and what it said."""
    file.write_bytes(data)
    command = [sys.executable, "-m", "scheduler", "check-config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr
