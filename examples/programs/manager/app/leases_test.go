// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// program starts one of the programs.
func (r *harness) program(s *options.MCServer) *process {
	p := r.prepareAs(s)
	if s.Part() == controllers.Sets {
		p.driver = nil
	}
	return p.start()
}

// partsOf returns the parts that a program runs.
func partsOf(s *options.MCServer) []controllers.Part {
	if s.Part() == controllers.All {
		return []controllers.Part{controllers.Machines, controllers.Sets}
	}
	return []controllers.Part{s.Part()}
}

// leaders counts the processes that act on a part.
func leaders(all []*process, part controllers.Part) (n int) {
	for _, p := range all {
		if p.gate.leads() && slices.Contains(partsOf(p.s), part) {
			n++
		}
	}
	return n
}

func TestPrograms_ManagerBesideMachineControllerManager_OneReconcilesSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.class("c")
		sets := r.program(options.NewMCMServer())
		r.eventually("the machine-controller-manager leads", sets.works)
		manager := r.program(options.NewManagerServer())
		time.Sleep(5 * time.Second)
		require.False(t, manager.gate.leads(), "another program holds the lease of sets")
		require.Equal(t, [2]int{200, 200}, manager.health(), "it stands by")

		machines := r.program(options.NewMCServer())
		r.eventually("the machine-controller leads beside it", machines.works)
		r.set("s", "c", 3, nil)
		r.eventually("all run", func() bool { return r.running() == 3 })
		require.False(t, manager.works())

		sets.end()
		require.NoError(t, sets.result())
		time.Sleep(5 * time.Second)
		require.False(t, manager.gate.leads(), "another program holds the lease of machines")
		machines.end()
		require.NoError(t, machines.result())
		r.eventually("the manager leads", manager.works)

		again := r.program(options.NewMCMServer())
		time.Sleep(5 * time.Second)
		require.False(t, again.gate.leads())
		r.set("more", "c", 2, nil)
		r.eventually("all run", func() bool { return r.running() == 5 })
		created := 0
		for _, write := range r.control.History() {
			if write.Resource.Resource == "machines" && write.Verb == "create" {
				created++
			}
		}
		require.Equal(t, 5, created, "each machine was created once")

		manager.end()
		require.NoError(t, manager.result())
		began := time.Now()
		r.eventually("the next one leads", again.works)
		require.Less(t, time.Since(began), time.Second, "both leases were given back")
	})
}

func TestManager_OneOfItsLeasesIsTaken_EndsAtOnce(t *testing.T) {
	for _, name := range options.NewManagerServer().LeaseNames() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				p := r.prepare().start()
				r.eventually("it leads", p.works)
				leases := r.control.Client().CoordinationV1().Leases(namespace)
				lease, err := leases.Get(t.Context(), name, metav1.GetOptions{})
				require.NoError(t, err)
				thief := "thief"
				lease.Spec.HolderIdentity = &thief
				_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
				require.NoError(t, err)
				began := time.Now()
				require.ErrorIs(t, p.result(), ErrLeaseLost)
				require.Zero(t, time.Since(began))
			})
		})
	}
}

func TestManager_OneOfItsLeasesIsDeleted_NextOneLeads(t *testing.T) {
	for _, name := range options.NewManagerServer().LeaseNames() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				p := r.prepare().start()
				r.eventually("it leads", p.works)
				require.NoError(t, r.control.Client().CoordinationV1().Leases(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
				began := time.Now()
				require.ErrorIs(t, p.result(), ErrLeaseLost)
				require.Zero(t, time.Since(began))
				r.eventually("the next one leads when the other lease has expired", r.prepare().start().works)
			})
		})
	}
}

func TestManager_SecondLeaseCannotBeWritten_FirstIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		defer r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "leases", Name: "machine-controller-manager"})()
		manager := r.program(options.NewManagerServer())
		time.Sleep(5 * time.Second)
		require.False(t, manager.gate.leads())
		machines := r.program(options.NewMCServer())
		r.eventually("the machine-controller leads", machines.works)
	})
}

