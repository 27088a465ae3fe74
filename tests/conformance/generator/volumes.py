"""Features about storage: claims, volumes, classes, capacity, inline disks, attach limits."""

from __future__ import annotations

from tests.conformance.generator.builder import CaseBuilder
from tests.conformance.generator.feature import Feature, Json
from tests.conformance.generator.vocabulary import HOST, REGION, ZONE, stamp, uid


class Volumes(Feature):
    """Claims, volumes, storage classes, zones, capacity, inline disks."""

    name = "volumes"
    weight = 3.0

    def cluster(self, case: CaseBuilder) -> None:
        rng = case.rng
        self.n = 0
        self.rwop = []
        # The kind of inline disk that many pods of this case use.
        self.kind = rng.randrange(5)
        topo = [{"matchLabelExpressions": [{"key": ZONE, "values": case.some(case.zones, 1, 2)}]}]

        def sc(name, provisioner, mode=None, **kw):
            o = {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": provisioner,
                **kw,
            }
            if mode:
                o["volumeBindingMode"] = mode
            case.add(o)

        wait = "WaitForFirstConsumer"
        sc("now", "csi.example.com")
        sc("wait", "csi.example.com", wait)
        sc("wait-zone", "csi.example.com", wait, allowedTopologies=topo)
        sc("local", "kubernetes.io/no-provisioner", wait)
        sc("cap", "cap.example.com", wait)
        if case.chance(0.9):
            case.add(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": {"name": "cap.example.com"},
                    "spec": {"storageCapacity": case.chance(0.9)},
                }
            )
        case.add(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": "csi.example.com"},
                "spec": {},
            }
        )
        for i, z in enumerate(case.zones):
            if case.chance(0.75):
                c = {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIStorageCapacity",
                    "metadata": {"name": f"cap-{i}", "namespace": "default"},
                    "storageClassName": "cap" if case.chance(0.9) else "wait",
                    "capacity": f"{rng.choice([1, 5, 20, 100])}Gi",
                }
                if case.chance(0.9):
                    c["nodeTopology"] = {"matchLabels": {ZONE: z}}
                if case.chance(0.3):
                    c["maximumVolumeSize"] = f"{rng.choice([1, 10, 50])}Gi"
                case.add(c)
        # Free volumes that claims can be matched with.
        for _ in range(rng.choice([0, 1, 3, 6])):
            self.pv(case, cls=rng.choice(["local", "local", "wait", "wait-zone"]), size=rng.randrange(1, 30))

    def pv(self, case: CaseBuilder, cls, size, claim=None, source=None, modes=None):
        rng = case.rng
        self.n += 1
        name = f"pv-{self.n}"
        spec = {
            "capacity": {"storage": f"{size * 1024 + self.n}Mi"},
            "accessModes": modes or [rng.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany"])],
        }
        if cls:
            spec["storageClassName"] = cls
        meta = {"name": name, "uid": uid("PersistentVolume", "", name)}
        node = case.pick(case.nodes)
        kind = source or rng.choice(["csi", "csi", "local", "zone", "nfs"])
        if kind == "csi":
            spec["csi"] = {"driver": "csi.example.com", "volumeHandle": f"vol-{self.n}"}
            if case.chance(0.6):
                spec["nodeAffinity"] = {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": ZONE, "operator": "In", "values": case.some(case.zones, 1, 2)}
                                ]
                            }
                        ]
                    }
                }
        elif kind == "local":
            spec["local"] = {"path": f"/mnt/disks/{self.n}"}
            spec["nodeAffinity"] = {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node["metadata"]["name"]]}]}
                    ]
                }
            }
        elif kind == "zone":
            spec["nfs"] = {"server": "nfs.example.com", "path": "/a"}
            z = "__".join(case.some(case.zones, 1, 2)) if case.chance(0.3) else rng.choice([*case.zones, "zone-9"])
            meta["labels"] = {rng.choice([ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone"]): z}
            if case.chance(0.3):
                meta["labels"][REGION] = rng.choice(["region-1", "region-2"])
        elif kind == "nfs":
            spec["nfs"] = {"server": "nfs.example.com", "path": "/b"}
        elif kind == "aws":
            spec["awsElasticBlockStore"] = {"volumeID": f"vol-0{self.n}"}
            meta["labels"] = {ZONE: case.pick(case.zones)}
        elif kind == "gce":
            spec["gcePersistentDisk"] = {"pdName": f"pd-{self.n}"}
            meta["labels"] = {ZONE: case.pick(case.zones)}
        elif kind == "azure":
            spec["azureDisk"] = {
                "diskName": f"d-{self.n}",
                "diskURI": f"/subscriptions/x/d-{self.n}",
                "kind": "Managed",
            }
        if claim:
            spec["claimRef"] = claim
        if case.chance(0.05):
            spec["volumeMode"] = "Block"
        if case.chance(0.1):
            meta.setdefault("labels", {})["kind"] = rng.choice(["fast", "slow"])
        pv = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": "Bound" if claim else "Available"},
        }
        case.add(pv)
        return name

    def pvc(self, case: CaseBuilder, ns, name=None, owner=None):
        """Adds a claim in some state and returns its name."""
        rng = case.rng
        self.n += 1
        name = name or f"claim-{self.n}"
        u = uid("PersistentVolumeClaim", ns, name)
        size = rng.choice([1, 1, 2, 5, 10, 40])
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{size}Gi"}}}
        meta = {"name": name, "namespace": ns, "uid": u}
        status = {"phase": "Pending"}
        if owner:
            meta["ownerReferences"] = [owner]
        x = rng.random()
        bad = case.chance(0.2 * case.hard)
        if bad:
            kind = rng.choice(["missing", "lost", "deleted", "nopv", "immediate", "nosc", "prebound", "noclass"])
            if kind == "missing":
                return name
            if kind in ("lost", "deleted", "nopv"):
                spec["volumeName"] = "pv-gone"
                if kind != "nopv":
                    spec["volumeName"] = self.pv(case, "wait", size, {"namespace": ns, "name": name, "uid": u})
                spec["storageClassName"] = "wait"
                meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
                status["phase"] = "Lost" if kind == "lost" else "Bound"
                if kind == "deleted":
                    meta["deletionTimestamp"] = stamp(5000)
                    meta["finalizers"] = ["kubernetes.io/pvc-protection"]
            elif kind == "immediate":
                spec["storageClassName"] = "now"
            elif kind == "nosc":
                spec["storageClassName"] = "gone"
            elif kind == "noclass":
                spec["storageClassName"] = ""
            else:
                spec["storageClassName"] = "wait"
                spec["volumeName"] = self.pv(case, "wait", size, {"namespace": ns, "name": name, "uid": u})
        elif x < 0.5:
            cls = rng.choice(["now", "wait", "local", None])
            mode = rng.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"])
            src = rng.choice([None, None, None, "aws", "gce", "azure"])
            spec["accessModes"] = [mode]
            spec["volumeName"] = self.pv(case, cls, size, {"namespace": ns, "name": name, "uid": u}, src, [mode])
            spec["storageClassName"] = cls or ""
            meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            status["phase"] = "Bound"
        else:
            spec["storageClassName"] = rng.choice(["wait", "wait-zone", "local", "local", "cap", "cap"])
            if case.chance(0.1):
                meta["annotations"] = {"volume.kubernetes.io/selected-node": case.pick(case.nodes)["metadata"]["name"]}
            if case.chance(0.15):
                spec["selector"] = {"matchLabels": {"kind": "fast"}}
            if spec["storageClassName"] == "local" and case.chance(0.5):
                for _ in range(rng.choice([1, 2])):
                    self.pv(case, "local", size + rng.choice([0, 1, 7]), source="local", modes=["ReadWriteOnce"])
        case.add(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": status}
        )
        if spec["accessModes"] == ["ReadWriteOncePod"] and not owner:
            self.rwop.append((ns, name))
        return name

    def inline(self, case: CaseBuilder):
        x = self.kind if case.chance(0.5) else case.rng.randrange(9)
        if x == 0:
            return {"awsElasticBlockStore": {"volumeID": f"vol-{case.rng.choice([1, 2, 3])}"}}
        if x == 1:
            return {
                "gcePersistentDisk": {
                    "pdName": f"pd-{case.rng.choice([1, 2, 3])}",
                    **({"readOnly": True} if case.chance(0.5) else {}),
                }
            }
        if x == 2:
            return {
                "azureDisk": {
                    "diskName": "disk-1",
                    "diskURI": f"/subscriptions/x/disk-{case.rng.choice([1, 2])}",
                    "kind": "Managed",
                }
            }
        if x == 3:
            return {
                "iscsi": {
                    "targetPortal": "10.0.0.9:3260",
                    "iqn": f"iqn.2025-01.example.com:t{case.rng.choice([1, 2])}",
                    "lun": 0,
                    **({"readOnly": True} if case.chance(0.4) else {}),
                }
            }
        if x == 4:
            return {
                "rbd": {
                    "monitors": case.some(["10.0.1.1:6789", "10.0.1.2:6789", "10.0.1.3:6789"], 1, 2),
                    "image": f"img-{case.rng.choice([1, 2])}",
                    **({"readOnly": True} if case.chance(0.4) else {}),
                }
            }
        if x == 5:
            return {"emptyDir": {}}
        if x == 6:
            return {"hostPath": {"path": "/var/data"}}
        if x == 7:
            return {"configMap": {"name": "conf"}}
        return {"secret": {"secretName": "s"}}

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        vols = []
        ns = pod["metadata"].get("namespace", "default")
        if case.chance(0.35):
            vols.append(self.inline(case))
        if case.chance(0.15):
            name = "used-{}".format(pod["metadata"]["name"])
            u = uid("PersistentVolumeClaim", ns, name)
            mode = case.rng.choice(["ReadWriteOnce", "ReadWriteOncePod"])
            pv = self.pv(case, "now", 5, {"namespace": ns, "name": name, "uid": u}, "nfs", [mode])
            case.add(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {
                        "name": name,
                        "namespace": ns,
                        "uid": u,
                        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                    },
                    "spec": {
                        "accessModes": [mode],
                        "storageClassName": "now",
                        "volumeName": pv,
                        "resources": {"requests": {"storage": "5Gi"}},
                    },
                    "status": {"phase": "Bound"},
                }
            )
            vols.append({"persistentVolumeClaim": {"claimName": name}})
            if mode == "ReadWriteOncePod":
                self.rwop.append((ns, name))
        if vols:
            pod["spec"]["volumes"] = [{"name": f"v{i}", **v} for i, v in enumerate(vols)]

    def target(self, case: CaseBuilder, pod: Json) -> None:
        ns = pod["metadata"].get("namespace", "default")
        vols = []
        for _ in range(case.rng.choice([1, 1, 1, 2, 3])):
            x = case.rng.random()
            if x < 0.25:
                vols.append(self.inline(case))
            elif x < 0.33 and [c for c in self.rwop if c[0] == ns]:
                vols.append(
                    {"persistentVolumeClaim": {"claimName": case.pick([c for c in self.rwop if c[0] == ns])[1]}}
                )
            elif x < 0.42:
                vname = f"v{len(vols)}"
                u = uid("Pod", ns, pod["metadata"]["name"])
                pod["metadata"]["uid"] = u
                if case.chance(0.85):
                    owner = {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": pod["metadata"]["name"],
                        "uid": u if case.chance(0.93) else "other",
                        "controller": True,
                    }
                    self.pvc(case, ns, "{}-{}".format(pod["metadata"]["name"], vname), owner)
                vols.append(
                    {
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "storageClassName": "wait",
                                    "resources": {"requests": {"storage": "1Gi"}},
                                }
                            }
                        }
                    }
                )
            else:
                vols.append({"persistentVolumeClaim": {"claimName": self.pvc(case, ns)}})
        pod["spec"]["volumes"] = [{"name": f"v{i}", **v} for i, v in enumerate(vols)]


