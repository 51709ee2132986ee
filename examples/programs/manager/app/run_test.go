// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	good = http.StatusOK
	bad  = http.StatusInternalServerError
)

func TestElection_Two_OneTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.class("c")
		first := r.prepare().start()
		r.eventually("the first works", first.works)
		second := r.prepare().start()
		r.eventually("the second stands by", func() bool { return second.health() == [2]int{good, good} })
		r.machine("m1", "c")
		r.eventually("running", func() bool { return r.phase("m1") == v1alpha1.MachineRunning })
		require.Equal(t, first.identity, r.holder())
		require.Contains(t, first.logs.String(), "the lease is in the namespace of the machines")
		require.False(t, second.works())

		first.end()
		require.NoError(t, first.result())
		began := time.Now()
		r.eventually("the second works", second.works)
		require.Less(t, time.Since(began), 900*time.Millisecond, "the lease was given back, not waited for")
		require.Equal(t, second.identity, r.holder())
		r.machine("m2", "c")
		r.eventually("running", func() bool { return r.phase("m2") == v1alpha1.MachineRunning })
		second.end()
		require.NoError(t, second.result())
		require.Empty(t, r.holder())
		require.Len(t, r.cloud.Snapshot().VMs, 2)
	})
}

func TestElection_SameHost_DifferentIdentities(t *testing.T) {
	require.NotEqual(t, identity(), identity())
}

func TestElection_LeaseLost_EndsWithError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver = d
		p.start()
		r.class("c")
		r.machine("m", "c")
		<-d.begun
		remove := r.control.Inject(draintest.Fault{Kind: draintest.Unavailable, Resource: "leases"})
		began := time.Now()
		require.ErrorIs(t, p.result(), ErrLeaseLost)
		require.Less(t, time.Since(began), time.Second, "before another one may lead")
		require.ErrorIs(t, <-d.err, context.Canceled, "the call was cut short")
		remove()
		require.Equal(t, p.identity, r.holder(), "what is lost is not given back")
	})
}

func TestElection_LeaseLostDuringCall_IsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver, d.deaf, p.unwind = d, true, 300*time.Millisecond
		p.start()
		r.class("c")
		r.machine("m", "c")
		<-d.begun
		remove := r.control.Inject(draintest.Fault{Kind: draintest.Unavailable, Resource: "leases"})
		r.eventually("stops", func() bool { return strings.Contains(p.logs.String(), `"msg":"stops"`) })
		remove() // the API server is back, and would take it
		err := p.result()
		require.ErrorIs(t, err, ErrLeaseLost)
		require.ErrorIs(t, err, errStuck)
		require.Equal(t, p.identity, r.holder())
		close(d.proceed)
		require.ErrorIs(t, <-d.err, context.Canceled, "its context had ended")
	})
}

func TestElection_StandbyWithoutAPIServer_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		remove := r.control.Inject(draintest.Fault{Kind: draintest.Unavailable, Resource: "leases"})
		p := r.prepare().start()
		r.eventually("stands by", func() bool { return p.health() == [2]int{good, good} })
		select {
		case err := <-p.done:
			t.Fatal(err)
		case <-time.After(time.Second): // twice the renew deadline
		}
		remove()
		r.eventually("works", p.works)
		p.end()
		require.NoError(t, p.result())
	})
}

func TestHealth_StartRunStop_Answers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver = d
		var defined atomic.Bool
		p.machines.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !defined.Load(), nil, apierrors.NewNotFound(schema.GroupResource{}, "machine.sapcloud.io/v1alpha1")
		})
		remove := r.control.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "list", Resource: "machines"})
		asked := func() int { return len(p.machines.Actions()) }
		p.start()
		r.eventually("the API server is asked", func() bool { return asked() > 0 })
		require.Equal(t, [2]int{good, bad}, p.health(), "waits for the definitions")

		defined.Store(true)
		r.eventually("it leads", func() bool { return r.holder() == p.identity && asked() > 5 })
		require.Equal(t, [2]int{good, bad}, p.health(), "leads, and has not seen everything")
		remove()
		r.eventually("works", p.works)
		require.Equal(t, [2]int{good, good}, p.health())
		require.Equal(t, http.StatusNotFound, p.check("/"))

		r.class("c")
		r.machine("m", "c")
		<-d.begun
		p.end()
		r.eventually("is stopping", func() bool { return p.health() == [2]int{bad, bad} })
		close(d.proceed)
		require.NoError(t, p.result())
		require.Equal(t, [2]int{0, 0}, p.health())
	})
}

func TestStop_DriverCall_FinishesBeforeRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver = d
		p.start()
		r.class("c")
		r.machine("m", "c")
		<-d.begun
		p.end()
		r.eventually("stops", func() bool { return strings.Contains(p.logs.String(), `"msg":"stops"`) })
		renewed := func() metav1.MicroTime {
			lease, err := r.control.Client().CoordinationV1().Leases(namespace).Get(t.Context(), "machine-controller", metav1.GetOptions{})
			require.NoError(t, err)
			return *lease.Spec.RenewTime
		}
		before := renewed()
		r.eventually("the lease is renewed meanwhile", func() bool { return renewed() != before })
		require.Equal(t, p.identity, r.holder())
		close(d.proceed)
		require.NoError(t, p.result())
		require.NoError(t, <-d.err, "the call was not cut short")
		require.Empty(t, r.holder())
		vms := r.cloud.Snapshot().VMs
		require.Len(t, vms, 1)
		m, err := r.machines.MachineV1alpha1().Machines(namespace).Get(t.Context(), "m", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, vms[0].ProviderID, m.Spec.ProviderID, "what the call has answered is written down")

		next := r.prepare().start()
		r.eventually("the next one finds the VM", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		require.Len(t, r.cloud.Snapshot().VMs, 1)
		next.end()
		require.NoError(t, next.result())
	})
}

