package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// firstStart is the start time of the first pod that is bound in a case; each further one starts a second later.
var firstStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// apiServer plays the API server of one case. It answers every call of the fake clientset, and hands each change to the
// informer of the resource before the call returns, so that nothing is ever waited for.
type apiServer struct {
	mu                    sync.Mutex
	version               int64
	generatedNames, bound int
	resources             map[schema.GroupVersionResource]*resourceStore
	deletedPods           []string // through the API, since the attempt began
}

type resourceStore struct {
	kind     *kindInfo
	objects  map[string]runtime.Object
	informer *informer // nil: nothing of the scheduler watches this resource
}

func newAPIServer() *apiServer {
	s := &apiServer{version: 1, resources: map[schema.GroupVersionResource]*resourceStore{}}
	for _, kind := range kindsInOrder {
		s.resources[kind.gvr] = &resourceStore{kind: kind, objects: map[string]runtime.Object{}}
	}
	return s
}

// newClient returns a clientset whose every call ends here. Informers do not use it, so there is no list and no watch.
func (s *apiServer) newClient() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := s.handle(action)
		return true, obj, err
	})
	return client
}

func (s *apiServer) handle(action clienttesting.Action) (runtime.Object, error) {
	gvr, namespace := action.GetResource(), action.GetNamespace()
	if _, ok := s.resources[gvr]; !ok {
		return nil, fmt.Errorf("the oracle does not serve %s of %v", action.GetVerb(), gvr)
	}
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		return copied(s.get(gvr, namespace, a.GetName()))
	case clienttesting.CreateActionImpl:
		if a.GetSubresource() == "binding" {
			return a.GetObject(), s.bind(a.GetObject().(*v1.Binding), namespace)
		}
		return copied(s.create(gvr, namespace, a.GetObject().DeepCopyObject()))
	case clienttesting.UpdateActionImpl:
		return copied(s.update(gvr, namespace, a.GetObject(), a.GetSubresource()))
	case clienttesting.PatchActionImpl:
		return copied(s.patch(gvr, namespace, a))
	case clienttesting.DeleteActionImpl:
		return nil, s.remove(gvr, namespace, a.GetName())
	}
	return nil, fmt.Errorf("the oracle does not serve %T", action)
}

func copied(obj runtime.Object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return obj.DeepCopyObject(), nil
}

func (s *apiServer) get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, ok := s.resources[gvr].objects[joinKey(namespace, name)]
	if !ok {
		return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	return obj, nil
}

func (s *apiServer) create(gvr schema.GroupVersionResource, namespace string, obj runtime.Object) (runtime.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(namespace)
	}
	if m.GetName() == "" {
		s.generatedNames++
		m.SetName(fmt.Sprintf("%s%05d", m.GetGenerateName(), s.generatedNames))
	}
	if m.GetUID() == "" {
		m.SetUID(makeUID(s.resources[gvr].kind.gvk.Kind, m.GetNamespace(), m.GetName()))
	}
	return obj, s.insert(gvr, obj, false)
}

// insert stores a new object and delivers it.
func (s *apiServer) insert(gvr schema.GroupVersionResource, obj runtime.Object, isInitial bool) error {
	s.mu.Lock()
	r, key := s.resources[gvr], keyOf(obj)
	if _, ok := r.objects[key]; ok {
		s.mu.Unlock()
		return apierrors.NewAlreadyExists(gvr.GroupResource(), key)
	}
	s.stamp(obj)
	r.objects[key] = obj
	s.mu.Unlock()
	if r.informer != nil {
		r.informer.added(obj, isInitial)
	}
	return nil
}

func (s *apiServer) stamp(obj runtime.Object) {
	s.version++
	m, _ := meta.Accessor(obj)
	m.SetResourceVersion(strconv.FormatInt(s.version, 10))
}

// replace stores obj, which nobody else holds yet, in place of its older version, and delivers it.
func (s *apiServer) replace(gvr schema.GroupVersionResource, obj runtime.Object) (runtime.Object, error) {
	s.mu.Lock()
	r, key := s.resources[gvr], keyOf(obj)
	old, ok := r.objects[key]
	if !ok {
		s.mu.Unlock()
		return nil, apierrors.NewNotFound(gvr.GroupResource(), key)
	}
	oldMeta, _ := meta.Accessor(old)
	newMeta, _ := meta.Accessor(obj)
	if version := newMeta.GetResourceVersion(); version != "" && version != oldMeta.GetResourceVersion() {
		s.mu.Unlock()
		return nil, apierrors.NewConflict(gvr.GroupResource(), key, fmt.Errorf("the object has been modified"))
	}
	s.stamp(obj)
	newMeta.SetUID(oldMeta.GetUID())
	r.objects[key] = obj
	s.mu.Unlock()
	if r.informer != nil {
		r.informer.changed(old, obj)
	}
	return obj, nil
}

