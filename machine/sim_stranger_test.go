// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A stranger writes the status of machines: the owner of a restored backup, or a user. It writes
// phases that contradict what exists.
type stranger struct {
	// at is when it writes next. Zero means that it does not.
	at time.Time
	// writes counts what it has written.
	writes int
}

// strangers has the stranger write the phase of a machine at its time. It does not write Failed, which
// its owner acts on, nor an update of a machine without a Node, which fails after its timeout. A machine
// without a recorded VM gets Terminating.
func (s *sim) strangers() {
	if s.stranger.at.IsZero() || s.clock.Now().Before(s.stranger.at) {
		return
	}
	s.stranger.at = time.Time{}
	var names []string
	for name := range s.machines {
		names = append(names, name)
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	name := names[s.rng.IntN(len(names))]
	m := s.machines[name].DeepCopy()
	phase := allPhases[s.rng.IntN(len(allPhases))]
	inPlace := strings.HasPrefix(string(phase), "InPlace")
	if phase == v1alpha1.MachineFailed || m.Spec.ProviderID == "" || inPlace && s.nodes[s.nodeOf(m)] == nil {
		phase = v1alpha1.MachineTerminating
	}
	m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.LastUpdateTime = phase, metav1.NewTime(s.now())
	s.note("a stranger writes phase %q of %s, which was %q", phase, name, s.machines[name].Status.CurrentStatus.Phase)
	s.stranger.writes++
	s.put(m)
}
