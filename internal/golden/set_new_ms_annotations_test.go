// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"maps"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type setNewAnnotationsIn struct {
	Exists                      bool
	MaxSurge, MaxUnavailable    bound
	MDAnnotations               map[string]string `json:"mdAnnotations"`
	MSAnnotations               map[string]string `json:"msAnnotations"`
	NewRevision                 string
	Replicas                    int32
	Strategy, OrchestrationType string
}

type setNewAnnotationsOut struct {
	Changed       bool
	MSAnnotations map[string]string `json:"msAnnotations"`
}

func setNewAnnotations(in setNewAnnotationsIn, out setNewAnnotationsOut) ([]string, error) {
	d := in.deployment()
	s := &v1alpha1.MachineSet{}
	s.Annotations = maps.Clone(in.MSAnnotations)
	var got setNewAnnotationsOut
	got.MSAnnotations, got.Changed = rollout.NewSetAnnotations(d, s, in.NewRevision, in.Exists)
	if err := same("the set was changed", in.MSAnnotations, s.Annotations); err != nil {
		return nil, err
	}
	model := func(m mended) setNewAnnotationsOut { return newAnnotationsModel(in, m) }
	return explain([]string{"DS-19"}, model, out, got)
}

func newAnnotationsModel(in setNewAnnotationsIn, m mended) setNewAnnotationsOut {
	d := in.deployment()
	a, changed := annotationsModel(d, in.MSAnnotations, in.NewRevision, m)
	if changed != nil && !in.Exists {
		sized := map[string]string{
			"deployment.kubernetes.io/desired-replicas": strconv.Itoa(int(in.Replicas)),
			"deployment.kubernetes.io/max-replicas":     strconv.Itoa(int(in.Replicas + surgeOf(d))),
		}
		for k, v := range sized {
			if a[k] != v {
				a[k], *changed = v, true
			}
		}
	}
	return setNewAnnotationsOut{changed != nil && *changed, a}
}

func (in setNewAnnotationsIn) deployment() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Annotations, d.Spec.Replicas = maps.Clone(in.MDAnnotations), in.Replicas
	d.Spec.Strategy = strategyOf(in.Strategy, in.OrchestrationType, in.MaxSurge, in.MaxUnavailable)
	return d
}

// annotationsModel copies annotations, raises the revision and keeps the history.
// The second result is whether that is a change, nil if a revision cannot be
// read. Mended (DS-19), the history grows only when the revision does.
func annotationsModel(d *v1alpha1.MachineDeployment, have map[string]string, revision string, m mended) (map[string]string, *bool) {
	out := map[string]string{}
	maps.Copy(out, have)
	changed := false
	for k, v := range d.Annotations {
		if !notCopied[k] && out[k] != v {
			out[k], changed = v, true
		}
	}
	was, had := out["deployment.kubernetes.io/revision"]
	from, err := strconv.ParseInt(was, 10, 64)
	if err != nil && was != "" {
		return out, nil
	}
	to, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return out, nil
	}
	raised := from < to
	if raised {
		out["deployment.kubernetes.io/revision"], changed = revision, true
	}
	if had && changed && (raised || !m["DS-19"]) {
		remember(out, was)
	}
	return out, &changed
}

// remember appends a revision to the history.
func remember(annotations map[string]string, revision string) {
	const key = "deployment.kubernetes.io/revision-history"
	if first, _, _ := strings.Cut(annotations[key], ","); first == "" {
		annotations[key] = revision
		return
	}
	annotations[key] += "," + revision
}

// notCopied are the annotations that belong to one object alone.
var notCopied = map[string]bool{
	"kubectl.kubernetes.io/last-applied-configuration":  true,
	"deployment.kubernetes.io/revision":                 true,
	"deployment.kubernetes.io/revision-history":         true,
	"deployment.kubernetes.io/desired-replicas":         true,
	"deployment.kubernetes.io/max-replicas":             true,
	"deployment.machine.sapcloud.io/prefer-no-schedule": true,
	"safety.machine.sapcloud.io/unfreeze":               true,
	"node.machine.sapcloud.io/trigger-deletion-by-mcm":  true,
}
