// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// anyExit is a machine of any kind that is being deleted, with volumes of any kind and
// in a cluster that has been looked at.
func anyExit(r *rand.Rand) machine.Observation {
	in := anything(r)
	in.Machine.Finalizers = []string{v1alpha1.MCMFinalizerName}
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Duration(r.Int64N(int64(3 * time.Hour))))}
	in.Machine.Status.LastOperation.Description = pick(r, "", markerA, markerB, markerC, markerD, markerE, markerF,
		"Drain successful. "+markerD, "VM not found. Continuing deletion flow. "+markerE)
	in.Machine.Status.LastOperation.LastUpdateTime = metav1.NewTime(moment(r))
	if r.IntN(4) == 0 {
		byForce(&in)
	}
	in.ProviderID = machine.ProviderIDView{Compared: true}
	in.Node.Looked, in.Tokens.Looked, in.Attachments = true, true, anyAttachments(r)
	in.Drain = machine.DrainView{}
	if r.IntN(2) == 0 {
		in.Drain = machine.DrainView{Started: pick(r, time.Time{}, moment(r), in.Machine.DeletionTimestamp.Time), Round: moment(r), Done: r.IntN(2) == 0, DoneAt: moment(r), ForcedAt: moment(r), NextCheck: now}
	}
	return in
}

func anyAttachments(r *rand.Rand) machine.AttachmentsView {
	v := machine.AttachmentsView{Looked: true, AskedAt: pick(r, time.Time{}, time.Time{}, moment(r))}
	for range r.IntN(4) {
		va := attachment(pick(r, "a", "b", "c"))
		va.Spec.NodeName = pick(r, "n", "n", "another", "")
		if r.IntN(3) == 0 {
			va.DeletionTimestamp = &metav1.Time{Time: now}
		}
		v.Attachments = append(v.Attachments, pick(r, va, va, va, nil))
	}
	return v
}

// TestEveryDeletionEnds is I-18: in a world that obeys, but whose volumes stay, every
// machine is let go whose class exists, or whose deletion is forced.
func TestEveryDeletionEnds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		x := newWorld(anyExit(r))
		x.rounds, x.anew = r.IntN(4), r.IntN(2) == 0
		x.policy = pick(r, machine.DefaultPolicy(), machine.Policy{DetachTimeout: time.Minute}, machine.Policy{DrainTimeout: time.Minute})
		faults := r.IntN(3)
		for range faults {
			x.look, x.deletion = append(x.look, errTransient), append(x.deletion, errTransient)
		}
		forced := x.in.Machine.Labels[v1alpha1.LabelKeyForceDeletion] == "true"
		x.in.Class.Looked = true
		if x.in.Class.Class == nil && !forced {
			x.in.Class.Class = class()
		}
		x.run(t)
		require.True(t, x.released, "seed %d: %q", seed, x.did)
		require.Equal(t, stepRelease, x.did[len(x.did)-1])
		checkOrder(t, seed, x, faults > 0)
	}
}

// checkOrder asserts in which order things were done, and that none was forgotten. A
// deletion that fails puts an earlier answer in doubt, so that a drain may follow it.
func checkOrder(t *testing.T, seed uint64, x *world, faults bool) {
	t.Helper()
	vm, node := slices.Index(x.did, stepVM), slices.Index(x.did, stepNode)
	for i, s := range x.did {
		switch {
		case s == stepDrain && !faults && vm >= 0 && slices.Contains(x.did[:i], stepVM) && !slices.Contains(x.did[:i], stepName):
			require.Fail(t, "a Node is drained whose VM is gone", "seed %d: %q", seed, x.did)
		case s == stepNode && node != i:
			require.Fail(t, "a Node is deleted twice", "seed %d: %q", seed, x.did)
		}
	}
	if vm >= 0 && node >= 0 {
		require.Less(t, vm, node, "seed %d: %q", seed, x.did)
	}
	if x.in.Node.Node != nil && !x.in.Node.NoTarget && x.in.Node.Node.DeletionTimestamp.IsZero() {
		require.NotContains(t, []string{"", "m"}, x.in.Node.Node.Labels[v1alpha1.MachineNameLabelKey], "seed %d: a Node is left: %q", seed, x.did)
	}
}

// TestNothingDestructiveIsDecidedBlindly is I-3 for a deletion.
func TestNothingDestructiveIsDecidedBlindly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 6))
		in, p := anyExit(r), anyPolicy(r)
		if in.Node.NoTarget {
			continue
		}
		live := machine.LiveAttachments("n", in.Attachments.Attachments)
		if a, ok := lawful(t, in, p).Do.(machine.DeleteAttachments); ok {
			mode := machine.DrainModeFor(in.Machine, in.Node.Node, p, now)
			forced := mode.NodeUnreachable || !mode.ForceAt.IsZero() && !now.Before(mode.ForceAt) ||
				in.Machine.Status.LastOperation.Description == markerC
			require.True(t, forced, "seed %d: attachments are deleted without force", seed)
			require.Equal(t, live, a.Attachments)
		}
		in.Node.Looked = false
		switch a := machine.Decide(in, p, now).Do.(type) {
		case nil, machine.DeleteToken:
		default:
			require.Fail(t, "on a cluster nobody has looked at", "seed %d: %s", seed, a)
		}
	}
}
