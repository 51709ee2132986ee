// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The recorded vectors and the objects they describe; testdata/README.md says
// more.

var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type bound struct{ *intstr.IntOrString }

func (b *bound) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	b.IntOrString = new(intstr.IntOrString)
	return b.IntOrString.UnmarshalJSON(data)
}

type goldenCondition struct {
	Type                     string
	Status                   string
	Reason                   string
	Message                  string
	LastUpdateAgoSeconds     *int
	LastTransitionAgoSeconds *int
	LastUpdateTime           string
	LastTransitionTime       string
}

func ago(seconds *int) metav1.Time {
	if seconds == nil {
		return metav1.Time{}
	}
	return metav1.NewTime(base.Add(-time.Duration(*seconds) * time.Second))
}

type goldenTemplate struct {
	Labels              map[string]string
	Annotations         map[string]string
	ClassKind           string
	ClassName           string
	ClassAPIGroup       string `json:"classApiGroup"`
	NodeTemplateLabels  map[string]string
	DrainTimeoutSeconds *int
	ProviderID          string
	Finalizer           string
}

func (g *goldenTemplate) spec() v1alpha1.MachineTemplateSpec {
	if g == nil {
		g = &goldenTemplate{Labels: map[string]string{"app": "w"}, ClassKind: "MachineClass", ClassName: "c1"}
	}
	t := v1alpha1.MachineTemplateSpec{}
	t.Labels, t.Annotations = g.Labels, g.Annotations
	if g.Finalizer != "" {
		t.Finalizers = []string{g.Finalizer}
	}
	t.Spec.Class = v1alpha1.ClassSpec{Kind: g.ClassKind, Name: g.ClassName, APIGroup: g.ClassAPIGroup}
	t.Spec.ProviderID = g.ProviderID
	t.Spec.NodeTemplateSpec.Labels = g.NodeTemplateLabels
	if g.DrainTimeoutSeconds != nil {
		t.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
			MachineDrainTimeout: &metav1.Duration{Duration: time.Duration(*g.DrainTimeoutSeconds) * time.Second},
		}
	}
	return t
}

type goldenStatus struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas        int32
	UnavailableReplicas, PreservedFailedReplicas, FullyLabeledReplicas int32
	ObservedGeneration                                                 int64
	CollisionCount                                                     *int32
	Conditions                                                         []goldenCondition
	FailedMachines                                                     []string
}

func (g goldenStatus) deployment() v1alpha1.MachineDeploymentStatus {
	s := v1alpha1.MachineDeploymentStatus{
		ObservedGeneration: g.ObservedGeneration, Replicas: g.Replicas, UpdatedReplicas: g.UpdatedReplicas,
		ReadyReplicas: g.ReadyReplicas, AvailableReplicas: g.AvailableReplicas, UnavailableReplicas: g.UnavailableReplicas,
		PreservedFailedReplicas: g.PreservedFailedReplicas, CollisionCount: g.CollisionCount,
	}
	for _, c := range g.Conditions {
		s.Conditions = append(s.Conditions, v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastUpdateTime: ago(c.LastUpdateAgoSeconds), LastTransitionTime: ago(c.LastTransitionAgoSeconds),
		})
	}
	for _, m := range g.FailedMachines {
		s.FailedMachines = append(s.FailedMachines, failed(m))
	}
	return s
}

func failed(name string) *v1alpha1.MachineSummary {
	return &v1alpha1.MachineSummary{Name: name, LastOperation: v1alpha1.LastOperation{Description: "d-" + name}}
}

func (g goldenStatus) set() v1alpha1.MachineSetStatus {
	s := v1alpha1.MachineSetStatus{
		Replicas: g.Replicas, FullyLabeledReplicas: g.FullyLabeledReplicas, ReadyReplicas: g.ReadyReplicas,
		AvailableReplicas: g.AvailableReplicas, PreservedFailedReplicas: g.PreservedFailedReplicas, ObservedGeneration: g.ObservedGeneration,
	}
	for _, c := range g.Conditions {
		s.Conditions = append(s.Conditions, v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: ago(c.LastTransitionAgoSeconds),
		})
	}
	if len(g.FailedMachines) > 0 {
		var list []v1alpha1.MachineSummary
		for _, m := range g.FailedMachines {
			list = append(list, *failed(m))
		}
		s.FailedMachines = &list
	}
	return s
}

