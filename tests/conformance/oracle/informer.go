package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// informer is a shared informer without goroutines: the API server calls it, and it has updated its index and called
// its handlers before it returns. To kube-scheduler it looks like one that has started and synced.
type informer struct {
	name     string
	index    orderedIndexer
	handlers []cache.ResourceEventHandler
}

var _ cache.SharedIndexInformer = &informer{}

func newInformer(s *apiServer, kind *kindInfo) *informer {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	i := &informer{
		name:  kind.gvr.Resource,
		index: orderedIndexer{cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, byNamespace)},
	}
	s.resources[kind.gvr].informer = i
	return i
}

// isFinished says whether a pod has run; kube-scheduler's pod informer leaves such pods out by a field selector.
func isFinished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func isWatched(obj runtime.Object) bool {
	pod, ok := obj.(*v1.Pod)
	return !ok || !isFinished(pod)
}

func (i *informer) added(obj runtime.Object, isInitial bool) {
	if !isWatched(obj) {
		return
	}
	_ = i.index.Add(obj)
	for _, handler := range i.handlers {
		handler.OnAdd(obj, isInitial)
	}
}

func (i *informer) changed(old, obj runtime.Object) {
	switch {
	case !isWatched(old):
		i.added(obj, false)
	case !isWatched(obj):
		i.removed(old)
	default:
		_ = i.index.Update(obj)
		for _, handler := range i.handlers {
			handler.OnUpdate(old, obj)
		}
	}
}

func (i *informer) removed(obj runtime.Object) {
	if !isWatched(obj) {
		return
	}
	_ = i.index.Delete(obj)
	for _, handler := range i.handlers {
		handler.OnDelete(obj)
	}
}

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	for _, obj := range i.index.List() {
		handler.OnAdd(obj, true)
	}
	return synced(i.name), nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) GetStore() cache.Store                 { return i.index }
func (i *informer) GetIndexer() cache.Indexer             { return i.index }
func (i *informer) AddIndexers(more cache.Indexers) error { return i.index.AddIndexers(more) }
func (i *informer) HasSynced() bool                       { return true }
func (i *informer) HasSyncedChecker() cache.DoneChecker   { return synced(i.name) }

// The rest of the interface is for running an informer, which nobody does here.

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	return errors.ErrUnsupported
}
func (i *informer) GetController() cache.Controller                    { return nil }
func (i *informer) Run(stop <-chan struct{})                           { <-stop }
func (i *informer) RunWithContext(ctx context.Context)                 { <-ctx.Done() }
func (i *informer) LastSyncResourceVersion() string                    { return "" }
func (i *informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }
func (i *informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}
func (i *informer) SetTransform(cache.TransformFunc) error { return nil }
func (i *informer) IsStopped() bool                        { return false }

// synced is the name of an informer that has delivered everything.
type synced string

var done = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (s synced) Name() string                        { return string(s) }
func (s synced) Done() <-chan struct{}               { return done }
func (s synced) HasSynced() bool                     { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }

// orderedIndexer lists by key instead of in the random order of a map, so that every run is the same.
type orderedIndexer struct{ cache.Indexer }

func ordered(objects []any) []any {
	slices.SortFunc(objects, func(a, b any) int {
		return strings.Compare(keyOf(a.(runtime.Object)), keyOf(b.(runtime.Object)))
	})
	return objects
}

func (x orderedIndexer) List() []any { return ordered(x.Indexer.List()) }

func (x orderedIndexer) Index(name string, obj any) ([]any, error) {
	objects, err := x.Indexer.Index(name, obj)
	return ordered(objects), err
}

func (x orderedIndexer) ByIndex(name, value string) ([]any, error) {
	objects, err := x.Indexer.ByIndex(name, value)
	return ordered(objects), err
}
