// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"strings"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type triggerDeletionIn struct {
	Annotations map[string]string
	Machines    []machine
}

type markedMachine struct{ Name, Priority, MarkedForDeletionTime string }

type triggerDeletionOut struct {
	AfterMigration string
	Annotation     *string
	Machines       []markedMachine
	Error          *string
}

const triggerKey = "node.machine.sapcloud.io/trigger-deletion-by-mcm"

// triggerDeletion expects one write where MCM writes an annotation and the next step writes it
// again. The annotation after the migration is left out.
func triggerDeletion(in triggerDeletionIn, out triggerDeletionOut) ([]string, error) {
	n := int32(len(in.Machines))
	w := world{
		MachineDeployment: machineDeployment{Name: "md", Replicas: n, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0), Annotations: in.Annotations},
		NewMS:             &machineSet{Name: "new", Replicas: n},
	}
	seen := w.observation()
	for _, m := range in.Machines {
		m.Owner, m.Labels = "new", seen.Sets[0].Spec.Selector.MatchLabels
		seen.Machines = append(seen.Machines, m.object())
	}
	plan := deployment.Decide(seen, deployment.Policy{}, now)
	after, machines := seen.Deployment, map[string]*v1alpha1.Machine{}
	for _, m := range seen.Machines {
		machines[m.Name] = m
	}
	for _, a := range plan.Actions {
		u, _ := a.(machinist.Update)
		switch o := u.Object.(type) {
		case *v1alpha1.MachineDeployment:
			after = o
		case *v1alpha1.Machine:
			machines[o.Name] = o
		}
	}
	got := triggerDeletionOut{AfterMigration: out.AfterMigration, Annotation: annotation(after.Annotations, triggerKey)}
	for _, m := range in.Machines {
		a := machines[m.Name].Annotations
		got.Machines = append(got.Machines, markedMachine{m.Name, a[v1alpha1.MachinePriority], a[v1alpha1.MarkedForDeletionTime]})
	}
	return explain(nil, func(mended) triggerDeletionOut { return triggerModel(in) }, out, got)
}

func annotation(m map[string]string, key string) *string {
	v, ok := m[key]
	if !ok {
		return nil
	}
	return &v
}

// triggerModel gives names without a time that of the last scaling, drops what is
// no name of a machine that can go, and marks the others. Of two entries for one
// machine the last one counts, as MCM does not see its own mark.
func triggerModel(in triggerDeletionIn) triggerDeletionOut {
	text, present := in.Annotations[triggerKey]
	o := triggerDeletionOut{AfterMigration: text}
	machines := map[string]machine{}
	marks := map[string]markedMachine{}
	for _, m := range in.Machines {
		machines[m.Name] = m
		marks[m.Name] = markedMachine{m.Name, m.Annotations["machinepriority.machine.sapcloud.io"], m.Annotations["machine.sapcloud.io/marked-for-deletion-time"]}
	}
	if text != "" {
		o.AfterMigration = migrated(text, in.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"])
	}
	var kept []string
	for entry := range strings.SplitSeq(o.AfterMigration, ",") {
		name, at, _ := strings.Cut(entry, "~")
		_, err := time.Parse(time.RFC3339, at)
		m, known := machines[name]
		if err != nil || !known || m.Deleting || m.Phase == "Failed" {
			continue
		}
		kept = append(kept, entry)
		mark := markedMachine{name, m.Annotations["machinepriority.machine.sapcloud.io"], m.Annotations["machine.sapcloud.io/marked-for-deletion-time"]}
		if mark.Priority == "1" && mark.MarkedForDeletionTime != "" {
			continue
		}
		mark.Priority = "1"
		if mark.MarkedForDeletionTime == "" {
			mark.MarkedForDeletionTime = at
		}
		marks[name] = mark
	}
	if after := strings.Join(kept, ","); after != "" || present && o.AfterMigration == "" {
		o.Annotation = &after
	}
	for _, m := range in.Machines {
		o.Machines = append(o.Machines, marks[m.Name])
	}
	return o
}

func migrated(text, at string) string {
	if at == "" {
		at = now.Format(time.RFC3339)
	}
	var entries []string
	for e := range strings.SplitSeq(text, ",") {
		switch strings.Count(e, "~") {
		case 0:
			entries = append(entries, e+"~"+at)
		case 1:
			entries = append(entries, e)
		}
	}
	return strings.Join(entries, ",")
}
