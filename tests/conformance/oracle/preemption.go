package main

import (
	"context"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// dryRun is what preemption found out about one node.
type dryRun struct {
	victims    []*v1.Pod
	violations int
	orderTies  bool
	status     *fwk.Status
}

// preemptionListener stands between the preemption evaluator and the DefaultPreemption plugin. Besides listening it
// replaces the two random choices of preemption: the node at which the dry run starts is the first, and among nodes
// that are equally good the smallest name wins.
type preemptionListener struct {
	preemption.Interface
	listener *listener
}

func (p *preemptionListener) GetOffsetAndNumCandidates(nodes int32) (int32, int32) {
	_, candidates := p.Interface.GetOffsetAndNumCandidates(nodes)
	return 0, candidates
}

func (p *preemptionListener) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	orderTies := hasOrderTies(pod, node) // before the victims are taken off the node
	victims, violations, status := p.Interface.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
	p.listener.hear(func(a *attempt) {
		a.dryRun[node.Node().Name] = &dryRun{victims, violations, orderTies, status}
	})
	return victims, violations, status
}

// hasOrderTies says whether two pods that could be victims have the same priority and start time.
func hasOrderTies(preemptor *v1.Pod, node fwk.NodeInfo) bool {
	type rank struct {
		priority int32
		start    int64
	}
	seen := map[rank]bool{}
	for _, info := range node.GetPods() {
		pod := info.GetPod()
		if corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(preemptor) {
			continue
		}
		r := rank{corev1helpers.PodPriority(pod), math.MaxInt64}
		if pod.Status.StartTime != nil {
			r.start = pod.Status.StartTime.UnixNano()
		}
		if seen[r] {
			return true
		}
		seen[r] = true
	}
	return false
}

// weight is what the evaluator compares nodes by; larger is better, and an earlier number outranks the later ones.
// kube-scheduler uses its own five comparisons only if a plugin offers none, and a sixth cannot be added to them, so
// they are stated here once more: after a new Kubernetes version, compare with pickOneNodeForPreemption in
// k8s.io/kubernetes/pkg/scheduler/framework/preemption.
type weight [6]int64

func weigh(victims *extenderv1.Victims, nameRank int) weight {
	sum := int64(0)
	for _, pod := range victims.Pods {
		sum += int64(corev1helpers.PodPriority(pod)) - math.MinInt32 // never negative, so that more pods weigh more
	}
	start := int64(math.MinInt64)
	if earliest := util.GetEarliestPodStartTime(victims); earliest != nil {
		start = earliest.UnixNano()
	}
	return weight{
		-victims.NumPDBViolations,
		-int64(corev1helpers.PodPriority(victims.Pods[0])), // the first has the highest priority
		-sum,
		-int64(len(victims.Pods)),
		start,
		-int64(nameRank),
	}
}

func (p *preemptionListener) OrderedScoreFuncs(_ context.Context, victims map[string]*extenderv1.Victims) []func(string) int64 {
	weights := make(map[string]weight, len(victims))
	for rank, name := range sortedKeys(victims) {
		weights[name] = weigh(victims[name], rank)
	}
	p.listener.hear(func(a *attempt) { a.dryRunTies = equallyGood(weights) })
	var functions []func(string) int64
	for i := range len(weight{}) {
		functions = append(functions, func(node string) int64 { return weights[node][i] })
	}
	return functions
}

// equallyGood returns the nodes between which only the name decides.
func equallyGood(weights map[string]weight) []string {
	var best weight
	var nodes []string
	for _, name := range sortedKeys(weights) {
		w := weights[name]
		order := slices.Compare(w[:5], best[:5])
		if nodes == nil || order > 0 {
			best, nodes = w, []string{name}
		} else if order == 0 {
			nodes = append(nodes, name)
		}
	}
	return nodes
}
