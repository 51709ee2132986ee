// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/deployment"
)

type setSize struct{ SpecReplicas, StatusReplicas int32 }

type newSetReplicasIn struct {
	Replicas                    int32
	MaxSurge, MaxUnavailable    bound
	Strategy, OrchestrationType string
	NewMS                       setSize
	OldMSs                      []setSize
}

type newSetReplicasOut struct {
	Error       *string
	NewReplicas int32
}

// The function gets the number of machines there are as an argument. The
// reference counts those that are reported, and so forgets those that are asked
// for (DS-1); we count the larger of both for each set.
func newSetReplicas(in newSetReplicasIn, out newSetReplicasOut) ([]string, error) {
	strategy := strategyOf(in.Strategy, in.OrchestrationType, in.MaxSurge, in.MaxUnavailable)
	size := func(m mended) (int32, error) {
		var there int32
		for _, s := range append(in.OldMSs, in.NewMS) {
			if m["DS-1"] {
				there += max(s.SpecReplicas, s.StatusReplicas)
			} else {
				there += s.StatusReplicas
			}
		}
		return deployment.NewSetSize(strategy, in.Replicas, in.NewMS.SpecReplicas, there)
	}
	byReport, err := size(nil)
	switch {
	case (out.Error != nil) != (err != nil):
		return nil, fmt.Errorf("error %w, want %v", err, out.Error)
	case out.Error != nil:
		return nil, nil
	}
	if err := same("size by the count of the reference", out.NewReplicas, byReport); err != nil {
		return nil, err
	}
	ours, err := size(without("DS-1"))
	if err != nil || ours == byReport {
		return nil, err
	}
	if ours > byReport {
		return nil, fmt.Errorf("%d > %d by fewer machines", ours, byReport)
	}
	return []string{"DS-1"}, nil
}
