// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// One Node with a pod of every kind, as it looks to people at three times.
func TestPlansReadAsText(t *testing.T) {
	in := observed(
		newPod("web-1"), newPod("web-2"), newPod("web-3", leaving(20*time.Second, 30)),
		newPod("stuck", withFinalizer, leaving(-time.Hour, 30)), newPod("deaf", leaving(-time.Hour, 1)),
		newPod("debug", unmanaged), newPod("cache", emptyDir), newPod("done", inPhase("Succeeded")),
		newPod("agent", ownedBy("DaemonSet")), newPod("static", mirror),
	)
	in.Node.Spec.Unschedulable = false
	in.Answers = drain.Answers{"uid-web-2": {
		Asked: drain.Evict, Reason: drain.ReasonBudget, Until: now.Add(3 * time.Second),
		Message: "The disruption budget web needs 3 healthy pods and has 3 currently",
	}}
	for file, p := range map[string]drain.Policy{
		"cautious": {ForceAt: now.Add(time.Hour)}, "forced": forced(), "unreachable": unreachable(),
	} {
		t.Run(file, func(t *testing.T) {
			got := drain.Decide(in, p, now).String()
			path := filepath.Join("testdata", file+".golden")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
	require.Equal(t, "nothing (NotObserved)\nuntil something changes, or 2026-03-01T12:00:05Z\n", drain.Decide(drain.Observation{}, forced(), now).String())
	require.Equal(t, "done\n", drain.Decide(observed(), drain.Policy{}, now).String())
}
