package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
)

// admit returns the object as the API server would store it when it is created.
func admit(obj runtime.Object, kind *kindInfo, classes map[string]*schedulingv1.PriorityClass) (runtime.Object, error) {
	if pod, ok := obj.(*v1.Pod); ok {
		if err := admitPriority(&pod.Spec, classes); err != nil {
			return nil, fmt.Errorf("pod %s: %w", keyOf(pod), err)
		}
		return createPod(pod)
	}
	if kind.validate == nil {
		return obj, nil
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, schema.GroupVersion{Group: kind.gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, err
	}
	if errs := kind.validate(internal); len(errs) > 0 {
		return nil, fmt.Errorf("%s %s: %w", kind.gvk.Kind, keyOf(obj), errs.ToAggregate())
	}
	return obj, nil
}

// admitPriority does what the Priority admission plugin does, except that a priority without a class is kept.
func admitPriority(spec *v1.PodSpec, classes map[string]*schedulingv1.PriorityClass) error {
	class, err := priorityClass(spec, classes)
	if err != nil {
		return err
	}
	if class != nil {
		if spec.Priority != nil && *spec.Priority != class.Value {
			return fmt.Errorf("spec.priority is %d, but its class %s says %d", *spec.Priority, class.Name, class.Value)
		}
		spec.PriorityClassName, spec.Priority = class.Name, new(class.Value)
		if spec.PreemptionPolicy == nil && class.PreemptionPolicy != nil {
			spec.PreemptionPolicy = new(*class.PreemptionPolicy)
		}
	}
	if spec.Priority == nil {
		spec.Priority = new(int32(0))
	}
	if spec.PreemptionPolicy == nil {
		spec.PreemptionPolicy = new(v1.PreemptLowerPriority)
	}
	return nil
}

// priorityClass returns the class of a pod; without a name and a priority that is the global default with the lowest
// value, if there is one.
func priorityClass(spec *v1.PodSpec, classes map[string]*schedulingv1.PriorityClass) (*schedulingv1.PriorityClass, error) {
	name := spec.PriorityClassName
	if name == "" {
		if spec.Priority != nil {
			return nil, nil
		}
		return globalDefault(classes), nil
	}
	if class := classes[name]; class != nil {
		return class, nil
	}
	builtIn := map[string]int32{
		scheduling.SystemNodeCritical:    scheduling.SystemCriticalPriority + 1000,
		scheduling.SystemClusterCritical: scheduling.SystemCriticalPriority,
	}
	value, ok := builtIn[name]
	if !ok {
		return nil, fmt.Errorf("no PriorityClass with name %s was found", name)
	}
	class := &schedulingv1.PriorityClass{Value: value}
	class.Name = name
	return class, nil
}

func globalDefault(classes map[string]*schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	var lowest *schedulingv1.PriorityClass
	for _, name := range sortedKeys(classes) {
		if class := classes[name]; class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	return lowest
}

// createPod takes a pod through the API server's create strategy, which merges matchLabelKeys into label selectors
// among other things, and validates it. The status that the case gives is kept.
func createPod(pod *v1.Pod) (*v1.Pod, error) {
	obj, err := legacyscheme.Scheme.ConvertToVersion(pod, core.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	internal := obj.(*core.Pod)
	given := internal.Status
	podregistry.Strategy.PrepareForCreate(context.Background(), internal)
	if errs := podregistry.Strategy.Validate(context.Background(), internal); len(errs) > 0 {
		return nil, fmt.Errorf("pod %s: %w", keyOf(pod), errs.ToAggregate())
	}
	internal.Status = mergeStatus(given, internal.Status)
	out, err := legacyscheme.Scheme.ConvertToVersion(internal, v1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(out)
	created := out.(*v1.Pod)
	created.TypeMeta = pod.TypeMeta
	return created, nil
}

func mergeStatus(given, fresh core.PodStatus) core.PodStatus {
	if given.Phase == "" {
		given.Phase = fresh.Phase
	}
	if given.QOSClass == "" {
		given.QOSClass = fresh.QOSClass
	}
	has := map[core.PodConditionType]bool{}
	for _, condition := range given.Conditions {
		has[condition.Type] = true
	}
	for _, condition := range fresh.Conditions {
		if !has[condition.Type] {
			given.Conditions = append(given.Conditions, condition)
		}
	}
	return given
}
