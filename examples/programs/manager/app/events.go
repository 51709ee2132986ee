// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// events writes Kubernetes Events. An Event that cannot be written is lost. Nothing waits for
// Events.
type events struct {
	recorder record.EventRecorder
	close    func() // waits a moment until everything is written, and ends; once
}

// newEvents returns a recorder that writes the Events of a component. It continues after the end of the
// context, until it is closed.
//
// A queue holds 1,000 Events, and what does not fit is lost. If a zone fails, thousands of machines do. Their
// Events and those of their Nodes have a queue of their own, so that no Event of a set or a deployment, which
// has the cause and the numbers, is lost for them. Each queue is in order.
func newEvents(ctx context.Context, client kubernetes.Interface, component string) *events {
	many, others := newQueue(ctx, client, component), newQueue(ctx, client, component)
	return &events{recorder: recorders{EventRecorder: others.recorder, many: many.recorder}, close: func() {
		var closing sync.WaitGroup
		closing.Go(many.close)
		closing.Go(others.close)
		closing.Wait()
	}}
}

// recorders records the Events of machines and Nodes by one recorder, and others by another.
type recorders struct {
	record.EventRecorder
	many record.EventRecorder
}

// Event implements [record.EventRecorder].
func (r recorders) Event(o runtime.Object, kind, reason, message string) {
	reference, _ := o.(*corev1.ObjectReference)
	_, machine := o.(*v1alpha1.Machine)
	_, node := o.(*corev1.Node)
	if machine || node || reference != nil && (reference.Kind == v1alpha1.MachineKind || reference.Kind == "Node") {
		r.many.Event(o, kind, reason, message)
		return
	}
	r.EventRecorder.Event(o, kind, reason, message)
}

// newQueue returns a recorder with one queue.
func newQueue(ctx context.Context, client kubernetes.Interface, component string) *events {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		_ = add(known) // cannot fail: no two kinds of these share a name
	}
	broadcaster := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	sink := &eventSink{client: client.CoreV1(), last: make(chan struct{}, 1)}
	sink.ctx, sink.cut = context.WithCancel(context.WithoutCancel(ctx))
	broadcaster.StartRecordingToSink(sink)
	recorder := broadcaster.NewRecorder(known, corev1.EventSource{Component: component})
	return &events{recorder: recorder, close: sync.OnceFunc(func() {
		recorder.Event(&corev1.ObjectReference{Kind: component}, corev1.EventTypeNormal, lastEvent, "")
		select {
		case <-sink.last:
		case <-time.After(flush):
		}
		sink.cut()
		broadcaster.Shutdown()
	})}
}

// flush is the time for the last Events.
const flush = 2 * time.Second

// lastEvent is the reason of the Event that ends the queue. It is not written.
const lastEvent = "LastEvent"

// eventSink writes Events with a context, so that none is written after the end of the manager.
type eventSink struct {
	ctx    context.Context //nolint:containedctx // the interface of the sink has none
	cut    context.CancelFunc
	client typedcorev1.EventsGetter
	last   chan struct{}
}

func (s *eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.Reason == lastEvent {
		s.last <- struct{}{}
		return e, nil
	}
	written, err := s.client.Events(e.Namespace).Create(s.ctx, e, metav1.CreateOptions{})
	return written, dropLate(err)
}

func (s *eventSink) Update(e *corev1.Event) (*corev1.Event, error) { return s.Create(e) }

func (s *eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	written, err := s.client.Events(e.Namespace).Patch(s.ctx, e.Name, "application/strategic-merge-patch+json", data, metav1.PatchOptions{})
	return written, dropLate(err)
}

// dropLate drops an Event that this process may not write any more. The broadcaster would retry it,
// and delay the end.
func dropLate(err error) error {
	if errors.Is(err, ErrLeaseLost) || errors.Is(err, errGivenBack) {
		return nil
	}
	return err
}