// update stores an object without its status, or, for the subresource, the status alone.
func (s *apiServer) update(gvr schema.GroupVersionResource, namespace string, obj runtime.Object, subresource string) (runtime.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	old, err := s.get(gvr, namespace, m.GetName())
	if err != nil {
		return nil, err
	}
	given, kept := obj.DeepCopyObject(), old.DeepCopyObject()
	switch subresource {
	case "":
		setStatus(given, kept)
		return s.replace(gvr, given)
	case "status":
		setStatus(kept, given)
		keptMeta, _ := meta.Accessor(kept)
		keptMeta.SetResourceVersion(m.GetResourceVersion())
		return s.replace(gvr, kept)
	}
	return nil, fmt.Errorf("update of %v/%s is not served", gvr, subresource)
}

func setStatus(target, source runtime.Object) {
	to := reflect.ValueOf(target).Elem().FieldByName("Status")
	from := reflect.ValueOf(source).Elem().FieldByName("Status")
	if to.IsValid() && from.IsValid() {
		to.Set(from)
	}
}

func (s *apiServer) patch(gvr schema.GroupVersionResource, namespace string, a clienttesting.PatchActionImpl) (runtime.Object, error) {
	if a.GetPatchType() != types.StrategicMergePatchType {
		return nil, fmt.Errorf("patch type %s is not served", a.GetPatchType())
	}
	old, err := s.get(gvr, namespace, a.GetName())
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	obj := reflect.New(reflect.TypeOf(old).Elem()).Interface().(runtime.Object)
	after, err := strategicpatch.StrategicMergePatch(before, a.GetPatch(), obj)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, obj); err != nil {
		return nil, err
	}
	if err := sameUID(gvr, old, obj); err != nil {
		return nil, err
	}
	return s.update(gvr, namespace, obj, a.GetSubresource())
}

func sameUID(gvr schema.GroupVersionResource, old, obj runtime.Object) error {
	oldMeta, _ := meta.Accessor(old)
	newMeta, _ := meta.Accessor(obj)
	if oldMeta.GetUID() == newMeta.GetUID() {
		return nil
	}
	return apierrors.NewConflict(gvr.GroupResource(), oldMeta.GetName(), fmt.Errorf("UID mismatch"))
}

// remove deletes at once, without a grace period; finalizers hold back everything but pods.
func (s *apiServer) remove(gvr schema.GroupVersionResource, namespace, name string) error {
	obj, err := s.get(gvr, namespace, name)
	if err != nil {
		return err
	}
	if m, _ := meta.Accessor(obj); len(m.GetFinalizers()) > 0 && gvr != podGVR {
		return s.markDeleted(gvr, obj.DeepCopyObject())
	}
	s.mu.Lock()
	r, key := s.resources[gvr], joinKey(namespace, name)
	delete(r.objects, key)
	if gvr == podGVR {
		s.deletedPods = append(s.deletedPods, key)
	}
	s.mu.Unlock()
	if r.informer != nil {
		r.informer.removed(obj)
	}
	return nil
}

func (s *apiServer) markDeleted(gvr schema.GroupVersionResource, obj runtime.Object) error {
	m, _ := meta.Accessor(obj)
	if m.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(firstStart)
		m.SetDeletionTimestamp(&now)
	}
	_, err := s.replace(gvr, obj)
	return err
}

// bind sets what the binding subresource sets, and the start time as a kubelet would.
func (s *apiServer) bind(binding *v1.Binding, namespace string) error {
	obj, err := s.get(podGVR, namespace, binding.Name)
	if err != nil {
		return err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	if binding.UID != "" && binding.UID != pod.UID {
		return apierrors.NewConflict(podGVR.GroupResource(), binding.Name, fmt.Errorf("UID mismatch"))
	}
	if pod.Spec.NodeName != "" {
		return apierrors.NewConflict(podGVR.GroupResource(), binding.Name, fmt.Errorf("the pod is on node %q already", pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.NominatedNodeName = ""
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	start := metav1.NewTime(firstStart.Add(time.Duration(s.bound) * time.Second))
	pod.Status.StartTime = &start
	s.bound++
	_, err = s.replace(podGVR, pod)
	return err
}

func keyOf(obj runtime.Object) string {
	m, _ := meta.Accessor(obj)
	return joinKey(m.GetNamespace(), m.GetName())
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
