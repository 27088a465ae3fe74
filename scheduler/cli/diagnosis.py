"""Diagnosis: is a scheduler set up rightly? Everything that can be told from outside, one finding a line.

Nothing is changed, and nothing is asked of a running Podium: the API server says what the identity may do, who leads,
and which pods wait for whom.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from scheduler.app.rights import LIVE_PROFILE_RIGHTS, RIGHTS, Right, Where
from scheduler.config.default_plugins import KNOWN_POINTS
from scheduler.config.errors import ConfigError
from scheduler.config.expand import expand
from scheduler.config.types import DEFAULT_SCHEDULER_NAME, LeaderElection, SchedulerConfiguration
from scheduler.kube.errors import ApiError, KubeError, cut
from scheduler.kube.inspection import LeaseSeen, lease_seen, own_name, pending_pods, server_version
from scheduler.kube.reviews import Resource, own_access
from scheduler.kube.transport import Transport
from scheduler.telemetry.metrics import EMULATED_VERSION

T = TypeVar("T")

__all__ = ["MISSING", "OK", "OLDEST_SERVER", "WARNING", "Diagnosis", "Finding", "one_line"]

OK, MISSING, WARNING = "ok", "missing", "warning"

OLDEST_SERVER = (1, 32)
"""The oldest API server that the chart is for (``kubeVersion``)."""

_MAX_NAMES = 10
_SYSTEM = "kube-system"
_KUBE_SCHEDULER = "kube-scheduler"
_AUTHENTICATION = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        check: what was looked at: ``api server``, ``identity``, ``right``, ``lease``, ``pods`` or ``profile``.
        status: OK, MISSING or WARNING.
        subject: which of them.
        text: how it is, and where it is not well what to do.
        right: of a right that is missing: what, in the words of ``docs/reference/rights.md``.
    """

    check: str
    status: str
    subject: str
    text: str
    right: str = ""


