// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// theirs is the label, the annotation, the finalizer, the taint, the condition and
// the type of address of another writer.
const theirs = "example.com/theirs"

// burst is how often a status is written in a row. Who looked at one of these writes
// and writes in turn comes after the next one: he is longer on the way.
const burst = 5

// otherWriter is another writer, which writes to all machines and Nodes all the time,
// guards them, and lets them go last. It is for one goroutine.
type otherWriter struct {
	s         *env.Env
	last      map[string]string // what was written last, by object; until it was let go
	status    map[string]string // as last, for the status of machines
	writes    int
	mended    int // how often the manager has taken the condition away again
	conflicts int
	lost      []string
	failed    []error
}

// startOtherWriter runs a otherWriter until the returned function is called, which returns
// him.
func startOtherWriter(t *testing.T, s *env.Env) (end func() *otherWriter) {
	t.Helper()
	d := &otherWriter{s: s, last: map[string]string{}, status: map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var meddling sync.WaitGroup
	meddling.Go(func() {
		for ctx.Err() == nil {
			d.round(context.WithoutCancel(ctx)) // a write is not cut off
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	end = func() *otherWriter {
		cancel()
		meddling.Wait()
		return d
	}
	t.Cleanup(func() { end() })
	return end
}

// round writes to every machine, its status, and every Node.
func (d *otherWriter) round(ctx context.Context) {
	api, nodes := d.s.Machines.MachineV1alpha1().Machines(d.s.Namespace), d.s.Client.CoreV1().Nodes()
	there := map[string]bool{}
	machineList, err1 := api.List(ctx, metav1.ListOptions{})
	nodeList, err2 := nodes.List(ctx, metav1.ListOptions{})
	if err1 != nil || err2 != nil {
		d.failed = append(d.failed, err1, err2)
		return
	}
	for i := range machineList.Items {
		m := &machineList.Items[i]
		key := "machine " + m.Name
		there[key] = true
		d.look(key, m)
		d.mark(key, m)
		changed, err := api.Update(ctx, m, metav1.UpdateOptions{})
		if d.wrote(key, m, err); err != nil || len(changed.Finalizers) == 0 {
			continue
		}
		for range burst {
			d.observe(changed)
			changed, err = api.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
			if d.excuse(err); err != nil {
				break
			}
			d.status[key] = strconv.Itoa(d.writes)
			d.writes++
		}
	}
	for i := range nodeList.Items {
		n := &nodeList.Items[i]
		if !strings.HasPrefix(n.Name, d.s.NodeName("")) {
			continue
		}
		key := "node " + n.Name
		there[key] = true
		d.taint(key, n)
		d.mark(key, n)
		_, err := nodes.Update(ctx, n, metav1.UpdateOptions{})
		d.wrote(key, n, err)
	}
	for key := range d.last {
		if !there[key] {
			d.lost = append(d.lost, key+" is gone although it was guarded")
			delete(d.last, key)
		}
	}
	maps.DeleteFunc(d.status, func(key, _ string) bool { return !there[key] })
}

// observe gives the status of a machine a condition that its Node does not have,
// which is wrong and for the manager to mend, and an address with a number, which
// is not the manager's business.
func (d *otherWriter) observe(m *v1alpha1.Machine) {
	m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, theirCondition), corev1.NodeCondition{
		Type: theirs, Status: corev1.ConditionFalse, Message: strconv.Itoa(d.writes), LastHeartbeatTime: metav1.Now(),
	})
	m.Status.Addresses = append(slices.DeleteFunc(m.Status.Addresses, theirAddress), corev1.NodeAddress{
		Type: theirs, Address: strconv.Itoa(d.writes),
	})
}

// look says what is left of that: the address as it was written, and the condition
// too unless the manager has mended it. What a manager writes that looked before
// has neither.
func (d *otherWriter) look(key string, m *v1alpha1.Machine) {
	last, written := d.status[key]
	if !written {
		return
	}
	addresses, conditions := m.Status.Addresses, m.Status.Conditions
	if i := slices.IndexFunc(addresses, theirAddress); i < 0 || addresses[i].Address != last {
		d.lost = append(d.lost, fmt.Sprintf("%s has the addresses %v, not %q", key, addresses, last))
	}
	switch i := slices.IndexFunc(conditions, theirCondition); {
	case i < 0:
		d.mended++
	case conditions[i].Message != last:
		d.lost = append(d.lost, fmt.Sprintf("%s has the condition %q, not %q", key, conditions[i].Message, last))
	}
}

func theirCondition(c corev1.NodeCondition) bool { return c.Type == theirs }
func theirAddress(a corev1.NodeAddress) bool     { return a.Type == theirs }

// mark gives an object a number that it has not had, as label and annotation, and
// says what of the last mark is missing. One without other finalizers is
// let go.
func (d *otherWriter) mark(key string, o metav1.Object) {
	last, marked := d.last[key]
	if marked && (o.GetLabels()[theirs] != last || o.GetAnnotations()[theirs] != last) {
		d.lost = append(d.lost, fmt.Sprintf("%s has label %q and annotation %q, not %q", key, o.GetLabels()[theirs], o.GetAnnotations()[theirs], last))
	}
	if marked && !slices.Contains(o.GetFinalizers(), theirs) {
		d.lost = append(d.lost, key+" has lost the finalizer")
	}
	switch {
	case !marked && o.GetDeletionTimestamp() == nil:
		o.SetFinalizers(append(o.GetFinalizers(), theirs))
	case o.GetDeletionTimestamp() != nil && slices.Equal(o.GetFinalizers(), []string{theirs}):
		o.SetFinalizers(nil)
	}
	with := func(m map[string]string) map[string]string {
		if m == nil {
			m = map[string]string{}
		}
		m[theirs] = strconv.Itoa(d.writes)
		return m
	}
	o.SetLabels(with(o.GetLabels()))
	o.SetAnnotations(with(o.GetAnnotations()))
}

// taint does the same with a taint.
func (d *otherWriter) taint(key string, n *corev1.Node) {
	ours := func(t corev1.Taint) bool { return t.Key == theirs }
	i := slices.IndexFunc(n.Spec.Taints, ours)
	if last, marked := d.last[key]; marked && (i < 0 || n.Spec.Taints[i].Value != last) {
		d.lost = append(d.lost, key+" has lost the taint")
	}
	n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, ours),
		corev1.Taint{Key: theirs, Value: strconv.Itoa(d.writes), Effect: corev1.TaintEffectPreferNoSchedule})
}

