// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// epoch is the time from which the golden vectors count; now is the time of
// every decision that needs no other.
var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(time.Hour)
)

// vector is one line of a golden file.
type vector[In, Out any] struct {
	ID  int `json:"id"`
	In  In  `json:"in"`
	Out Out `json:"out"`
}

// walk runs a test over all vectors of a golden file.
func walk[In, Out any](t *testing.T, file string, check func(t *testing.T, v vector[In, Out])) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden", file+".jsonl"))
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan(), "the header is missing")
	n := 0
	for lines.Scan() {
		var v vector[In, Out]
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		check(t, v)
		n++
	}
	require.NoError(t, lines.Err())
	require.Positive(t, n)
	t.Logf("%s: %d vectors", file, n)
}

type goldenMachine struct {
	Name                    string                        `json:"name"`
	CreatedOffset           int                           `json:"createdOffset"`
	Phase                   v1alpha1.MachinePhase         `json:"phase"`
	Annotations             map[string]string             `json:"annotations"`
	Labels                  map[string]string             `json:"labels"`
	Deleting                bool                          `json:"deleting"`
	PreserveExpiryInSeconds *int                          `json:"preserveExpiryInSeconds"`
	LastOperationState      v1alpha1.MachineState         `json:"lastOperationState"`
	LastOperationType       v1alpha1.MachineOperationType `json:"lastOperationType"`
	Node                    string                        `json:"node"`
	Owner                   string                        `json:"owner"`
}

func (g goldenMachine) machine() *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: g.Name, Namespace: "ns", UID: types.UID("uid-" + g.Name),
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(g.CreatedOffset) * time.Second)),
			Annotations:       g.Annotations, Labels: g.Labels,
		},
		Spec: v1alpha1.MachineSpec{ProviderID: "pid-" + g.Name, Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
		Status: v1alpha1.MachineStatus{
			CurrentStatus: v1alpha1.CurrentStatus{Phase: g.Phase},
			LastOperation: v1alpha1.LastOperation{State: g.LastOperationState, Type: g.LastOperationType},
		},
	}
	if g.Node != "" {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[v1alpha1.NodeLabelKey] = g.Node
	}
	if g.Deleting {
		m.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	m.Status.CurrentStatus.PreserveExpiryTime = expiry(g.PreserveExpiryInSeconds)
	if g.Owner != "" {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{Name: g.Owner, UID: types.UID("uid-" + g.Owner), Controller: &yes}}
	}
	return m
}

func expiry(seconds *int) *metav1.Time {
	if seconds == nil {
		return nil
	}
	return &metav1.Time{Time: now.Add(time.Duration(*seconds) * time.Second)}
}

func machinesOf(list []goldenMachine) []*v1alpha1.Machine {
	machines := make([]*v1alpha1.Machine, 0, len(list))
	for _, g := range list {
		machines = append(machines, g.machine())
	}
	return machines
}

type goldenSet struct {
	Name        string            `json:"name"`
	Replicas    int32             `json:"replicas"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
	Generation  int64             `json:"generation"`
	Template    struct {
		Labels map[string]string `json:"labels"`
	} `json:"template"`
	Status struct {
		Conditions []goldenCondition `json:"conditions"`
	} `json:"status"`
}

type goldenCondition struct {
	Type    v1alpha1.MachineSetConditionType `json:"type"`
	Status  v1alpha1.ConditionStatus         `json:"status"`
	Reason  string                           `json:"reason"`
	Message string                           `json:"message"`
}

func (g goldenSet) set() *v1alpha1.MachineSet {
	set := newSet(g.Replicas)
	set.Name, set.UID, set.Generation = g.Name, types.UID("uid-"+g.Name), g.Generation
	set.Annotations, set.Labels = g.Annotations, g.Labels
	if g.Template.Labels != nil {
		set.Spec.Template.Labels = g.Template.Labels
	}
	for _, c := range g.Status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, v1alpha1.MachineSetCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	return set
}

// newSet returns a valid set with its finalizer.
func newSet(replicas int32) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ms", Namespace: "ns", UID: "uid-ms", Finalizers: []string{v1alpha1.MCMFinalizerName},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "w"}},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "c1"}},
			},
		},
	}
}

// newMachine returns a machine of newSet that follows its template.
func newMachine(name string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	return goldenMachine{
		Name: name, Phase: phase, Owner: "ms",
		Labels: map[string]string{"app": "w"}, Annotations: map[string]string{},
	}.machine()
}
