package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// caseIn is one line of input: a cluster and the pods to schedule, in this order, one attempt each.
type caseIn struct {
	ID      string            `json:"id"`
	Profile json.RawMessage   `json:"profile,omitempty"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Pods    []json.RawMessage `json:"pods,omitempty"`
	// AssumeOnly leaves out PreBind and Bind: what the next pod sees is the moment before a binding.
	AssumeOnly bool `json:"assumeOnly,omitempty"`
}

// answer is one line of output.
type answer struct {
	ID      string    `json:"id"`
	Error   string    `json:"error,omitempty"`
	Results []*result `json:"results"`
}

// result is what became of one pod. docs/conformance.md explains each field.
type result struct {
	Pod                  string                      `json:"pod"`
	Verdict              string                      `json:"verdict"`
	Feasible             []string                    `json:"feasible"`
	Statuses             map[string]statusOut        `json:"statuses"`
	PreFilter            *statusOut                  `json:"prefilter,omitempty"`
	PreFilterNodes       []string                    `json:"prefilterNodes,omitempty"`
	NominatedFirst       bool                        `json:"nominatedFirst,omitempty"`
	Scores               map[string]map[string]int64 `json:"scores,omitempty"`
	Totals               map[string]int64            `json:"totals,omitempty"`
	Best                 []string                    `json:"best,omitempty"`
	Chosen               string                      `json:"chosen,omitempty"`
	Message              string                      `json:"message,omitempty"`
	Event                string                      `json:"event,omitempty"`
	UnschedulablePlugins []string                    `json:"unschedulablePlugins,omitempty"`
	Plugin               string                      `json:"plugin,omitempty"`
	Nominated            string                      `json:"nominated"`
	Victims              []string                    `json:"victims"`
	Deleted              []string                    `json:"deleted,omitempty"`
	Preemption           *preemptionOut              `json:"preemption,omitempty"`
}

type statusOut struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons"`
}

type preemptionOut struct {
	Candidates map[string]candidateOut `json:"candidates,omitempty"`
	Rejected   map[string]statusOut    `json:"rejected,omitempty"`
	Ties       []string                `json:"ties,omitempty"`
}

type candidateOut struct {
	Victims       []string `json:"victims"`
	PDBViolations int      `json:"pdbViolations"`
	OrderTies     bool     `json:"orderTies,omitempty"`
}

// panics counts the panics from which goroutines of a scheduler recovered.
var panics atomic.Int64

// answerLine answers one line; whatever is wrong with it becomes the answer's error.
func answerLine(line []byte) []byte {
	var c caseIn
	a := &answer{}
	if err := json.Unmarshal(line, &c); err != nil {
		a = &answer{ID: c.ID, Error: err.Error()}
	} else {
		a = runCase(&c)
	}
	if a.Error != "" {
		a.Results = []*result{}
	}
	out, err := json.Marshal(a)
	if err != nil {
		out, _ = json.Marshal(&answer{ID: c.ID, Error: err.Error(), Results: []*result{}})
	}
	return append(out, '\n')
}

func runCase(c *caseIn) (a *answer) {
	before := panics.Load()
	a = &answer{ID: c.ID, Results: []*result{}}
	defer func() {
		if reason := recover(); reason != nil {
			a = &answer{ID: c.ID, Error: fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())}
		}
		if panics.Load() != before && a.Error == "" {
			a.Error = "a scheduler goroutine panicked while this case ran"
		}
	}()
	h, err := newHarness(c)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	defer h.close()
	for _, pod := range h.pods {
		r, err := h.attempt(pod)
		if err != nil {
			a.Error = err.Error()
			return a
		}
		a.Results = append(a.Results, r)
	}
	return a
}
