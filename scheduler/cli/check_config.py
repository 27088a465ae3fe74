"""``podium check-config FILE``: says whether the daemon would start with this file, and everything that is wrong.

Exit codes: 0 the file is good, 1 it is not, 2 the command line cannot be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.config.errors import ConfigError, Problem, UsageError
from scheduler.config.expand import expand
from scheduler.config.flags import read_file
from scheduler.config.gates import FeatureGates, parse_feature_gates
from scheduler.config.load import Loaded, load_with_notes
from scheduler.config.types import LeaderElection, Profile, SchedulerConfiguration
from scheduler.framework.plugin_args import ArgsError
from scheduler.framework.points import takes_part_in
from scheduler.framework.profile import args_problem
from scheduler.framework.registry import ENTRY_POINT_GROUP as PLUGIN_GROUP
from scheduler.framework.registry import Registry, RegistryError
from scheduler.kube.lease import LeaseConfig, LeaseConfigError
from scheduler.plugins import IN_TREE

__all__ = ["USAGE", "check_config", "installed_plugins"]

USAGE = "usage: podium check-config FILE [--output text|json] [--feature-gates LIST]"
_OUTPUTS = ("text", "json")


@dataclass(frozen=True, slots=True)
class _Arguments:
    file: str
    output: str
    gates: FeatureGates


def installed_plugins() -> Registry:
    """Return Podium's plugins and those that installed distributions offer; imports none of the latter."""
    return Registry.installed(IN_TREE)


def check_config(argv: Sequence[str], installed: Callable[[], Registry] = installed_plugins) -> int:
    """Check a file and print the result.

    Args:
        argv: the words after ``check-config``.
        installed: returns the plugins that could be loaded; those that the file names are.

    Returns:
        The exit code.
    """
    if "-h" in argv or "--help" in argv:
        print(USAGE)
        return 0
    try:
        arguments = _parse(argv)
    except UsageError as error:
        print(f"error: {error}\n{USAGE}", file=sys.stderr)
        return 2
    problems, notes = _check(arguments, installed())
    if arguments.output == "json":
        _print_json(arguments.file, problems, notes)
    else:
        _print_text(arguments.file, problems, notes)
    return 1 if problems else 0


def _parse(argv: Sequence[str]) -> _Arguments:
    files: list[str] = []
    values = {"output": "text", "feature-gates": ""}
    words = iter(argv)
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, value = word.removeprefix("--").removeprefix("-").partition("=")
            name = {"o": "output"}.get(name, name)
            if name not in values:
                raise UsageError(f"unknown flag: {word}")
            taken = value if equals else next(words, None)
            if taken is None:
                raise UsageError(f"flag needs an argument: {word}")
            values[name] = taken
        else:
            files.append(word)
    if len(files) != 1:
        raise UsageError("exactly one FILE is needed")
    if values["output"] not in _OUTPUTS:
        raise UsageError(f"--output must be one of {', '.join(_OUTPUTS)}, not {values['output']!r}")
    return _Arguments(files[0], values["output"], parse_feature_gates([values["feature-gates"]]))


def _check(arguments: _Arguments, registry: Registry) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    try:
        data = sys.stdin.buffer.read() if arguments.file == "-" else read_file(arguments.file)
        loaded: Loaded = load_with_notes(data, arguments.gates)
    except ConfigError as error:
        return error.details, ()
    configuration = loaded.configuration
    return (
        *_election_problems(configuration.leader_election),
        *_plugin_problems(configuration, registry),
    ), loaded.notes


def _election_problems(election: LeaderElection) -> Iterator[Problem]:
    """Yield what kube-scheduler's checks of a file let pass, and the elector refuses at the start."""
    if not election.leader_elect:
        return
    try:
        LeaseConfig(
            identity="check-config",
            lease_duration_s=election.lease_duration_s,
            renew_deadline_s=election.renew_deadline_s,
            retry_period_s=election.retry_period_s,
        )
    except LeaseConfigError as error:
        yield Problem("leaderElection", f"leaderElection: {error}")


def _plugin_problems(configuration: SchedulerConfiguration, registry: Registry) -> Iterator[Problem]:
    """Load what every profile names, decode its arguments and expand the profile, as the daemon will."""
    yield from (Problem("", text) for text in registry.conflicts)
    for index, profile in enumerate(configuration.profiles):
        found = list(_load_problems(profile, index, registry))
        yield from found
        if not found:
            try:
                expand(profile, lambda point, name: _implements(registry, point, name))
            except ConfigError as error:
                if all(_points_are_known(registry, name) for name in profile.plugins.names()):
                    path = f"profiles[{index}].plugins"
                    yield Problem(path, f"{path}: {error.problems[0]}")


def _load_problems(profile: Profile, index: int, registry: Registry) -> Iterator[Problem]:
    path = f"profiles[{index}].plugins"
    for name in dict.fromkeys(profile.plugins.names()):
        if name in KNOWN_POINTS:
            continue
        if name not in registry:
            text = f'plugin "{name}" is neither part of Podium nor offered by an installed package ({PLUGIN_GROUP})'
            yield Problem(path, f"{path}: {text}")
            continue
        try:
            registry.args(name, profile.plugin_config.get(name))
        except ArgsError as error:
            yield args_problem(profile, f"profiles[{index}]", name, error)
        except RegistryError as error:
            yield Problem(path, f"{path}: {error}")


def _points_are_known(registry: Registry, name: str) -> bool:
    return name in KNOWN_POINTS or registry.made(name) is not None


def _implements(registry: Registry, point: str, name: str) -> bool:
    """Say whether the plugin takes part; of one whose class nobody knows before it is made the best is assumed."""
    if name in KNOWN_POINTS:
        return point in KNOWN_POINTS[name]
    made = registry.made(name)
    return made is None or takes_part_in(made, point)


def _print_text(file: str, problems: Sequence[Problem], notes: Sequence[str]) -> None:
    for problem in problems:
        print(problem.text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if not problems:
        print(f"{file}: ok")


def _print_json(file: str, problems: Sequence[Problem], notes: Sequence[str]) -> None:
    report = {
        "file": file,
        "ok": not problems,
        "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
        "notes": list(notes),
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
