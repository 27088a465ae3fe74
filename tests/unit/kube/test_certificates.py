"""When certificates expire."""

import datetime as dt

from scheduler.kube.certificates import expires_s
from scheduler.serving.tls import self_signed

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_the_first_to_expire_counts_and_keys_do_not_disturb():
    """A client's PEM holds the key and the whole chain."""
    early, key = self_signed(NOW)
    late, _ = self_signed(NOW + dt.timedelta(days=30))
    assert expires_s(key + b"\n" + late + early) == (NOW + dt.timedelta(days=365)).timestamp()


def test_what_cannot_be_read_has_no_end():
    assert expires_s(b"") is None
    assert expires_s(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") is None
