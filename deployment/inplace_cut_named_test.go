// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// wanted names machines on the deployment as those that are to go.
func (s *updScene) wanted(names ...string) {
	var entries []string
	for _, name := range names {
		entries = append(entries, name+"~1970-01-01T00:10:00Z")
	}
	s.in.Deployment.Annotations = map[string]string{v1alpha1.TriggerDeletionByMCM: strings.Join(entries, ",")}
}

// early lets a machine go before others.
func (s *updScene) early(names ...string) {
	for _, name := range names {
		s.annotate(name, map[string]string{v1alpha1.MachinePriority: "1"})
	}
}

func (s *updScene) annotate(name string, annotations map[string]string) {
	i := slices.IndexFunc(s.in.Machines, func(m *v1alpha1.Machine) bool { return m.Name == name })
	s.in.Machines[i].Annotations = annotations
}
