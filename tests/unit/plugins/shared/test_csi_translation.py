"""In-tree volumes as their CSI drivers know them: facts of upstream's csi-translation-lib."""

import pytest

from scheduler.plugins.shared import csi_translation as csi
from scheduler.testing import obj, pod

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS_KEY, GCE_KEY = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"
BAD_EBS = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/x-1)"
BAD_ZONE = "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a"
TWO_REGIONS = (
    "failed to get region from zones: multiple or no regions gotten from zones, got: map[eu-west1:{} us-west1:{}]"
)


def volume(labels=None, terms=None, **source):
    spec = dict(source)
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": list(t)} for t in terms]}}
    return obj("PersistentVolume", {"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec})


def within(key, *values):
    return {"key": key, "operator": "In", "values": list(values)}


def inline(**source):
    return pod("p").volume("v", **source).obj().spec.volumes[0]


@pytest.mark.parametrize(
    ("source", "plugin", "driver", "handle"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "vol-1"}}, csi.AWS_EBS, "ebs.csi.aws.com", "vol-1", id="plain EBS id"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}},
            csi.AWS_EBS,
            "ebs.csi.aws.com",
            "vol-2",
            id="EBS id as URL",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            csi.GCE_PD,
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="GCE disk",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "/u/d", "kind": "MANAGED"}},
            csi.AZURE_DISK,
            "disk.csi.azure.com",
            "/u/d",
            id="Azure disk, kind in any case",
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, csi.CINDER, "cinder.csi.openstack.org", "c", id="Cinder"),
        pytest.param({"portworxVolume": {"volumeID": "x"}}, csi.PORTWORX, "pxd.portworx.com", "x", id="Portworx"),
    ],
)
def test_inline_volumes(source, plugin, driver, handle):
    """An inline volume has the driver and handle that its persistent twin has."""
    assert csi.in_tree_plugin(inline(**source)) == plugin
    assert csi.translate_inline(inline(**source)) == (driver, handle)
    assert csi.translate_volume(volume(**source))[0] == (driver, handle)
    assert csi.driver_of(plugin) == driver


@pytest.mark.parametrize(
    ("source", "plugin", "driver"),
    [
        pytest.param({"azureFile": {"shareName": "s"}}, csi.AZURE_FILE, "file.csi.azure.com", id="Azure share"),
        pytest.param({"vsphereVolume": {"volumePath": "p"}}, csi.VSPHERE, "csi.vsphere.vmware.com", id="vSphere"),
    ],
)
def test_plugins_that_could_migrate_but_are_not_taken_to_have(source, plugin, driver):
    """Their names are known, their volumes are not translated."""
    assert csi.in_tree_plugin(inline(**source)) == plugin
    assert csi.is_migratable(plugin)
    assert csi.driver_of(plugin) == driver
    assert csi.translate_inline(inline(**source)) is None
    assert csi.translate_volume(volume(**source)) is None


def test_other_volumes():
    """A volume of no in-tree disk has no plugin."""
    assert csi.in_tree_plugin(inline(emptyDir={})) is None
    assert csi.translate_inline(inline(emptyDir={})) is None
    assert not csi.is_migratable("csi.example.com")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(volume(awsElasticBlockStore={"volumeID": "aws://zone/x-1"}), BAD_EBS, id="EBS id of another form"),
        pytest.param(
            volume(azureDisk={"diskURI": "u", "kind": "Dedicated"}),
            "kind(Dedicated) is not supported in csi migration",
            id="unmanaged Azure disk",
        ),
        pytest.param(volume({ZONE: "a__b"}, gcePersistentDisk={"pdName": "d"}), BAD_ZONE, id="zones without a region"),
        pytest.param(
            volume({ZONE: "us-west1-a__eu-west1-b"}, gcePersistentDisk={"pdName": "d"}), TWO_REGIONS, id="two regions"
        ),
    ],
)
def test_volumes_that_cannot_be_translated(made, text):
    """The error says what upstream says."""
    with pytest.raises(csi.TranslationError) as caught:
        csi.translate_volume(made)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        pytest.param({}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="no zone"),
        pytest.param({ZONE: "us-west1-a"}, "projects/UNSPECIFIED/zones/us-west1-a/disks/d", id="one zone"),
        pytest.param({BETA_ZONE: "b", ZONE: "a"}, "projects/UNSPECIFIED/zones/b/disks/d", id="beta label first"),
        pytest.param(
            {ZONE: "us-west1-a__us-west1-b"}, "projects/UNSPECIFIED/regions/us-west1/disks/d", id="regional disk"
        ),
    ],
)
def test_gce_handles(labels, handle):
    """The handle of a GCE disk tells its zone or region, read from the labels."""
    assert csi.translate_volume(volume(labels, gcePersistentDisk={"pdName": "d"}))[0].handle == handle


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        pytest.param({}, None, None, id="no topology at all"),
        pytest.param({ZONE: "a"}, None, [[(EBS_KEY, ("a",))]], id="zone label becomes a term"),
        pytest.param({ZONE: "b__a__ a"}, None, [[(EBS_KEY, ("a", "b"))]], id="zones are sorted and counted once"),
        pytest.param({ZONE: "__"}, None, None, id="a label without a zone adds nothing"),
        pytest.param(
            {ZONE: "a"}, [[within("x", "1")]], [[("x", ("1",)), (EBS_KEY, ("a",))]], id="zone label joins every term"
        ),
        pytest.param({ZONE: "b"}, [[within(ZONE, "a")]], [[(EBS_KEY, ("a",))]], id="affinity goes before labels"),
        pytest.param(
            {},
            [[within(BETA_ZONE, "a"), within(BETA_REGION, "r")]],
            [[(EBS_KEY, ("a",)), (REGION, ("r",))]],
            id="beta labels give way",
        ),
        pytest.param(
            {},
            [[within(ZONE, "a"), within(BETA_REGION, "r")]],
            [[(EBS_KEY, ("a",)), (BETA_REGION, ("r",))]],
            id="a beta region beside today's zone stays",
        ),
    ],
)
def test_topology(labels, terms, expected):
    """Zones are expressed by the driver's label."""
    _, affinity = csi.translate_volume(volume(labels, terms, awsElasticBlockStore={"volumeID": "vol-1"}))
    shown = (
        None
        if affinity is None
        else [[(r.key, r.values) for r in t.match_expressions] for t in affinity.required.node_selector_terms]
    )
    assert shown == expected


def test_drivers_without_zones_keep_the_affinity():
    """Azure and Portworx have no topology to translate."""
    made = volume({ZONE: "a"}, [[within(ZONE, "a")]], azureDisk={"diskURI": "u"})
    assert csi.translate_volume(made)[1] is made.spec.node_affinity