class Diagnosis:
    """One look at a cluster on behalf of one configuration.

    Args:
        transport: to the API server, as the identity that is to be examined.
        server: its address, for people.
        configuration: of the scheduler.
        has_live_profiles: whether it follows SchedulerProfile objects.
        timeout_s: for each request.
    """

    def __init__(
        self,
        transport: Transport,
        server: str,
        configuration: SchedulerConfiguration,
        *,
        has_live_profiles: bool,
        timeout_s: float,
    ) -> None:
        self._transport = transport
        self._server = server
        self._election = configuration.leader_election
        self._profiles = [profile.scheduler_name for profile in configuration.profiles]
        # A live profile may enable any plugin at any time.
        self._plugins = frozenset(KNOWN_POINTS) if has_live_profiles else _default_plugins(configuration)
        self._rights = (*RIGHTS, *(LIVE_PROFILE_RIGHTS if has_live_profiles else ()))
        self._has_live_profiles = has_live_profiles
        self._timeout_s = timeout_s

    async def findings(self) -> list[Finding]:
        """Look at everything.

        Raises:
            KubeError: the API server cannot be reached, or does not know us.
            ReviewUnavailableError: it does not tell what we may do.
        """
        server = await self._api_server()
        checks = (self._identity(), *map(self._right, self._rights), self._lease(), self._pods(), self._default_name())
        return [server, *(finding for found in await _all(checks) for finding in found)]

    # --- server and identity -----------------------------------------------------------------------------------------

    async def _api_server(self) -> Finding:
        try:
            version = await server_version(self._transport, timeout_s=self._timeout_s)
        except ApiError as error:
            if error.status != 403:
                raise
            return Finding("api server", WARNING, self._server, f"its version may not be read: {one_line(error)}")
        oldest = ".".join(map(str, OLDEST_SERVER))
        if version.number < OLDEST_SERVER:
            advice = f"older than {oldest}, the oldest that Podium is for: upgrade the cluster first"
            return Finding("api server", WARNING, self._server, f"Kubernetes {_shown(version.name)}, {advice}")
        range_ = f"{oldest} and newer will do, decisions are those of kube-scheduler {EMULATED_VERSION}"
        return Finding("api server", OK, self._server, f"Kubernetes {_shown(version.name)} ({range_})")

    async def _identity(self) -> list[Finding]:
        try:
            name = await own_name(self._transport, timeout_s=self._timeout_s)
        except KubeError as error:
            return [Finding("identity", WARNING, "", f"the API server does not say who we are: {one_line(error)}")]
        return [Finding("identity", OK, _shown(name), "the rights below are this user's")]

    # --- rights ------------------------------------------------------------------------------------------------------

    async def _right(self, right: Right) -> list[Finding]:
        if right.where is Where.ELECTION and not self._election.leader_elect:
            return []
        if right.plugin and right.plugin not in self._plugins:
            return [Finding("right", OK, str(right), f"not needed: no profile enables {right.plugin}")]
        asked = [_asked(right, verb, self._election) for verb in right.verbs]
        answers = await _all(own_access(self._transport, resource, timeout_s=self._timeout_s) for resource in asked)
        missing = tuple(
            verb for verb, answer in zip(right.verbs, answers, strict=True) if not answer.is_allowed
        )  # fmt: skip
        subject = _as_asked(right, missing or right.verbs, asked[0])
        if not missing:
            return [Finding("right", OK, subject, right.purpose)]
        text = f"{right.purpose}. Without it: {right.without}. Grant it {_granted_by(right, asked[0])}"
        return [Finding("right", MISSING, subject, text, right.named(missing))]

    # --- who leads ---------------------------------------------------------------------------------------------------

    async def _lease(self) -> list[Finding]:
        election = self._election
        if not election.leader_elect:
            return [Finding("lease", OK, "", "leader election is off: a single replica may run")]
        subject = f"{election.resource_namespace}/{election.resource_name}"
        try:
            seen = await lease_seen(
                self._transport, election.resource_namespace, election.resource_name, timeout_s=self._timeout_s
            )
        except KubeError as error:
            return [Finding("lease", WARNING, subject, f"cannot be looked at: {one_line(error)}")]
        status, text = _leadership(seen)
        return [Finding("lease", status, subject, text)]

    # --- other schedulers --------------------------------------------------------------------------------------------

    async def _pods(self) -> list[Finding]:
        try:
            pending = await pending_pods(self._transport, timeout_s=self._timeout_s)
        except KubeError as error:
            return [Finding("pods", WARNING, "", f"pending pods cannot be listed: {one_line(error)}")]
        ours = [Finding("pods", OK, name, f"{pending.pop(name, 0)} pending") for name in self._profiles]
        others = f"{pending.total()} pending"
        if pending:
            live = " (Live profiles count here.)" if self._has_live_profiles else ""
            others += f": {_counted(pending)}. Is one of these names meant to be ours?{live}"
        return [*ours, Finding("pods", OK, "other schedulers", others)]

    async def _default_name(self) -> list[Finding]:
        """Say whether kube-scheduler serves the name that a profile of ours has, too."""
        election = (self._election.resource_namespace, self._election.resource_name)
        if DEFAULT_SCHEDULER_NAME not in self._profiles or election == (_SYSTEM, _KUBE_SCHEDULER):
            return []  # who holds the lease that both want is alone
        lease = f"Lease {_SYSTEM}/{_KUBE_SCHEDULER}"
        try:
            seen = await lease_seen(self._transport, _SYSTEM, _KUBE_SCHEDULER, timeout_s=self._timeout_s)
        except KubeError as error:
            # The deployed rights do not reach to the lease of another.
            is_refused = isinstance(error, ApiError) and error.status == 403
            text = f"whether kube-scheduler serves this name, too, cannot be seen from its {lease}: {one_line(error)}"
            return [Finding("profile", OK if is_refused else WARNING, DEFAULT_SCHEDULER_NAME, text)]
        if seen is None or not seen.is_held:
            return [Finding("profile", OK, DEFAULT_SCHEDULER_NAME, f"no kube-scheduler holds {lease}")]
        advice = "two would decide about the same pods: stop it, or give the profile another name"
        text = (
            f"kube-scheduler runs ({_shown(seen.record.holder)} holds {lease}) and serves this name as a rule; {advice}"
        )
        return [Finding("profile", WARNING, DEFAULT_SCHEDULER_NAME, text)]


