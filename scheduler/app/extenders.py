"""Extenders of the configuration: what calls them, and which objects they must be shown whole."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from scheduler.config.errors import ConfigError
from scheduler.config.types import Extender as ExtenderConfiguration
from scheduler.config.types import ExtenderTLS, SchedulerConfiguration
from scheduler.framework.extender import ExtenderCall
from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError
from scheduler.kube.extender_client import CallObserver, ExtenderClient
from scheduler.kube.originals import Originals
from scheduler.model.meta import KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.telemetry.logging import get_logger

__all__ = ["extender_call", "originals_of", "tls_material", "verbs_of"]

_log = get_logger(__name__)


def extender_call(configuration: ExtenderConfiguration, observe: CallObserver | None = None) -> ExtenderCall:
    """Return what calls an extender over HTTP, and tells ``observe`` how each call ended.

    Raises:
        ConfigError: its TLS settings cannot be used.
    """
    prefix = configuration.url_prefix
    try:
        tls = tls_material(configuration)
        return ExtenderClient(prefix, timeout_s=configuration.http_timeout_s, tls=tls, observe=observe)
    except (OSError, ValueError, CredentialsError) as error:
        raise ConfigError([f"extender {prefix}: {error}"]) from error


def verbs_of(configuration: ExtenderConfiguration) -> Iterator[str]:
    """Return the verbs that an extender is called with."""
    given = configuration
    return filter(None, (given.filter_verb, given.preempt_verb, given.prioritize_verb, given.bind_verb))


def tls_material(configuration: ExtenderConfiguration) -> TlsMaterial:
    """Return whom to trust and who we are.

    parity: with ``enableHTTPS`` and no CA the server is not verified at all; this is said once, as a warning.

    Raises:
        OSError: a file cannot be read.
        ValueError: the settings contradict each other.
    """
    given = configuration.tls_config or ExtenderTLS()
    ca = given.ca_data or _read(given.ca_file)
    cert, key = given.cert_data or _read(given.cert_file), given.key_data or _read(given.key_file)
    if given.insecure and ca:
        raise ValueError("specifying a root certificates file with the insecure flag is not allowed")
    is_unverified = configuration.enable_https and not ca
    if is_unverified or given.insecure:
        _log.warning("extender's certificate is not verified; give tlsConfig a CA", extender=configuration.url_prefix)
    return TlsMaterial(
        ca_pem=ca or None,
        client_pem=key + b"\n" + cert if key and cert else None,
        insecure=given.insecure or is_unverified,
        server_name=given.server_name or None,
    )


def originals_of(
    kind: type[KubeObject], configuration: SchedulerConfiguration, profiles: Container[str] | None
) -> Originals | None:
    """Return what keeps the kind's objects as extenders must be shown them; None if nobody must.

    Pending pods of these profiles (None: of all schedulers) are shown to all extenders but pure binders, nodes to those
    that keep none themselves. differs: victims of preemption, which run already, are shown with the fields that
    scheduling reads; to keep all pods of a cluster whole would take several times the memory.
    """
    asking = [e for e in configuration.extenders if e.filter_verb or e.prioritize_verb]
    if kind is Node and any(not e.node_cache_capable for e in asking):
        return Originals(kind, lambda node: True)  # noqa: ARG005  every node
    if kind is Pod and (asking or any(e.preempt_verb for e in configuration.extenders)):
        return Originals(kind, _is_pending(profiles))
    return None


def _is_pending(profiles: Container[str] | None) -> Callable[[Any], bool]:
    return lambda pod: not pod.node_name and (profiles is None or pod.spec.scheduler_name in profiles)


def _read(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""
