"""The daemon: starts everything in order, and ends it in order.

    start the scheduling thread ─▶ watch ─▶ serve health ─▶ lead ─▶ … ─▶ stop asked ─▶ no more decisions
        ─▶ drain bindings (≤ 20 s) ─▶ write events ─▶ release the lease ─▶ exit 0
                                                 └── lease lost ─▶ let writes end (≤ 4 s) ─▶ exit 1

The service side (health, election, reviews) has a loop of its own on the calling thread, so a slow plugin delays
scheduling but neither the lease nor the probes. What serving needs is imported last, while the first lists are under
way.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import TYPE_CHECKING, Any

from scheduler import __version__
from scheduler.app.scheduling import SchedulingThread
from scheduler.app.supervising import keep_running
from scheduler.config.flags import CompletedConfig
from scheduler.config.types import LeaderElection
from scheduler.failpoints import async_failpoint
from scheduler.framework.registry import Registry
from scheduler.kube.credentials import Credentials
from scheduler.kube.event_series import Reference
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.kubeconfig import load_credentials
from scheduler.kube.lease import (
    Ended,
    LeaderCallbacks,
    LeaderElector,
    LeaseConfig,
    OpenGate,
    WriteGate,
    identity_of_pod,
    make_identity,
)
from scheduler.kube.starting import PatientTransport
from scheduler.kube.transport import Transport
from scheduler.plugins import IN_TREE
from scheduler.telemetry.logging import get_logger, lines_dropped
from scheduler.telemetry.memory import memory_limit_bytes
from scheduler.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from scheduler.controllers.live_profiles import LiveProfiles
    from scheduler.serving.build import Serving

__all__ = ["Daemon"]

_log = get_logger(__name__)

POD_UID = "POD_UID"
"""Variable with the UID of the pod that we run in (downward API), from which its next container knows us to be gone."""

DRAIN_S = 20.0
_LOST_DRAIN_S = 4.0
_END_S = 5.0
_RELEASE_S = 5.0
_LIVE_SYNC_S = 5.0
"""For so long a new leader waits to see the live profiles before it decides without them."""


class Daemon:
    """One scheduler process (or, in tests and demos, one scheduler in a process)."""

    def __init__(self, completed: CompletedConfig, *, credentials: Credentials | None = None) -> None:
        """Build everything that can fail for reasons of configuration.

        Args:
            completed: configuration and flags.
            credentials: of the API server; None: those that configuration and flags name.

        Raises:
            ConfigError: a profile cannot be built.
            CredentialsError: the kubeconfig cannot be used.
            LeaseConfigError: the election's settings contradict one another.
        """
        self._completed = completed
        _warn_of_strange_profiles(completed)
        self._credentials = credentials or _credentials(completed)
        self._metrics = Metrics(version=__version__)
        self._metrics.restrict(completed.metrics.disabled, completed.metrics.allowed_labels)
        self._metrics.log_lines_dropped(lines_dropped)
        self._metrics.memory_limit(memory_limit_bytes)
        self._metrics.certificate_expiry("client", self._client_certificate_expires_s)
        for name, stage, is_enabled in completed.gates.honoured():
            self._metrics.feature(name, stage, is_enabled=is_enabled)
        self._gate: WriteGate = OpenGate()
        self._elector: LeaderElector | None = None
        self._saw_another_leader = False
        self._is_stopping = False
        self._leading: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._live: LiveProfiles | None = None
        self._lease = _lease_config(completed.configuration.leader_election)
        self._registry = Registry.installed(IN_TREE)
        self.scheduling = SchedulingThread(
            completed,
            self._credentials,
            self._registry,
            self._metrics,
            may_write=self._may_write,
        )
        self.port = 0
        """The port on which health and metrics are served; 0: not (yet)."""

    @property
    def metrics(self) -> Metrics:
        """Return what is measured."""
        return self._metrics

    @property
    def is_leading(self) -> bool:
        """Say whether this process decides."""
        return self._elector is None or self._elector.is_leader

    def _may_write(self, deadline_s: float) -> bool:
        return self._gate.may_write(deadline_s)

    def stop(self) -> None:
        """Ask for an orderly end; any thread."""
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    def dump(self) -> None:
        """Log cache and queue, as kube-scheduler does on SIGUSR2; any thread."""
        self.scheduling.dump()

    async def run(self) -> int:
        """Live until ``stop`` is called or the lease is lost; returns the exit code."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        transport = PatientTransport(HttpTransport(self._credentials, observe=self._metrics.rest_request))
        try:
            return await self._run(transport, self._stop)
        finally:
            await transport.close()

    async def _run(self, transport: Transport, stop: asyncio.Event) -> int:
        election = self._make_elector(transport)
        self._live = self._make_live_profiles(transport)
        self.scheduling.start()
        if election is None or not self._completed.configuration.delay_cache_until_active:
            self.scheduling.watch()
        try:
            serving = await self._serve(transport)
        except BaseException:
            await self._end_scheduling()
            raise
        tasks = [keep_running("serving", serving.run)] if serving is not None else []
        tasks += [keep_running("live profiles", self._live.run)] if self._live is not None else []
        try:
            return await self._until_the_end(election, stop)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if serving is not None:
                await serving.stop()

    async def _until_the_end(self, election: LeaderElector | None, stop: asyncio.Event) -> int:
        asked = asyncio.create_task(stop.wait())
        broken = asyncio.wrap_future(self.scheduling.ended)
        led: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        if election is None:
            self._metrics.leads_alone(self._lease.name)
            await self._lead(None)
        else:
            led = asyncio.ensure_future(election.run())
        ends: list[asyncio.Future[Any]] = [asked, broken, led]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        self._is_stopping = True
        if broken.done():
            _log.error("scheduling ended unexpectedly")
            code = 1
        elif led.done():
            code = await self._after_lost_lease(led)
        else:
            code = await self._after_stop(election, led)
        asked.cancel()
        return code

    async def _after_stop(self, election: LeaderElector | None, led: asyncio.Future[Ended]) -> int:
        _log.info("stopping")
        await async_failpoint("stop.draining")
        left = await self.scheduling.drain(DRAIN_S)
        if left:
            _log.warning("bindings had no outcome at the end", bindings=left)
        await self._end_scheduling()
        if election is not None:
            election.stop()
            await asyncio.wait([led], timeout=_RELEASE_S)
            if not led.done():
                _log.warning("lease was not released in time; it will run out")
                led.cancel()
            elif (error := led.exception()) is not None:
                _log.error("lease was not released; it will run out", err=repr(error))
        return 0

    async def _after_lost_lease(self, led: asyncio.Future[Ended]) -> int:
        if (error := led.exception()) is not None:
            _log.error("leader election broke", err=repr(error))
        _log.error("leader election lost")
        await self.scheduling.drain(_LOST_DRAIN_S)
        await self._end_scheduling()
        return 1

    async def _end_scheduling(self) -> None:
        self.scheduling.stop()
        ended = asyncio.wrap_future(self.scheduling.ended)
        await asyncio.wait([ended], timeout=_END_S)
        if ended.done() and not ended.cancelled():
            ended.exception()  # logged where it happened

    async def _lead(self, given_up_at: str | None) -> None:
        await asyncio.to_thread(self.scheduling.started.wait)
        if self._live is not None:
            await self._live.sync(_LIVE_SYNC_S)
        self.scheduling.lead(given_up_at)

    def _make_live_profiles(self, transport: Transport) -> LiveProfiles | None:
        if not self._completed.options.live_profiles.enabled:
            return None
        from scheduler.app.live_profiles import live_profiles  # noqa: PLC0415  only where they are wanted

        return live_profiles(
            self._completed,
            transport,
            self.scheduling,
            credentials=self._credentials,
            registry=self._registry,
            metrics=self._metrics,
            may_write=self._may_write,
        )

    def _client_certificate_expires_s(self) -> float | None:
        from scheduler.kube.certificates import expires_s  # noqa: PLC0415  only scrapes need it

        pem = self._credentials.tls().client_pem
        return None if pem is None else expires_s(pem)

    # --- election ----------------------------------------------------------------------------------------------------

    def _make_elector(self, transport: Transport) -> LeaderElector | None:
        if not self._completed.configuration.leader_election.leader_elect:
            return None
        callbacks = LeaderCallbacks(
            on_started_leading=self._started_leading,
            on_stopped_leading=self.scheduling.stop_deciding,
            on_new_leader=self._note_leader,
            record_event=self._tell_about_lease,
        )
        self._elector = LeaderElector(
            self._lease,
            callbacks,
            transport,
            random=random.Random(),  # noqa: S311  jitter
            metrics=self._metrics,
        )
        self._gate = self._elector
        self._metrics.leader_validity(self._lease.name, self._elector.validity_s)
        return self._elector

    def _note_leader(self, identity: str) -> None:
        if identity and identity != self._lease.identity:
            self._saw_another_leader = True

    def _tell_about_lease(self, note: str) -> None:
        # "stopped leading" comes too late to be written; the next leader's event tells the same.
        self.scheduling.tell_about_lease(
            Reference("Lease", "coordination.k8s.io/v1", self._lease.namespace, self._lease.name), note
        )

    def _started_leading(self) -> None:
        self.scheduling.watch()
        assert self._elector is not None
        # Of another one that we have seen lead we do not know how it ended.
        given_up_at = "" if self._saw_another_leader else self._elector.found_version or None
        leading = self._lead(given_up_at)
        self._leading = asyncio.get_running_loop().create_task(leading)

    # --- serving -----------------------------------------------------------------------------------------------------

    async def _serve(self, transport: Transport) -> Serving | None:
        flags = self._completed.flags
        if flags["secure-port"] == 0:
            return None
        # The half of the imports that only serving needs: they take as long as the API server's first answers.
        from scheduler.app.checks import endpoints_of  # noqa: PLC0415
        from scheduler.serving.build import Serving  # noqa: PLC0415
        from scheduler.serving.from_flags import serving_options  # noqa: PLC0415

        serving = Serving(
            serving_options(flags),
            endpoints_of(
                self._completed,
                self.scheduling,
                self._elector,
                self._metrics,
                is_leader=lambda: self.is_leading,
                is_stopping=lambda: self._is_stopping,
                notes=self._live.lines if self._live is not None else None,
            ),
            transport,
            token_ttl_s=flags["authentication-token-webhook-cache-ttl"],
            allowed_ttl_s=flags["authorization-webhook-cache-authorized-ttl"],
            denied_ttl_s=flags["authorization-webhook-cache-unauthorized-ttl"],
        )
        await serving.start()
        self._metrics.certificate_expiry("serving", lambda: serving.tls.expires_s)
        self.port = serving.server.port
        return serving


def _warn_of_strange_profiles(completed: CompletedConfig) -> None:
    known = {profile.scheduler_name for profile in completed.configuration.profiles}
    for name in sorted(completed.options.profiles.keys() - known):
        _log.warning("options are for a profile that the configuration does not have", profile=name)


def _credentials(completed: CompletedConfig) -> Credentials:
    kubeconfig = completed.configuration.client_connection.kubeconfig
    allow_exec = completed.options.allow_exec_credentials
    return load_credentials(kubeconfig, server=completed.master or None, allow_exec=allow_exec)


def _lease_config(election: LeaderElection) -> LeaseConfig:
    hostname, pod_uid = socket.gethostname(), os.environ.get(POD_UID, "")
    return LeaseConfig(
        identity=make_identity(hostname, pod_uid),
        predecessors=identity_of_pod(hostname, pod_uid),
        name=election.resource_name,
        namespace=election.resource_namespace,
        lease_duration_s=election.lease_duration_s,
        renew_deadline_s=election.renew_deadline_s,
        retry_period_s=election.retry_period_s,
    )
