"""Certificate authorities for the serving tests."""

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization


class Authority:
    """A CA that issues client certificates."""

    def __init__(self):
        self.ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.pem = self.ca.cert_pem.bytes().decode()

    def issue(self, name, organization=None):
        return self.ca.issue_cert(common_name=name, organization_name=organization, key_type=trustme.KeyType.ECDSA)

    def der(self, name, organization=None):
        leaf = self.issue(name, organization)
        pem = leaf.cert_chain_pems[0].bytes()
        return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


@pytest.fixture(scope="module")
def client_authority():
    return Authority()


@pytest.fixture(scope="module")
def proxy_authority():
    return Authority()