class CSILimits(Feature):
    """CSINode attach limits."""

    name = "csilimits"

    def cluster(self, case: CaseBuilder) -> None:
        self.n = 0
        self.free = []
        for n in case.nodes:
            if case.chance(0.85):
                drivers = []
                for d in ("disk.example.com", "ebs.csi.aws.com"):
                    if case.chance(0.85):
                        o = {"name": d, "nodeID": n["metadata"]["name"]}
                        if case.chance(0.85):
                            o["allocatable"] = {"count": case.rng.choice([0, 1, 1, 2, 3])}
                        drivers.append(o)
                meta = {"name": n["metadata"]["name"]}
                if case.chance(0.6):
                    meta["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
                case.add(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": meta,
                        "spec": {"drivers": drivers},
                    }
                )

    def claim(self, case: CaseBuilder, ns):
        if self.free and case.chance(0.25):
            mine = [c for c in self.free if c[0] == ns]
            if mine:
                return case.pick(mine)[1]
        self.n += 1
        name, pv = f"disk-{self.n}", f"pv-disk-{self.n}"
        u = uid("PersistentVolumeClaim", ns, name)
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "disk",
            "claimRef": {"namespace": ns, "name": name, "uid": u},
        }
        if case.chance(0.75):
            spec["csi"] = {"driver": "disk.example.com", "volumeHandle": f"h-{self.n}"}
        else:
            spec["awsElasticBlockStore"] = {"volumeID": f"vol-d{self.n}"}
        case.add(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": pv},
                "spec": spec,
                "status": {"phase": "Bound"},
            }
        )
        case.add(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": ns,
                    "uid": u,
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "disk",
                    "volumeName": pv,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Bound"},
            }
        )
        self.free.append((ns, name))
        return name

    def decorate(self, case: CaseBuilder, pod, n):
        ns = pod["metadata"].get("namespace", "default")
        vols = pod["spec"].setdefault("volumes", [])
        for _ in range(n):
            vols.append({"name": f"d{len(vols)}", "persistentVolumeClaim": {"claimName": self.claim(case, ns)}})

    def bound(self, case: CaseBuilder, pod: Json, node: Json) -> None:
        if case.chance(0.4):
            self.decorate(case, pod, 1)

    def target(self, case: CaseBuilder, pod: Json) -> None:
        if case.chance(0.9):
            self.decorate(case, pod, case.rng.choice([1, 1, 2, 3]))
        elif case.chance(0.5):
            pod["spec"].setdefault("volumes", []).append(
                {"name": "inline", "awsElasticBlockStore": {"volumeID": "vol-inline"}}
            )

    def finish(self, case: CaseBuilder) -> None:
        if case.chance(0.3) and self.n:
            for i in range(case.rng.choice([1, 2])):
                case.add(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "VolumeAttachment",
                        "metadata": {"name": f"va-{i}"},
                        "spec": {
                            "attacher": "disk.example.com",
                            "nodeName": case.pick(case.nodes)["metadata"]["name"],
                            "source": {"persistentVolumeName": f"pv-disk-{case.rng.randint(1, self.n)}"},
                        },
                    }
                )