type goldenDeployment struct {
	Name                    string
	Replicas                int32
	Strategy                string
	MaxSurge                json.RawMessage
	MaxUnavailable          json.RawMessage
	OrchestrationType       string
	Generation              int64
	Paused                  bool
	Annotations, Labels     map[string]string
	ProgressDeadlineSeconds *int32
	RevisionHistoryLimit    *int32
	Template                *goldenTemplate
	Status                  goldenStatus
}

func raw(t *testing.T, data json.RawMessage) *intstr.IntOrString {
	t.Helper()
	var b bound
	if len(data) > 0 {
		require.NoError(t, json.Unmarshal(data, &b))
	}
	return b.IntOrString
}

func strategy(kind, orchestration string, surge, unavailable *intstr.IntOrString) v1alpha1.MachineDeploymentStrategy {
	s := v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.MachineDeploymentStrategyType(kind)}
	u := v1alpha1.UpdateConfiguration{MaxSurge: surge, MaxUnavailable: unavailable}
	switch s.Type {
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		s.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: u}
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		s.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: u, OrchestrationType: v1alpha1.OrchestrationType(orchestration)}
	}
	return s
}

func (g goldenDeployment) object(t *testing.T) *v1alpha1.MachineDeployment {
	t.Helper()
	d := &v1alpha1.MachineDeployment{}
	d.Name, d.UID, d.Generation = g.Name, "uid-md", g.Generation
	d.Annotations, d.Labels = g.Annotations, g.Labels
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec = v1alpha1.MachineDeploymentSpec{
		Replicas: g.Replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}, Template: g.Template.spec(),
		RevisionHistoryLimit: g.RevisionHistoryLimit, Paused: g.Paused, ProgressDeadlineSeconds: g.ProgressDeadlineSeconds,
	}
	if string(g.MaxSurge) == `"<nilblock>"` {
		d.Spec.Strategy.Type = v1alpha1.MachineDeploymentStrategyType(g.Strategy)
	} else {
		d.Spec.Strategy = strategy(g.Strategy, g.OrchestrationType, raw(t, g.MaxSurge), raw(t, g.MaxUnavailable))
	}
	d.Status = g.Status.deployment()
	return d
}

type goldenSet struct {
	Name          string
	CreatedOffset int
	Replicas      int32
	Annotations   map[string]string
	Labels        map[string]string
	Deleting      bool
	Generation    int64
	Template      *goldenTemplate
	Status        goldenStatus
}

func (g *goldenSet) object() *v1alpha1.MachineSet {
	if g == nil {
		return nil
	}
	s := &v1alpha1.MachineSet{}
	s.Name, s.UID, s.Generation, s.Annotations, s.Labels = g.Name, types.UID("uid-"+g.Name), g.Generation, g.Annotations, g.Labels
	s.CreationTimestamp = metav1.NewTime(base.Add(-time.Hour + time.Duration(g.CreatedOffset)*time.Second))
	if g.Deleting {
		s.DeletionTimestamp = new(metav1.NewTime(base))
	}
	s.Spec.Replicas, s.Spec.Template = g.Replicas, g.Template.spec()
	s.Status = g.Status.set()
	return s
}

type goldenWorld struct {
	MachineDeployment goldenDeployment
	NewMS             *goldenSet
	OldMSs            []*goldenSet
}

func (g goldenWorld) objects(t *testing.T) (*v1alpha1.MachineDeployment, *v1alpha1.MachineSet, []*v1alpha1.MachineSet) {
	t.Helper()
	return g.MachineDeployment.object(t), g.NewMS.object(), sets(g.OldMSs)
}

func sets(list []*goldenSet) []*v1alpha1.MachineSet {
	var out []*v1alpha1.MachineSet
	for _, s := range list {
		out = append(out, s.object())
	}
	return out
}

// walk calls check for every vector of a file.
func walk[In, Out any](t *testing.T, file string, check func(t *testing.T, in In, out Out)) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "golden", file+".jsonl"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan(), "no header")
	n := 0
	for lines.Scan() {
		var v struct {
			ID  int
			In  In
			Out Out
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		n++
		t.Run(fmt.Sprint(v.ID), func(t *testing.T) { check(t, v.In, v.Out) })
	}
	require.NoError(t, lines.Err())
	require.Positive(t, n)
}

func atoi(text string) (int32, bool) {
	var n int32
	err := json.Unmarshal([]byte(text), &n)
	return n, err == nil
}