async def _all(questions: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for all answers and return them; the first failure is raised only then.

    Questions that are left behind and fail as well would end in the log with their tracebacks.
    """
    answers = await asyncio.gather(*questions, return_exceptions=True)
    found: list[T] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        found.append(answer)
    return found


def _asked(right: Right, verb: str, election: LeaderElection) -> Resource:
    """Return what to ask the API server about one verb of a right."""
    resource, _, subresource = right.resource.partition("/")
    namespace = name = ""
    if right.where is Where.ELECTION:
        # "create" cannot be granted for a name.
        namespace, name = election.resource_namespace, "" if verb == "create" else election.resource_name
    elif right.where is Where.AUTHENTICATION:
        namespace, name = _SYSTEM, _AUTHENTICATION
    return Resource(verb, resource, right.group, namespace, name, subresource=subresource)


def _as_asked(right: Right, verbs: tuple[str, ...], asked: Resource) -> str:
    """Return a right as ``kubectl auth can-i`` takes it, which asks about one verb at a time."""
    name = f"/{asked.name}" if asked.name else ""
    return f"{right.named(verbs)}{name}" + (f" -n {asked.namespace}" if asked.namespace else "")


def _granted_by(right: Right, asked: Resource) -> str:
    if right.where is Where.CLUSTER:
        return "in the scheduler's ClusterRole"
    if right.where is Where.ELECTION:
        return f"in a Role in {asked.namespace}"
    return f"by a RoleBinding in {asked.namespace} to the Role extension-apiserver-authentication-reader"


def _leadership(seen: LeaseSeen | None) -> tuple[str, str]:
    """Return status and text for the lease of the election."""
    if seen is None:
        return (
            WARNING,
            "nobody leads, and nobody has: the Lease does not exist. Before the first start this is as it should be",
        )
    record = seen.record
    changes = f"{record.transitions} change{'' if record.transitions == 1 else 's'} of leader so far"
    if not record.holder:
        return WARNING, f"nobody leads: the last leader has given the Lease back ({changes}). Is a replica running?"
    holder = _shown(record.holder)
    if seen.age_s is None:
        return WARNING, f"nobody leads: {holder} holds the Lease and has never renewed it"
    if not seen.is_held:
        limit = f"it lasts {record.duration_s} s; {changes}"
        return WARNING, (
            f"nobody leads: the Lease of {holder} has expired, it was renewed {seen.age_s:.0f} s ago ({limit}). "
            "Is a replica running?"
        )
    return OK, f"{holder} leads, renewed {seen.age_s:.0f} s ago, {changes}"


def _counted(pending: Mapping[str, int]) -> str:
    """Return the most frequent names with their counts."""
    ranked = sorted(pending.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{_shown(name)} {count}" for name, count in ranked[:_MAX_NAMES]]
    left = len(ranked) - len(named)
    return ", ".join(named) + (f", and {left} more names" if left else "")


def _shown(text: str) -> str:
    """Return what others have written as it may stand on a terminal."""
    return cut(text if text and text.isprintable() and " " not in text else ascii(text))


def one_line(error: Exception) -> str:
    """Return what an error says as one line of a terminal, whatever a server has put into it."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(error)).split())


def _default_plugins(configuration: SchedulerConfiguration) -> frozenset[str]:
    """Return the default plugins that some profile enables; all if a profile cannot be made out (see check-config)."""

    def implements(point: str, name: str) -> bool:
        # Of a plugin that is not ours nobody knows; packages of the daemon need not be installed here.
        return point in KNOWN_POINTS[name] if name in KNOWN_POINTS else point != "queue_sort"

    def enabled() -> Iterator[str]:
        for profile in configuration.profiles:
            yield from expand(profile, implements).names()

    try:
        return frozenset(enabled())
    except ConfigError:
        return frozenset(KNOWN_POINTS)
