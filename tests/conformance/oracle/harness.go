package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	configvalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

const (
	configVersion = "kubescheduler.config.k8s.io/v1"
	attemptLimit  = 20 * time.Second
)

// harness is one scheduler with an API server of its own.
type harness struct {
	ctx      context.Context
	cancel   context.CancelFunc
	api      *apiServer
	listener *listener
	sched    *scheduler.Scheduler
	pods     []*v1.Pod
}

type given struct {
	obj  runtime.Object
	kind *kindInfo
}

func newHarness(c *caseIn) (*harness, error) {
	profile, err := readProfile(c.Profile)
	if err != nil {
		return nil, err
	}
	objects, pods, err := readObjects(c)
	if err != nil {
		return nil, err
	}
	h := &harness{api: newAPIServer(), listener: &listener{assumeOnly: c.AssumeOnly}, pods: pods}
	h.ctx, h.cancel = context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	if err := h.start(profile, objects); err != nil {
		h.cancel()
		return nil, err
	}
	return h, nil
}

func (h *harness) close() {
	h.cancel()
	h.sched.SchedulingQueue.Close()
	_ = h.sched.Profiles.Close()
}

// readProfile reads a profile as kube-scheduler reads its configuration file: strictly, with defaults, validated.
func readProfile(raw json.RawMessage) (config.KubeSchedulerProfile, error) {
	profiles := ""
	if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		profiles = `,"profiles":[` + string(raw) + `]`
	}
	file := `{"apiVersion":"` + configVersion + `","kind":"KubeSchedulerConfiguration"` + profiles + `}`
	obj, _, err := configscheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return config.KubeSchedulerProfile{}, fmt.Errorf("profile: %w", err)
	}
	cfg := obj.(*config.KubeSchedulerConfiguration)
	cfg.TypeMeta.APIVersion = configVersion // kube-scheduler's loader fills it in, and validation wants it
	if err := configvalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return config.KubeSchedulerProfile{}, fmt.Errorf("profile: %w", err)
	}
	p := cfg.Profiles[0]
	// No controller binds volumes here, so nothing would end VolumeBinding's wait in PreBind. What it has chosen stays
	// assumed, and the next pod finds it taken.
	if p.Plugins != nil {
		p.Plugins.PreBind.Disabled = append(p.Plugins.PreBind.Disabled, config.Plugin{Name: names.VolumeBinding})
	}
	return p, nil
}

// readObjects decodes, defaults, admits and validates everything before anything is delivered.
func readObjects(c *caseIn) ([]given, []*v1.Pod, error) {
	var objects []given
	classes := map[string]*schedulingv1.PriorityClass{}
	for i, raw := range c.Objects {
		obj, kind, err := decodeObject(raw, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		if class, ok := obj.(*schedulingv1.PriorityClass); ok {
			classes[class.Name] = class
		}
		objects = append(objects, given{obj, kind})
	}
	for i := range objects {
		obj, err := admit(objects[i].obj, objects[i].kind, classes)
		if err != nil {
			return nil, nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		objects[i].obj = obj
	}
	var pods []*v1.Pod
	for i, raw := range c.Pods {
		obj, kind, err := decodeObject(raw, &podGVK)
		if err == nil {
			obj, err = admit(obj, kind, classes)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("pods[%d]: %w", i, err)
		}
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return nil, nil, fmt.Errorf("pods[%d]: not a Pod", i)
		}
		pods = append(pods, pod)
	}
	return objects, pods, nil
}

func (h *harness) start(profile config.KubeSchedulerProfile, objects []given) error {
	client := h.api.newClient()
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, kind := range kindsInOrder {
		if kind.example != nil {
			factory.InformerFor(kind.example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
				return newInformer(h.api, kind)
			})
		}
	}
	allNodes := int32(100)
	sched, err := scheduler.New(h.ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return &eventListener{h.listener} },
		scheduler.WithComponentConfigVersion(configVersion),
		scheduler.WithProfiles(profile),
		scheduler.WithPercentageOfNodesToScore(&allNodes),
		// With more threads the order in which nodes are visited, and so which of several errors wins, is open.
		scheduler.WithParallelism(1),
	)
	if err != nil {
		return err
	}
	h.sched = sched
	h.listen()
	return h.deliver(objects)
}

