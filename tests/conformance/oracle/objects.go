package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcevalidation "k8s.io/kubernetes/pkg/apis/resource/validation"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingvalidation "k8s.io/kubernetes/pkg/apis/scheduling/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"

	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// kindInfo describes one kind that a case may contain.
type kindInfo struct {
	gvk          schema.GroupVersionKind
	gvr          schema.GroupVersionResource
	isNamespaced bool
	example      runtime.Object                       // nil: kube-scheduler has no informer for the kind
	validate     func(runtime.Object) field.ErrorList // of the internal type, at creation; nil: not validated
}

const (
	inCluster   = false
	inNamespace = true
)

// kindsInOrder is the order in which the objects of a case are delivered: what others refer to comes first.
var kindsInOrder = []*kindInfo{
	kind("", "v1", "Namespace", "namespaces", inCluster, &v1.Namespace{}, checked(corevalidation.ValidateNamespace)),
	kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", inCluster, nil, checked(func(o *scheduling.PriorityClass) field.ErrorList {
		return schedulingvalidation.ValidatePriorityClass(o)
	})),
	kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", inCluster, &storagev1.StorageClass{}, checked(storagevalidation.ValidateStorageClass)),
	kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", inCluster, &storagev1.CSIDriver{}, checked(storagevalidation.ValidateCSIDriver)),
	kind("storage.k8s.io", "v1", "CSINode", "csinodes", inCluster, &storagev1.CSINode{}, checked(storagevalidation.ValidateCSINode)),
	kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", inNamespace, &storagev1.CSIStorageCapacity{}, checked(func(o *storage.CSIStorageCapacity) field.ErrorList {
		return storagevalidation.ValidateCSIStorageCapacity(o, storagevalidation.CSIStorageCapacityValidateOptions{})
	})),
	kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", inCluster, &storagev1.VolumeAttachment{}, checked(storagevalidation.ValidateVolumeAttachment)),
	kind("", "v1", "PersistentVolume", "persistentvolumes", inCluster, &v1.PersistentVolume{}, checked(func(o *core.PersistentVolume) field.ErrorList {
		return corevalidation.ValidatePersistentVolume(o, corevalidation.ValidationOptionsForPersistentVolume(o, nil))
	})),
	kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", inNamespace, &v1.PersistentVolumeClaim{}, checked(func(o *core.PersistentVolumeClaim) field.ErrorList {
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaimCreate())
	})),
	// Of these four the scheduler reads little, so that a case may leave out the rest.
	kind("", "v1", "Service", "services", inNamespace, &v1.Service{}, nil),
	kind("", "v1", "ReplicationController", "replicationcontrollers", inNamespace, &v1.ReplicationController{}, nil),
	kind("apps", "v1", "ReplicaSet", "replicasets", inNamespace, &appsv1.ReplicaSet{}, nil),
	kind("apps", "v1", "StatefulSet", "statefulsets", inNamespace, &appsv1.StatefulSet{}, nil),
	kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", inNamespace, &policyv1.PodDisruptionBudget{}, checked(func(o *policy.PodDisruptionBudget) field.ErrorList {
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	})),
	kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", inCluster, &resourcev1.DeviceClass{}, checked(func(o *resource.DeviceClass) field.ErrorList {
		return resourcevalidation.ValidateDeviceClass(o)
	})),
	kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", inCluster, &resourcev1.ResourceSlice{}, checked(func(o *resource.ResourceSlice) field.ErrorList {
		return resourcevalidation.ValidateResourceSlice(o)
	})),
	kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", inNamespace, nil, checked(func(o *resource.ResourceClaimTemplate) field.ErrorList {
		return resourcevalidation.ValidateResourceClaimTemplate(o)
	})),
	kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", inNamespace, &resourcev1.ResourceClaim{}, checked(func(o *resource.ResourceClaim) field.ErrorList {
		return resourcevalidation.ValidateResourceClaim(o)
	})),
	kind("", "v1", "Node", "nodes", inCluster, &v1.Node{}, checked(func(o *core.Node) field.ErrorList {
		return corevalidation.ValidateNode(o)
	})),
	kind("", "v1", "Pod", "pods", inNamespace, &v1.Pod{}, nil), // see admission.go
}

func kind(group, version, name, plural string, isNamespaced bool, example runtime.Object, validate func(runtime.Object) field.ErrorList) *kindInfo {
	gv := schema.GroupVersion{Group: group, Version: version}
	return &kindInfo{gv.WithKind(name), gv.WithResource(plural), isNamespaced, example, validate}
}

func checked[T any](validate func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList { return validate(obj.(T)) }
}

var (
	podGVK = v1.SchemeGroupVersion.WithKind("Pod")
	podGVR = v1.SchemeGroupVersion.WithResource("pods")

	strictCodecs = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
)

func kindOf(gvk schema.GroupVersionKind) (*kindInfo, error) {
	for _, kind := range kindsInOrder {
		if kind.gvk == gvk {
			return kind, nil
		}
	}
	return nil, fmt.Errorf("kind %s is not accepted", gvk)
}

// decodeObject decodes strictly (unknown and repeated fields are errors), applies the API's defaults, and fills in what
// the API server would generate. assumed is the kind of an object that does not say one.
func decodeObject(raw json.RawMessage, assumed *schema.GroupVersionKind) (runtime.Object, *kindInfo, error) {
	obj, gvk, err := strictCodecs.UniversalDeserializer().Decode(raw, assumed, nil)
	if err != nil {
		return nil, nil, err
	}
	kind, err := kindOf(*gvk)
	if err != nil {
		return nil, nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case m.GetName() == "":
		return nil, nil, fmt.Errorf("%s without metadata.name", gvk.Kind)
	case !kind.isNamespaced && m.GetNamespace() != "":
		return nil, nil, fmt.Errorf("%s %q: metadata.namespace is not allowed", gvk.Kind, m.GetName())
	case kind.isNamespaced && m.GetNamespace() == "":
		m.SetNamespace("default")
	}
	if m.GetUID() == "" {
		m.SetUID(makeUID(gvk.Kind, m.GetNamespace(), m.GetName()))
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	legacyscheme.Scheme.Default(obj)
	return obj, kind, nil
}

// makeUID derives a UID from kind, namespace and name.
func makeUID(kind, namespace, name string) types.UID {
	s := md5.Sum([]byte(kind + "/" + namespace + "/" + name))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16]))
}