var (
	electionSeed  = flag.Uint64("elections.seed", 0, "play the elections of this seed only")
	electionCount = flag.Int("elections.count", 24, "the number of random elections")
)

// TestElections_RandomPrograms_EachPartHasOneLeader starts and ends the three programs at random, with
// faults of the requests for leases. At no time may two processes act on one part. At the end
// each part has a leader, unless a program that runs it waits for one that runs both.
func TestElections_RandomPrograms_EachPartHasOneLeader(t *testing.T) {
	first, count := uint64(1), *electionCount
	if *electionSeed != 0 {
		first, count = *electionSeed, 1
	}
	for i := range count {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playElections(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func playElections(t *testing.T, rng *rand.Rand) {
	t.Helper()
	servers := []func() *options.MCServer{options.NewManagerServer, options.NewMCServer, options.NewMCMServer}
	r := newHarnessWith(t, 100*time.Millisecond)
	var all []*process
	judge := func() {
		for _, part := range []controllers.Part{controllers.Machines, controllers.Sets} {
			require.LessOrEqual(t, leaders(all, part), 1, "processes that act on part %d", part)
		}
	}
	for range 12 {
		switch {
		case len(all) < 2 || len(all) < 6 && rng.IntN(2) == 0:
			all = append(all, r.program(servers[rng.IntN(len(servers))]()))
		case rng.IntN(3) == 0:
			verb := []string{"get", "update", "create"}[rng.IntN(3)]
			remove := r.control.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: verb, Resource: "leases"})
			time.AfterFunc(time.Duration(rng.Int64N(int64(2*time.Second))), remove)
		case rng.IntN(4) == 0:
			names := options.NewManagerServer().LeaseNames()
			err := r.control.Client().CoordinationV1().Leases(namespace).Delete(t.Context(), names[rng.IntN(len(names))], metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), err)
		default:
			i := rng.IntN(len(all))
			all[i].end()
			_ = all[i].result() // the lease may be lost by a fault
			all = slices.Delete(all, i, i+1)
		}
		for range rng.IntN(40) {
			time.Sleep(100 * time.Millisecond)
			judge()
		}
	}
	time.Sleep(10 * time.Second)
	judge()
	all = slices.DeleteFunc(all, func(p *process) bool { return p.gate.lost() != nil })
	for _, p := range all {
		led := func(part controllers.Part) bool { return leaders(all, part) == 1 }
		require.True(t, slices.ContainsFunc(partsOf(p.s), led), "nothing keeps the holder of %s from leading", p.s.LeaseNames())
	}
}

// TestLeases_RenewalFailsAfterAFailedRead_ReleasesNone loses the response to a renewal, and the next read: a lease that
// could not be read may still be the own one.
func TestLeases_RenewalFailsAfterAFailedRead_ReleasesNone(t *testing.T) {
	cluster := draintest.New(draintest.Options{})
	var locks []resourcelock.Interface
	for _, name := range []string{"a", "b"} {
		locks = append(locks, &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: cluster.Client().CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		})
	}
	l, ctx := newLeases(locks...), t.Context()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15, AcquireTime: metav1.Now(), RenewTime: metav1.Now()}
	later := func() resourcelock.LeaderElectionRecord {
		mine.RenewTime = metav1.NewTime(mine.RenewTime.Add(time.Second))
		return mine
	}
	require.NoError(t, l.Create(ctx, mine))
	require.NoError(t, l.Update(ctx, later()))

	cluster.Inject(
		draintest.Fault{Kind: draintest.TimeoutAfterEffect, Verb: "update", Resource: "leases", Name: "b", Times: 1},
		draintest.Fault{Kind: draintest.Unavailable, Verb: "get", Resource: "leases", Name: "a", Times: 1},
	)
	require.Error(t, l.Update(ctx, later()), "its effect happened")
	_, _, err := l.Get(ctx)
	require.Error(t, err)
	require.Error(t, l.Update(ctx, later()), "a conflict with the own write of b")
	held, err := cluster.Client().CoordinationV1().Leases(namespace).Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "me", *held.Spec.HolderIdentity, "a renewal releases none, because the controllers still run")
}

// TestManager_BriefOutage_OneLeader is the same in a manager beside a machine-controller.