func TestStop_CallLongerThanGrace_IsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver, p.grace = d, 50*time.Millisecond
		p.start()
		r.class("c")
		r.machine("m", "c")
		<-d.begun
		p.end()
		require.NoError(t, p.result())
		require.ErrorIs(t, <-d.err, context.Canceled)
		require.Empty(t, r.holder())
	})
}

func TestStop_CallIgnoresContext_LeaseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		d := newSlow(r.cloud)
		p.driver, d.deaf, p.grace, p.unwind = d, true, 20*time.Millisecond, 20*time.Millisecond
		p.start()
		r.class("c")
		r.machine("m", "c")
		<-d.begun
		p.end()
		require.ErrorIs(t, p.result(), errStuck)
		require.Equal(t, p.identity, r.holder(), "its call may still do something")
		close(d.proceed)
		require.ErrorIs(t, <-d.err, context.Canceled, "its context had ended")
	})
}

func TestElection_Disabled_NoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		p.s.LeaderElection.LeaderElect = false
		p.start()
		r.eventually("ready", func() bool { return p.health() == [2]int{good, good} })
		p.end()
		require.NoError(t, p.result())
		require.Empty(t, p.leases.Actions())
	})
}

func TestStart_DefinitionsMissing_WaitsThenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		p.patience = 50 * time.Millisecond
		p.machines.Resources = nil
		err := p.start().result()
		require.ErrorIs(t, err, ErrNotServed)
		require.ErrorContains(t, err, "manager install")

		some := r.prepare()
		some.patience = 0
		some.machines.Resources[0].APIResources = some.machines.Resources[0].APIResources[:1]
		require.ErrorIs(t, some.start().result(), ErrNotServed)
	})
}

func TestStart_APIServerDown_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		p.patience = time.Millisecond
		p.clients.machines = unreachable{p.clients.machines}
		p.start()
		select {
		case err := <-p.done:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
		require.Contains(t, p.logs.String(), "waits for the API server")
		p.end()
		require.NoError(t, p.result())
	})
}

func TestStart_PortInUse_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		p := r.prepare()
		l, err := p.listen()
		require.NoError(t, err)
		require.NoError(t, l.Close())
		p.listen = func() (net.Listener, error) { return nil, errors.New("taken") }
		require.ErrorContains(t, p.start().result(), "taken")
	})
}

func TestHealth_DefaultAddress_OnlyTheHostCanAsk(t *testing.T) {
	s := options.NewMCServer()
	s.Port = 0 // any
	l, err := newManager(s, nil, clients{}, newGate(s.LeaderElection), metrics.New(metrics.Options{}), slog.Default()).listen()
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	address, err := netip.ParseAddrPort(l.Addr().String())
	require.NoError(t, err)
	require.True(t, address.Addr().IsLoopback(), address)
}

// unreachable is a client whose API server is away.
type unreachable struct{ versioned.Interface }

func (u unreachable) Discovery() discovery.DiscoveryInterface {
	return refusing{u.Interface.Discovery()}
}

type refusing struct{ discovery.DiscoveryInterface }

func (refusing) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, errors.New("connection refused")
}

func TestStart_InvalidOptions_Refused(t *testing.T) {
	require.Error(t, Run(nil, nil))
	require.Error(t, RunContext(t.Context(), nil, nil))
	require.ErrorIs(t, RunContext(t.Context(), &options.MCServer{}, nil), options.ErrInvalid)
	require.Error(t, RunContext(t.Context(), options.NewMCServer(), nil))
}

func TestRun_OneMachine_NoEventAndNoSecretLogged(t *testing.T) {
	r := newHarness(t)
	p := r.prepare().start()
	r.class("c")
	r.machine("m", "c")
	r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
	require.NoError(t, r.machines.MachineV1alpha1().Machines(namespace).Delete(t.Context(), "m", metav1.DeleteOptions{}))
	r.eventually("gone", func() bool { return r.phase("m") == "gone" })
	p.end()
	require.NoError(t, p.result())

	list, err := r.control.Client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items, "the statuses and the lease show a life without failures")

	require.NotContains(t, p.logs.String(), hunter2)
	decided := 0
	for line := range strings.Lines(p.logs.String()) {
		var entry struct{ Msg, Kind, Key, Decision string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		if entry.Msg == "decided" && entry.Kind == "machine" && entry.Key == "default/m" && entry.Decision != "" {
			decided++
		}
	}
	require.Greater(t, decided, 5)
}

// TestManager_Config_HasEverySetting compares what the controllers get with what the flags say.
func TestManager_Config_HasEverySetting(t *testing.T) {
	s := options.NewManagerServer()
	s.PVReattachTimeout, s.TokenGroups, s.Shard = time.Minute, "system:bootstrappers:a", "blue"
	p := newHarness(t).prepareAs(s)
	got, want := reflect.ValueOf(p.config(nil, &events{})), reflect.ValueOf(s.Config())
	compared := 0
	for i := range want.NumField() {
		field := want.Type().Field(i)
		if !field.IsExported() || want.Field(i).IsZero() || field.Name == "Resync" {
			continue
		}
		compared++
		require.Equal(t, want.Field(i).Interface(), got.Field(i).Interface(), field.Name)
	}
	require.Equal(t, 10, compared, "fields that flags set")
	resync := p.config(nil, &events{}).Resync
	require.True(t, resync >= s.MinResyncPeriod && resync < 2*s.MinResyncPeriod, resync)
}
