"""Client authorities from flags and from the cluster's ConfigMap."""

import asyncio
import json

import pytest

from scheduler.kube.errors import TransportError
from scheduler.kube.transport import Response
from scheduler.serving.client_ca import CONFIG_MAP_PATH, CaBundle, ClientCas, TrustSource
from scheduler.serving.options import RequestHeaderOptions, ServingError, ServingOptions


class Api:
    """Serves the ConfigMap; counts how often it was read."""

    def __init__(self, data=None, error=None):
        self.data, self.error, self.reads = data, error, 0

    async def request(self, method, path, *, body=None, content_type="application/json", timeout_s):
        assert (method, path) == ("GET", CONFIG_MAP_PATH)
        self.reads += 1
        if self.error:
            raise self.error
        return Response(200 if self.data is not None else 403, {}, json.dumps({"data": self.data or {}}).encode())

    async def close(self):
        """Nothing to close."""


def load(options, api):
    changes = []
    source = TrustSource(options, api, changes.append)
    asyncio.run(source.load())
    return source.current, changes


def test_config_map_names_both_authorities(client_authority, proxy_authority):
    data = {
        "client-ca-file": client_authority.pem,
        "requestheader-client-ca-file": proxy_authority.pem,
        "requestheader-allowed-names": '["front"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    cas, changes = load(ServingOptions(), Api(data))
    assert changes == [cas]
    assert cas.client.pem == client_authority.pem
    assert cas.request_header.allowed_names == ("front",)
    assert cas.request_header.username_headers == ("x-remote-user",)
    assert cas.request_header.extra_prefixes == ("x-remote-extra-",)
    assert cas.pem == client_authority.pem + "\n" + proxy_authority.pem


def test_flags_win_each_for_its_part(tmp_path, client_authority, proxy_authority):
    file = tmp_path / "ca.crt"
    file.write_text(proxy_authority.pem)
    options = ServingOptions(client_ca_file=file, request_header=RequestHeaderOptions(client_ca_file=file))
    cas, _ = load(options, Api({"client-ca-file": client_authority.pem}))
    assert cas.client.pem == proxy_authority.pem
    assert cas.request_header.username_headers == ("x-remote-user",)


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(Api(None), id="forbidden"),
        pytest.param(Api(error=TransportError("down", sent=False)), id="no answer"),
        pytest.param(Api({"client-ca-file": "rubbish"}), id="not a certificate"),
        pytest.param(Api({"requestheader-allowed-names": "front"}), id="not a list"),
    ],
)
def test_failed_lookup_is_tolerated_or_not(api):
    assert load(ServingOptions(), api) == (ClientCas(), [])
    with pytest.raises(ServingError, match="authentication configuration"):
        load(ServingOptions(tolerate_lookup_failure=False), api)


def test_skipped_lookup_asks_nobody():
    api = Api({})
    load(ServingOptions(skip_lookup=True), api)
    assert api.reads == 0


def test_unusable_file_is_named(tmp_path):
    with pytest.raises(ServingError, match=r"missing\.crt"):
        load(ServingOptions(client_ca_file=tmp_path / "missing.crt"), None)


def test_refresh_is_quick_until_the_first_success_then_slow(client_authority):
    """5 s until the ConfigMap was read once, then a minute; a later failure keeps what is known."""
    api = Api(error=TransportError("down", sent=False))
    waits = []

    async def sleep(duration_s):
        waits.append(duration_s)
        if len(waits) == 2:
            api.error, api.data = None, {"client-ca-file": client_authority.pem}
        if len(waits) == 3:
            api.error = TransportError("down", sent=False)
        if len(waits) == 4:
            raise asyncio.CancelledError

    source = TrustSource(ServingOptions(), api, lambda _cas: None, sleep)

    async def run():
        await source.load()
        await source.run()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert waits == [5.0, 5.0, 60.0, 60.0]
    assert source.current.client == CaBundle.parse(client_authority.pem)