// wrote notes what a write of a marked object came to.
func (d *otherWriter) wrote(key string, o metav1.Object, err error) {
	switch {
	case err != nil:
		d.excuse(err)
	case slices.Contains(o.GetFinalizers(), theirs):
		d.last[key] = o.GetLabels()[theirs]
		d.writes++
	default:
		delete(d.last, key)
	}
}

// excuse records an error other than a conflict.
func (d *otherWriter) excuse(err error) {
	switch {
	case apierrors.IsConflict(err):
		d.conflicts++
	case err != nil && !apierrors.IsNotFound(err):
		d.failed = append(d.failed, err)
	}
}

func TestWrites_OtherWriter_IsNotOverwritten(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "conflicts", fastOptions())
	s.StartManager(t, "manager")
	end := startOtherWriter(t, s)
	deploy(t, s, s.Deployment("workers", "small", 4, 2, 1))
	// A label for the Nodes goes through the sets and the machines. It changes until
	// the two have met often enough: the manager has lost against the other
	// writer, with statuses and with other fields.
	deadline := time.Now().Add(patience)
	for i := 0; i == 0 || !lostWrites(t, s).enough(); i++ {
		require.True(t, time.Now().Before(deadline), "after %d labels in %s the manager has lost too little: %s", i, patience, lostWrites(t, s))
		label := fmt.Sprintf("a=%d", i)
		change(t, s, "workers", fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"%d"}}}}}}}`, i))
		s.Wait(t, patience, "the nodes have the label "+label, func(ctx context.Context) (string, error) {
			nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label + "," + env.Label + "=" + s.Namespace})
			if err != nil || len(nodes.Items) != 4 {
				return "not all have it", err
			}
			return "", nil
		})
	}
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	removeAll(t, s)
	d := end()
	require.Empty(t, d.lost)
	require.Empty(t, d.failed)
	require.Empty(t, d.last, "all was let go")
	require.NotZero(t, d.mended, "the manager has mended statuses")
	t.Logf("the other writer wrote %d times, lost %d times and was mended %d times; the manager lost %s", d.writes, d.conflicts, d.mended, lostWrites(t, s))
}

// losses are writes of the manager that lost against those of others.
type losses struct{ statuses, machines, nodes int }

func (l losses) enough() bool { return l.statuses >= 10 && l.machines+l.nodes >= 3 }

func (l losses) String() string {
	return fmt.Sprintf("%d writes of statuses, %d of machines, %d of nodes", l.statuses, l.machines, l.nodes)
}

// lostWrites counts the losses so far. What is created does not count: it conflicts
// with its like.
func lostWrites(t *testing.T, s *env.Env) (l losses) {
	t.Helper()
	requests, err := s.Requests(t.Context())
	require.NoError(t, err)
	for _, r := range requests {
		if r.Code != http.StatusConflict || r.Verb != "update" && r.Verb != "patch" {
			continue
		}
		switch {
		case r.Resource == "machines" && r.Subresource == "status":
			l.statuses++
		case r.Resource == "machines" && r.Subresource == "":
			l.machines++
		case r.Resource == "nodes":
			l.nodes++
		}
	}
	return l
}
