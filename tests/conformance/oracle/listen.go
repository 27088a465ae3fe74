package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// attempt is what was heard during one scheduling attempt. Binding may end on another goroutine, hence the lock.
type attempt struct {
	mu sync.Mutex

	preFilterRan    bool
	preFilter       *fwk.PreFilterResult
	preFilterStatus *fwk.Status
	narrowedBy      []string

	filtered map[string]*fwk.Status
	scores   []fwk.NodePluginScores // nil: nothing was scored
	reserved string

	postFilter       *fwk.PostFilterResult
	postFilterStatus *fwk.Status
	dryRun           map[string]*dryRun
	dryRunTies       []string

	failure  *fwk.Status // nil: the attempt did not fail
	fitError *framework.FitError
	event    string

	inPreBind, bound bool
	done             chan struct{}
	once             sync.Once
}

func newAttempt() *attempt {
	return &attempt{filtered: map[string]*fwk.Status{}, dryRun: map[string]*dryRun{}, done: make(chan struct{})}
}

func (a *attempt) finish() { a.once.Do(func() { close(a.done) }) }

// listener knows the attempt that is under way.
type listener struct {
	mu         sync.Mutex
	current    *attempt
	assumeOnly bool
}

func (l *listener) begin(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = a
}

// hear lets note write into the current attempt.
func (l *listener) hear(note func(*attempt)) {
	l.mu.Lock()
	a := l.current
	l.mu.Unlock()
	if a == nil { // a call before the first attempt
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	note(a)
}

// frameworkListener stands between the scheduler and the framework of a profile. Besides listening it changes two
// things: the value by which nodes of equal score are told apart, and, in assume-only cases, the binding.
type frameworkListener struct {
	framework.Framework
	listener *listener
}

func (f *frameworkListener) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, plugins := f.Framework.RunPreFilterPlugins(ctx, state, pod)
	f.listener.hear(func(a *attempt) {
		a.preFilterRan, a.preFilter, a.preFilterStatus = true, result, status
		a.narrowedBy = sets.List(plugins) // a copy: the scheduler goes on adding to the set
	})
	return result, status, plugins
}

func (f *frameworkListener) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	status := f.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	f.listener.hear(func(a *attempt) { a.filtered[node.Node().Name] = status })
	return status
}

func (f *frameworkListener) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := f.Framework.RunScorePlugins(ctx, state, pod, nodes)
	preferSmallestName(scores)
	f.listener.hear(func(a *attempt) { a.scores = append([]fwk.NodePluginScores{}, scores...) })
	return scores, status
}

// preferSmallestName sets what decides between nodes of equal score, the largest Randomizer, to follow the names.
func preferSmallestName(scores []fwk.NodePluginScores) {
	byName := make([]*fwk.NodePluginScores, len(scores))
	for i := range scores {
		byName[i] = &scores[i]
	}
	slices.SortFunc(byName, func(a, b *fwk.NodePluginScores) int { return strings.Compare(a.Name, b.Name) })
	for rank, each := range byName {
		each.Randomizer = len(scores) - rank
	}
}

func (f *frameworkListener) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := f.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
	f.listener.hear(func(a *attempt) { a.postFilter, a.postFilterStatus = result, status })
	return result, status
}

func (f *frameworkListener) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	f.listener.hear(func(a *attempt) { a.reserved = nodeName })
	return f.Framework.RunReservePluginsReserve(ctx, state, pod, nodeName)
}

func (f *frameworkListener) RunPreBindPreFlights(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if f.listener.assumeOnly {
		return fwk.NewStatus(fwk.Skip)
	}
	return f.Framework.RunPreBindPreFlights(ctx, state, pod, nodeName)
}

func (f *frameworkListener) RunPreBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if f.listener.assumeOnly {
		return nil
	}
	return f.Framework.RunPreBindPlugins(ctx, state, pod, nodeName)
}

func (f *frameworkListener) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if f.listener.assumeOnly {
		return nil
	}
	return f.Framework.RunBindPlugins(ctx, state, pod, nodeName)
}

// A binding ends with PostBind, or, if the pod was in PreBind meanwhile, with the removal from there that follows.

func (f *frameworkListener) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) {
	f.Framework.RunPostBindPlugins(ctx, state, pod, nodeName)
	f.listener.hear(func(a *attempt) {
		a.bound = true
		if !a.inPreBind {
			a.finish()
		}
	})
}

func (f *frameworkListener) AddPodInPreBind(uid types.UID, cancel context.CancelCauseFunc) {
	f.Framework.AddPodInPreBind(uid, cancel)
	f.listener.hear(func(a *attempt) { a.inPreBind = true })
}

func (f *frameworkListener) RemovePodInPreBind(uid types.UID) {
	f.Framework.RemovePodInPreBind(uid)
	f.listener.hear(func(a *attempt) {
		if a.bound {
			a.finish()
		}
	})
}

// eventListener is the scheduler's event recorder.
type eventListener struct{ listener *listener }

var _ events.EventRecorderLogger = &eventListener{}

func (e *eventListener) WithLogger(klog.Logger) events.EventRecorderLogger { return e }

func (e *eventListener) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	if reason != "FailedScheduling" {
		return
	}
	if len(args) > 0 { // else the note is the message itself, which may hold a percent sign
		note = fmt.Sprintf(note, args...)
	}
	e.listener.hear(func(a *attempt) { a.event = note })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
