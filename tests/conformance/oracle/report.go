package main

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// report fills in the result from what was heard.
func (h *harness) report(r *result, a *attempt, pod *v1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	infos, err := h.sched.Profiles[pod.Spec.SchedulerName].SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return err
	}
	nodes := make([]string, len(infos))
	for i, info := range infos {
		nodes[i] = info.Node().Name
	}
	reportPreFilter(r, a)
	switch {
	case a.failure != nil:
		reportFailed(r, a, nodes)
	case a.bound:
		reportScheduled(r, a, pod, nodes)
	default: // the pod is being deleted
		r.Verdict, r.Message = "skipped", a.event
	}
	reportPreemption(r, a, h.api.deletedPods)
	if r.Verdict != "scheduled" {
		obj, err := h.api.get(podGVR, pod.Namespace, pod.Name)
		if err != nil {
			return errors.New("the pod is gone after its own attempt")
		}
		r.Nominated = obj.(*v1.Pod).Status.NominatedNodeName
	}
	return nil
}

func reportPreFilter(r *result, a *attempt) {
	if !a.preFilterRan {
		return
	}
	if !a.preFilterStatus.IsSuccess() {
		status := toStatus(a.preFilterStatus)
		r.PreFilter = &status
	} else if !a.preFilter.AllNodes() {
		r.PreFilterNodes = sortedKeys(a.preFilter.NodeNames)
	}
}

func reportFailed(r *result, a *attempt, nodes []string) {
	r.Verdict = "error"
	if a.failure.IsRejected() {
		r.Verdict = "unschedulable"
	}
	r.Message = a.failure.Message()
	if a.event != r.Message {
		r.Event = a.event
	}
	if a.fitError != nil {
		diagnosis := a.fitError.Diagnosis
		for _, name := range nodes {
			r.Statuses[name] = toStatus(diagnosis.NodeToStatus.Get(name))
		}
		r.UnschedulablePlugins = sortedKeys(diagnosis.UnschedulablePlugins.Union(diagnosis.PendingPlugins))
	}
	r.Chosen = a.reserved // the pod was rejected after a node was chosen
}

func reportScheduled(r *result, a *attempt, pod *v1.Pod, nodes []string) {
	r.Verdict, r.Chosen = "scheduled", a.reserved
	for _, name := range nodes {
		status, tried := a.filtered[name]
		switch {
		case tried && status.IsSuccess():
			r.Feasible = append(r.Feasible, name)
		case tried:
			r.Statuses[name] = toStatus(status)
		case !a.preFilter.AllNodes() && !a.preFilter.NodeNames.Has(name):
			// What kube-scheduler would say about the node if the pod had not been scheduled elsewhere.
			reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", a.narrowedBy)
			r.Statuses[name] = statusOut{Code: fwk.UnschedulableAndUnresolvable.String(), Reasons: []string{reason}}
		}
	}
	slices.Sort(r.Feasible)
	// A nominated node is tried alone first; if it fits, no other is looked at.
	nominated := pod.Status.NominatedNodeName
	if nominated != "" && nominated == a.reserved && len(a.filtered) == 1 && len(nodes) > 1 {
		r.NominatedFirst, r.Statuses = true, map[string]statusOut{}
	}
	reportScores(r, a)
}

func reportScores(r *result, a *attempt) {
	if a.scores == nil {
		r.Best = []string{a.reserved}
		return
	}
	r.Scores, r.Totals = map[string]map[string]int64{}, map[string]int64{}
	best := a.scores[0].TotalScore
	for _, node := range a.scores {
		for _, plugin := range node.Scores {
			if r.Scores[plugin.Name] == nil {
				r.Scores[plugin.Name] = map[string]int64{}
			}
			r.Scores[plugin.Name][node.Name] = plugin.Score
		}
		r.Totals[node.Name] = node.TotalScore
		best = max(best, node.TotalScore)
	}
	for _, name := range sortedKeys(r.Totals) {
		if r.Totals[name] == best {
			r.Best = append(r.Best, name)
		}
	}
}

func reportPreemption(r *result, a *attempt, deleted []string) {
	if len(a.dryRun) > 0 {
		r.Preemption = &preemptionOut{Candidates: map[string]candidateOut{}, Rejected: map[string]statusOut{}}
		for node, run := range a.dryRun {
			if run.status.IsSuccess() {
				r.Preemption.Candidates[node] = candidateOut{podKeys(run.victims), run.violations, run.orderTies}
			} else {
				r.Preemption.Rejected[node] = toStatus(run.status)
			}
		}
		if len(a.dryRunTies) > 1 {
			r.Preemption.Ties = a.dryRunTies
		}
	}
	if a.postFilter != nil && a.postFilterStatus.IsSuccess() {
		if run := a.dryRun[a.postFilter.NominatedNodeName]; run != nil {
			r.Victims = podKeys(run.victims)
		}
	}
	if deleted = slices.Sorted(slices.Values(deleted)); !slices.Equal(deleted, r.Victims) {
		r.Deleted = deleted
	}
}

func toStatus(s *fwk.Status) statusOut {
	// Sorted, because some plugins list their reasons in map order.
	reasons := append([]string{}, slices.Sorted(slices.Values(s.Reasons()))...)
	return statusOut{Code: s.Code().String(), Plugin: s.Plugin(), Reasons: reasons}
}

func podKeys(pods []*v1.Pod) []string {
	keys := make([]string, 0, len(pods))
	for _, pod := range pods {
		keys = append(keys, keyOf(pod))
	}
	slices.Sort(keys)
	return keys
}
