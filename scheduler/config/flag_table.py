"""The command line's flags: kube-scheduler's names, defaults and sections (1.36), and Podium's own.

The table is data; ``flags`` parses by it and ``help`` prints it. ``INERT`` flags are accepted because existing
manifests carry them; each is answered with one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FLAGS", "INERT", "SECTIONS", "SHORT", "Flag"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Attributes:
        name: without dashes.
        kind: the type as help prints it; decides how the text is read.
        default: the value when the flag is not given.
        usage: one sentence.
    """

    name: str
    kind: str
    default: Any
    usage: str


_MISC = (
    Flag("config", "string", "", "The path to the configuration file."),
    Flag("master", "string", "", "The address of the Kubernetes API server (overrides any value in kubeconfig)."),
    Flag("write-config-to", "string", "", "If set, write the completed configuration to this file and exit."),
)
_PODIUM = (Flag("options", "string", "", "The path to a file of kind SchedulerOptions with Podium's own settings."),)
_SERVING = (
    Flag("bind-address", "ip", "0.0.0.0", "The IP address on which to listen."),  # noqa: S104  upstream's default
    Flag("cert-dir", "string", "", "Directory of the TLS certificate; ignored if certificate and key files are given."),
    Flag("disable-http2-serving", "bool", False, "If true, HTTP/2 is not served."),
    Flag("http2-max-streams-per-connection", "int", 0, "Limit of streams in an HTTP/2 connection."),
    Flag("permit-address-sharing", "bool", False, "If true, SO_REUSEADDR is used when binding the port."),
    Flag("permit-port-sharing", "bool", False, "If true, SO_REUSEPORT is used when binding the port."),
    Flag("secure-port", "int", 10259, "The port on which to serve HTTPS; 0 means not at all."),
    Flag(
        "tls-cert-file", "string", "", "File with the certificate for HTTPS; if none is given, one is made in memory."
    ),
    Flag("tls-cipher-suites", "strings", (), "Comma-separated list of cipher suites for the server."),
    Flag("tls-curve-preferences", "int32Slice", (), "Comma-separated list of numeric key exchange mechanisms."),
    Flag(
        "tls-min-version", "string", "", "Minimum TLS version: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13."
    ),
    Flag("tls-private-key-file", "string", "", "File with the private key that matches --tls-cert-file."),
    Flag("tls-sni-cert-key", "namedCertKey", (), "A certificate and key file pair with domain patterns; repeatable."),
)
_AUTHENTICATION = (
    Flag("authentication-kubeconfig", "string", "", "kubeconfig of the server that reviews tokens; optional."),
    Flag("authentication-skip-lookup", "bool", False, "If true, do not look up missing settings in the cluster."),
    Flag("authentication-token-webhook-cache-ttl", "duration", 10.0, "How long answers of the token review are kept."),
    Flag("authentication-tolerate-lookup-failure", "bool", True, "If true, a failed look-up of settings is not fatal."),
    Flag("client-ca-file", "string", "", "Clients with a certificate signed by one of these authorities are known."),
    Flag("requestheader-allowed-names", "strings", (), "Common names of clients that may name users in headers."),
    Flag("requestheader-client-ca-file", "string", "", "Authorities of the clients that may name users in headers."),
    Flag("requestheader-extra-headers-prefix", "strings", ("x-remote-extra-",), "Header prefixes of extra values."),
    Flag("requestheader-group-headers", "strings", ("x-remote-group",), "Headers that name groups."),
    Flag("requestheader-uid-headers", "strings", (), "Headers that name UIDs."),
    Flag("requestheader-username-headers", "strings", ("x-remote-user",), "Headers that name users."),
)
_AUTHORIZATION = (
    Flag(
        "authorization-always-allow-paths",
        "strings",
        ("/healthz", "/readyz", "/livez"),
        "Paths that are served without authorization.",
    ),
    Flag("authorization-kubeconfig", "string", "", "kubeconfig of the server that reviews access; optional."),
    Flag("authorization-webhook-cache-authorized-ttl", "duration", 10.0, "How long a yes is kept."),
    Flag("authorization-webhook-cache-unauthorized-ttl", "duration", 10.0, "How long a no is kept."),
)
_IGNORED = "This parameter is ignored if a config file is specified in --config."
_DEPRECATED = (
    Flag("contention-profiling", "bool", True, f"DEPRECATED: enable block profiling. {_IGNORED}"),
    Flag("kube-api-burst", "int32", 100, f"DEPRECATED: burst to use with the API server. {_IGNORED}"),
    Flag(
        "kube-api-content-type",
        "string",
        "application/vnd.kubernetes.protobuf",
        f"DEPRECATED: content type of requests. {_IGNORED}",
    ),
    Flag("kube-api-qps", "float32", 50.0, f"DEPRECATED: QPS to use with the API server. {_IGNORED}"),
    Flag("kubeconfig", "string", "", "Path to a kubeconfig file; a kubeconfig named in --config wins."),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        "duration",
        300.0,
        "DEPRECATED: the longest time a pod waits as unschedulable before it is tried again.",
    ),
    Flag("profiling", "bool", True, f"DEPRECATED: enable profiling endpoints. {_IGNORED}"),
)
_LEADER_ELECTION = (
    Flag("leader-elect", "bool", True, "Gain leadership before scheduling; for replicated schedulers."),
    Flag("leader-elect-lease-duration", "duration", 15.0, "How long others wait for a renewal before they take over."),
    Flag("leader-elect-renew-deadline", "duration", 10.0, "How long the leader tries to renew before it gives up."),
    Flag("leader-elect-resource-lock", "string", "leases", "The type of the lock object; only 'leases'."),
    Flag("leader-elect-resource-name", "string", "kube-scheduler", "The name of the lock object."),
    Flag("leader-elect-resource-namespace", "string", "kube-system", "The namespace of the lock object."),
    Flag("leader-elect-retry-period", "duration", 2.0, "How long to wait between attempts."),
)
_FEATURE_GATES = (
    Flag("emulated-version", "strings", (), "The versions that components emulate."),
    Flag("feature-gates", "featureGates", (), "Comma-separated list of [kube:]Name=true|false."),
    Flag("min-compatibility-version", "strings", (), "The oldest control plane to be compatible with."),
)
_METRICS = (
    Flag("allow-metric-labels", "stringToString", {}, "Allowed values by metric and label."),
    Flag("allow-metric-labels-manifest", "string", "", "File with allowed values by metric and label."),
    Flag("disabled-metrics", "strings", (), "Names of metrics to leave out."),
    Flag("show-hidden-metrics-for-version", "string", "", "The previous version whose hidden metrics are shown."),
)
_LOGS = (
    Flag("log-flush-frequency", "duration", 5.0, "Longest time between log flushes."),
    Flag("log-json-info-buffer-size", "quantity", "0", "[Alpha] Buffer for info messages in JSON format."),
    Flag("log-json-split-stream", "bool", False, "[Alpha] In JSON format, errors to stderr, the rest to stdout."),
    Flag("log-text-info-buffer-size", "quantity", "0", "[Alpha] Buffer for info messages in text format."),
    Flag("log-text-split-stream", "bool", False, "[Alpha] In text format, errors to stderr, the rest to stdout."),
    Flag("logging-format", "string", "text", 'The log format: "json" or "text".'),
    Flag("v", "Level", 0, "Log verbosity."),
    Flag("vmodule", "pattern=N,...", "", "Verbosity by file name pattern."),
)
_GLOBAL = (
    Flag("help", "help", False, "Print this text and exit."),
    Flag("version", "version", "false", "Print the version and exit; --version=raw prints more of it."),
)

SECTIONS: Mapping[str, tuple[Flag, ...]] = {
    "Misc": _MISC,
    "Podium": _PODIUM,
    "Secure serving": _SERVING,
    "Authentication": _AUTHENTICATION,
    "Authorization": _AUTHORIZATION,
    "Deprecated": _DEPRECATED,
    "Leader election": _LEADER_ELECTION,
    "Feature gate": _FEATURE_GATES,
    "Metrics": _METRICS,
    "Logs": _LOGS,
    "Global": _GLOBAL,
}
"""The flags by section, in the order of the help text."""

FLAGS: Mapping[str, Flag] = {flag.name: flag for section in SECTIONS.values() for flag in section}

SHORT: Mapping[str, str] = {"v": "v", "h": "help"}
"""One-letter flags with the names they stand for."""

INERT = frozenset(
    {
        "contention-profiling",
        "disable-http2-serving",
        "emulated-version",
        "http2-max-streams-per-connection",
        "kube-api-content-type",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "min-compatibility-version",
        "permit-address-sharing",
        "tls-curve-preferences",
        "tls-sni-cert-key",
        "vmodule",
    }
)
"""Flags that are accepted and have no effect."""
