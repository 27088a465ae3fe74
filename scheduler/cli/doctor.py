"""``podium doctor``: is this scheduler set up rightly? API server, rights, lease and other schedulers, one line each.

In a pod it speaks as its service account; elsewhere ``--kubeconfig`` says where to ask, and ``--as`` on whose behalf.
Exit codes: 0 every line is ok, 1 one is not, or the API server cannot be asked, 2 usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scheduler.cli.diagnosis import OK, Diagnosis, Finding, one_line
from scheduler.config.durations import DurationError, parse_duration
from scheduler.config.errors import ConfigError
from scheduler.config.flags import complete, parse_flags
from scheduler.config.gates import DEFAULT_GATES
from scheduler.config.load import load_with_notes
from scheduler.config.types import SchedulerConfiguration
from scheduler.kube.credentials import Credentials
from scheduler.kube.errors import ApiError, KubeError
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.impersonation import impersonation_fields
from scheduler.kube.kubeconfig import load_credentials
from scheduler.kube.reviews import ReviewUnavailableError
from scheduler.telemetry import logging

__all__ = ["AS_DEPLOYED", "doctor"]

MOUNTED = Path("/etc/podium")
"""Where manifests and chart mount the configuration of the scheduler in a pod."""

AS_DEPLOYED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: podium, resourceNamespace: kube-system}
profiles: [{schedulerName: podium}]
"""
"""What the manifests configure, where no other configuration is at hand."""

_IN_FLIGHT = 8


@dataclass(frozen=True, slots=True)
class _Examined:
    """The configuration whose scheduler is examined, and where it stands."""

    configuration: SchedulerConfiguration
    source: str
    has_live_profiles: bool = False
    allow_exec: bool = False

    def finding(self) -> Finding:
        election = self.configuration.leader_election
        lease = f"Lease {election.resource_namespace}/{election.resource_name}" if election.leader_elect else "no Lease"
        names = ", ".join(profile.scheduler_name for profile in self.configuration.profiles)
        return Finding("configuration", OK, self.source, f"profiles {names}; {lease}")


def doctor(argv: Sequence[str], mounted: Path = MOUNTED) -> int:
    """Run the sub-command; returns its exit code.

    Args:
        argv: the words after ``doctor``.
        mounted: the directory of a configuration that counts if none is named.
    """
    options = _parse(argv)
    logging.configure(verbosity=-1)
    try:
        examined = _examined(options, mounted)
        credentials = load_credentials(
            options.kubeconfig or examined.configuration.client_connection.kubeconfig,
            context=options.context,
            server=options.master,
            allow_exec=bool(options.kubeconfig) or examined.allow_exec,
        )
        found = asyncio.run(_look(examined, credentials, options))
    except ConfigError as error:
        return _fail("\n".join(error.problems))
    except ApiError as error:
        what = "the credentials are not accepted: " if error.status == 401 else ""
        return _fail(f"{what}{one_line(error)}")
    except (KubeError, ReviewUnavailableError) as error:
        return _fail(one_line(error))
    findings = [examined.finding(), *found]
    (_print_json if options.output == "json" else _print_text)(findings)
    return 0 if all(finding.status == OK for finding in findings) else 1


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="podium doctor", allow_abbrev=False, description=__doc__.split("\n")[0])
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster; in a pod: its service account")
    parser.add_argument("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    parser.add_argument("--master", metavar="URL", help="the API server's address instead of the kubeconfig's")
    parser.add_argument(
        "--as", dest="user", metavar="USER", default="",
        help="whose rights to look at, e.g. system:serviceaccount:kube-system:podium (default: one's own)",
    )  # fmt: skip
    parser.add_argument("--as-group", metavar="GROUP", action="append", default=[], help="with --as; may be repeated")
    parser.add_argument(
        "--config", metavar="FILE",
        help=f"the scheduler's configuration (default: {MOUNTED}/config.yaml, else what the manifests configure)",
    )  # fmt: skip
    parser.add_argument(
        "--options", metavar="FILE", help=f"its options (default: {MOUNTED}/options.yaml, if it is there)"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument(
        "--request-timeout", metavar="TIME", type=_duration, default="10s", help="for each request (default: 10s)"
    )
    options = parser.parse_args(argv)
    if options.as_group and not options.user:
        parser.error("--as-group needs --as")
    if options.context and not options.kubeconfig:
        parser.error("--context needs --kubeconfig")
    return options


def _duration(text: str) -> float:
    try:
        duration_s = parse_duration(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if duration_s <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not more than nothing")
    return duration_s


def _examined(options: argparse.Namespace, mounted: Path) -> _Examined:
    """Read the files that are named, or those that are mounted.

    Raises:
        ConfigError: with everything that is wrong with them.
    """
    config, settings = options.config or None, options.options or None
    if config is None and settings is None:
        there = [path if path.exists() else None for path in (mounted / "config.yaml", mounted / "options.yaml")]
        config, settings = there
    named = {"config": config, "options": settings}
    completed = complete(parse_flags([f"--{name}={path}" for name, path in named.items() if path is not None]))
    configuration, source = completed.configuration, str(config)
    if config is None:
        configuration, source = load_with_notes(AS_DEPLOYED.encode(), DEFAULT_GATES).configuration, "as deployed"
    its = completed.options
    return _Examined(configuration, source, its.live_profiles.enabled, its.allow_exec_credentials)


async def _look(examined: _Examined, credentials: Credentials, options: argparse.Namespace) -> list[Finding]:
    fields = impersonation_fields(options.user, options.as_group)
    transport = HttpTransport(credentials, pool_size=_IN_FLIGHT, extra_fields=fields)
    url = urlsplit(credentials.server)
    try:
        return await Diagnosis(
            transport,
            f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}",
            examined.configuration,
            has_live_profiles=examined.has_live_profiles,
            timeout_s=options.request_timeout,
        ).findings()
    finally:
        await transport.close()


def _fail(problem: str) -> int:
    print(f"podium doctor: {problem}", file=sys.stderr)
    return 1


def _print_text(findings: Sequence[Finding]) -> None:
    rows = [(finding.status, finding.check, finding.subject, finding.text) for finding in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]))


def _print_json(findings: Sequence[Finding]) -> None:
    checks = [{key: value for key, value in asdict(finding).items() if key != "right" or value} for finding in findings]
    report = {"ok": all(finding.status == OK for finding in findings), "checks": checks}
    print(json.dumps(report, indent=2, ensure_ascii=False))