// listen puts the listeners between the scheduler and its plugins.
func (h *harness) listen() {
	for name, f := range h.sched.Profiles {
		for _, plugin := range f.PreEnqueuePlugins() {
			if preemption, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				preemption.Evaluator.Interface = &preemptionListener{Interface: preemption, listener: h.listener}
			}
		}
		h.sched.Profiles[name] = &frameworkListener{Framework: f, listener: h.listener}
	}
	handle := h.sched.FailureHandler
	h.sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo,
		status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		h.listener.hear(func(a *attempt) {
			a.failure = status
			a.fitError, _ = status.AsError().(*framework.FitError)
		})
		handle(ctx, f, info, status, nominating, start)
		h.listener.hear((*attempt).finish)
	}
}

// deliver hands the objects to the informers: the kinds in their order, which ends with nodes and pods, each by name.
func (h *harness) deliver(objects []given) error {
	for _, kind := range kindsInOrder {
		var ofKind []runtime.Object
		for _, each := range objects {
			if each.kind == kind {
				ofKind = append(ofKind, each.obj)
			}
		}
		sort.SliceStable(ofKind, func(i, j int) bool { return keyOf(ofKind[i]) < keyOf(ofKind[j]) })
		for _, obj := range ofKind {
			if err := h.api.insert(kind.gvr, obj, true); err != nil {
				return err
			}
		}
	}
	return h.sched.WaitForHandlersSync(h.ctx)
}

// attempt creates the pod and lets the scheduler try it once.
func (h *harness) attempt(pod *v1.Pod) (*result, error) {
	a := newAttempt()
	h.listener.begin(a)
	h.api.deletedPods = nil
	if err := h.api.insert(podGVR, pod, false); err != nil {
		return nil, err
	}
	r := &result{Pod: keyOf(pod), Feasible: []string{}, Statuses: map[string]statusOut{}, Victims: []string{}}
	f, isOurs := h.sched.Profiles[pod.Spec.SchedulerName]
	switch {
	case isFinished(pod), pod.Spec.NodeName == "" && !isOurs:
		r.Verdict = "ignored"
		return r, nil
	case pod.Spec.NodeName != "":
		r.Verdict = "assigned"
		return r, nil
	}
	if !h.tryOnce(pod) {
		return h.gated(r, f, pod)
	}
	if a.preFilterRan || a.failure != nil { // else the pod is being deleted, and the attempt is over already
		select {
		case <-a.done:
		case <-time.After(attemptLimit):
			return nil, fmt.Errorf("pod %s: the scheduling attempt did not end", keyOf(pod))
		}
	}
	return r, h.report(r, a, pod)
}

// tryOnce says whether the pod was in the queue.
func (h *harness) tryOnce(pod *v1.Pod) bool {
	popped := false
	h.sched.NextPod = func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		info := h.sched.SchedulingQueue.PopSpecificPod(logger, pod)
		popped = info != nil
		return info, nil
	}
	h.sched.ScheduleOne(h.ctx)
	return popped
}

func (h *harness) gated(r *result, f framework.Framework, pod *v1.Pod) (*result, error) {
	r.Verdict = "gated"
	for _, plugin := range f.PreEnqueuePlugins() {
		if s := plugin.PreEnqueue(h.ctx, pod); !s.IsSuccess() {
			r.Plugin, r.Message = plugin.Name(), s.Message()
			return r, nil
		}
	}
	return nil, fmt.Errorf("pod %s is not in the queue, yet no PreEnqueue plugin rejects it", keyOf(pod))
}
