// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type rollbackIn struct {
	MachineDeployment  machineDeployment
	MachineSets        []*machineSet
	RollbackToRevision int64
}

type rollbackOut struct {
	Annotations, NodeTemplateLabels, TemplateLabels map[string]string
	ClassName                                       string
	Events                                          []string
	RollbackToCleared                               bool
	Error                                           *string
}

func rollback(in rollbackIn, out rollbackOut) ([]string, error) {
	d := in.MachineDeployment.object()
	d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: in.RollbackToRevision}
	seen := deployment.Observation{Deployment: d, Sets: setsOf(in.MachineSets), Complete: true, Proven: true}
	for _, s := range seen.Sets {
		seen.Machines = slices.Concat(seen.Machines, machinesFor(s))
	}
	plan := deployment.Decide(seen, deployment.Policy{}, now)
	after := d
	var events []string
	for _, a := range plan.Actions {
		u, _ := a.(machinist.Update)
		if next, ok := u.Object.(*v1alpha1.MachineDeployment); ok {
			after = next
		}
		if e := reportOf(a); e != nil {
			events = append(events, e.String())
		}
	}
	for _, e := range plan.Events {
		events = append(events, e.String())
	}
	t := after.Spec.Template
	got := rollbackOut{after.Annotations, t.Spec.NodeTemplateSpec.Labels, t.Labels, t.Spec.Class.Name, events, after.Spec.RollbackTo == nil, out.Error}
	return explain(nil, func(mended) rollbackOut { return rollbackModel(in) }, out, got)
}

// rollbackModel goes back to a set's template and annotations. The set of the
// present template takes part in propagation first.
func rollbackModel(in rollbackIn) rollbackOut {
	const key = "deployment.kubernetes.io/revision"
	md := in.MachineDeployment
	sets := slices.Clone(in.MachineSets)
	slices.SortStableFunc(sets, func(a, b *machineSet) int {
		return cmp.Or(cmp.Compare(a.CreatedOffset, b.CreatedOffset), strings.Compare(a.Name, b.Name))
	})
	i := slices.IndexFunc(sets, func(s *machineSet) bool { return s.Template.ClassName == md.Template.ClassName })
	newSet := *sets[i]
	old := slices.Delete(slices.Clone(sets), i, i+1)
	var revisions []string
	for _, s := range old {
		revisions = append(revisions, s.Annotations[key])
	}
	synced := syncModel(syncIn{md, &newSet, revisions}, nil)
	newSet.Annotations = synced.MachineSet.Annotations
	o := rollbackOut{maps.Clone(md.Annotations), md.Template.NodeTemplateLabels, md.Template.Labels, md.Template.ClassName, nil, true, nil}
	if r := synced.MachineDeploymentRevisionAnnotation; r != "" {
		o.Annotations[key] = r
	}
	all := append(slices.Clip(old), &newSet)
	to := in.RollbackToRevision
	if to == 0 {
		if to = lastModel(all); to == 0 {
			o.Events = []string{"Warning DeploymentRollbackRevisionNotFound Unable to find last revision."}
			return o
		}
	}
	for _, s := range all {
		if n, err := revisionModel(s); err != nil || n != to {
			continue
		}
		if s == &newSet {
			o.Events = []string{`Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "md"`}
			return o
		}
		o.ClassName, o.NodeTemplateLabels, o.TemplateLabels = s.Template.ClassName, s.Template.NodeTemplateLabels, s.Template.Labels
		maps.DeleteFunc(o.Annotations, func(k, _ string) bool { return !notCopied[k] })
		for k, v := range s.Annotations {
			if !notCopied[k] {
				o.Annotations[k] = v
			}
		}
		o.Events = []string{fmt.Sprintf("Normal DeploymentRollback Rolled back deployment %q to revision %d", md.Name, to)}
		return o
	}
	o.Events = []string{"Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to."}
	return o
}

func revisionModel(s *machineSet) (int64, error) {
	r := s.Annotations["deployment.kubernetes.io/revision"]
	if r == "" {
		return 0, nil
	}
	return strconv.ParseInt(r, 10, 64)
}

// lastModel is the second largest revision.
func lastModel(sets []*machineSet) int64 {
	var all []int64
	for _, s := range sets {
		if n, err := revisionModel(s); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	if len(all) < 2 {
		return 0
	}
	return all[len(all)-2]
}
