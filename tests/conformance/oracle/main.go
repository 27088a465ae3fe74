// Command oracle runs kube-scheduler's own code on cases given as JSON lines, and prints what it decides and why.
//
// Nothing is scheduled by this module: each case gets a scheduler made by scheduler.New, every pod enters the queue
// through the pod informer, and one ScheduleOne takes it through all extension points. The files here only play the API
// server (apiserver.go, informer.go, objects.go, admission.go), listen (listen.go, preemption.go) and write down what
// was heard (report.go). docs/conformance.md describes the format and the choices that are pinned.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

// pinnedGates are on by default upstream. The first lets a pod that equals its predecessor skip filtering and scoring;
// the second deletes victims in the background, after the attempt has ended.
const pinnedGates = "OpportunisticBatching=false,SchedulerAsyncPreemption=false"

func main() {
	workers := flag.Int("workers", 2, "number of cases that run at the same time")
	gates := flag.String("feature-gates", "", "feature gates as in kube-scheduler's flag, applied after the pinned ones")
	verbosity := flag.Int("v", -1, "klog verbosity; below 0 nothing is logged")
	version := flag.Bool("version", false, "print the version of Kubernetes that decides, and exit")
	flag.Parse()
	if *version {
		fmt.Println(kubernetesVersion())
		return
	}
	if err := setGates(pinnedGates, *gates); err != nil {
		fail(err)
	}
	setLogging(*verbosity)
	reportPanics()
	if err := answerAll(os.Stdin, os.Stdout, max(1, *workers)); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}

// kubernetesVersion returns the version of k8s.io/kubernetes that go.mod asks for, which is the only place it stands.
func kubernetesVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return module.Version
		}
	}
	return "unknown"
}

func setGates(settings ...string) error {
	for _, setting := range settings {
		if setting == "" {
			continue
		}
		if err := utilfeature.DefaultMutableFeatureGate.Set(setting); err != nil {
			return err
		}
	}
	return nil
}

func setLogging(verbosity int) {
	if verbosity < 0 {
		klog.SetLogger(logr.Discard())
		utilruntime.ErrorHandlers = nil
		return
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", fmt.Sprint(verbosity))
}

// reportPanics makes a panic in one of the scheduler's goroutines an error of the cases under way, not of the process.
func reportPanics() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, reason any) {
		panics.Add(1)
		fmt.Fprintf(os.Stderr, "panic in a scheduler goroutine: %v\n%s\n", reason, debug.Stack())
	})
}

type job struct {
	line   []byte
	answer chan []byte
}

// answerAll reads cases and writes their answers in the same order.
func answerAll(in io.Reader, out io.Writer, workers int) error {
	jobs, inOrder := make(chan *job), make(chan *job, 4*workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for j := range jobs {
				j.answer <- answerLine(j.line)
			}
		})
	}
	var readError error
	go func() {
		defer close(inOrder)
		defer close(jobs)
		readError = eachLine(in, func(line []byte) {
			j := &job{line, make(chan []byte, 1)}
			inOrder <- j
			jobs <- j
		})
	}()
	if err := writeAnswers(inOrder, out); err != nil {
		return err
	}
	group.Wait()
	return readError
}

func eachLine(in io.Reader, do func([]byte)) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			do(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func writeAnswers(inOrder <-chan *job, out io.Writer) error {
	writer := bufio.NewWriterSize(out, 1<<20)
	written := 0
	for j := range inOrder {
		if _, err := writer.Write(<-j.answer); err != nil {
			return err
		}
		if len(inOrder) == 0 { // whoever waits for this answer must not wait for the next case
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if written++; written%100 == 0 {
			signal.Reset(syscall.SIGUSR2) // every scheduler registers a handler and never takes it back
		}
	}
	return writer.Flush()
}
