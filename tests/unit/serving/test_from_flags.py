"""Flags become serving options."""

import ssl
from pathlib import Path

import pytest

from scheduler.config.flags import parse_flags
from scheduler.serving.from_flags import _CIPHERS, openssl_ciphers, serving_options
from scheduler.serving.options import ServingError, ServingOptions


def test_defaults_of_flags_are_defaults_of_the_server():
    assert serving_options(parse_flags([])) == ServingOptions()


def test_given_flags_arrive():
    argv = [
        "--secure-port=0",
        "--bind-address=127.0.0.1",
        "--tls-min-version=VersionTLS13",
        "--client-ca-file=/ca.crt",
        "--requestheader-allowed-names=a,b",
        "--authorization-always-allow-paths=/healthz,/metrics",
        "--authentication-skip-lookup",
    ]
    options = serving_options(parse_flags(argv))
    assert (options.port, options.bind_address, options.min_version) == (0, "127.0.0.1", "VersionTLS13")
    assert options.client_ca_file == Path("/ca.crt")
    assert options.request_header.allowed_names == ("a", "b")
    assert options.always_allow_paths == ("/healthz", "/metrics")
    assert options.skip_lookup


def test_pair_in_the_certificate_directory_is_used(tmp_path):
    flags = parse_flags([f"--cert-dir={tmp_path}"])
    assert serving_options(flags).cert_file is None
    for name in ("kube-scheduler.crt", "kube-scheduler.key"):
        (tmp_path / name).touch()
    assert serving_options(flags).cert_file == tmp_path / "kube-scheduler.crt"


def test_openssl_knows_every_suite_of_the_table():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in _CIPHERS:
        context.set_ciphers(openssl_ciphers([name]))


def test_suites_are_translated_and_unknown_ones_refused():
    assert openssl_ciphers(["TLS_AES_128_GCM_SHA256"]) == ""
    assert openssl_ciphers(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]) == "ECDHE-RSA-AES128-GCM-SHA256"
    with pytest.raises(ServingError, match="TLS_RSA_WITH_RC4_128_SHA not supported"):
        openssl_ciphers(["TLS_RSA_WITH_RC4_128_SHA"])
