// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

// frontDoor is an address of the cloud for one manager, which records what arrives.
type frontDoor struct {
	url string

	mu    sync.Mutex
	calls []arrival
}

// arrival is a driver call that has arrived at the cloud.
type arrival struct {
	at   time.Time
	op   string
	body []byte
}

func openFrontDoor(t *testing.T, s *env.Env) *frontDoor {
	t.Helper()
	f, handler := &frontDoor{}, cloud.Handler(s.Cloud)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // what was not sent wholly is not a call
		}
		f.mu.Lock()
		f.calls = append(f.calls, arrival{at, path.Base(r.URL.Path), body})
		f.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// after returns the calls that arrived after a time.
func (f *frontDoor) after(at time.Time) []arrival {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.calls), func(a arrival) bool { return !a.at.After(at) })
}

// loss is what a manager logs when it has lost its lease.
type loss struct {
	at   time.Time
	line string
}

var lossLine = regexp.MustCompile(`(?m)^time=(\S+) level=ERROR msg="the lease was lost.*$`)

func lossOf(t *testing.T, m *env.Manager) loss {
	t.Helper()
	found := lossLine.FindStringSubmatch(m.Log())
	require.NotNil(t, found, m.Tail(20))
	at, err := time.Parse(time.RFC3339Nano, found[1])
	require.NoError(t, err)
	return loss{at, found[0]}
}

var callInFlight = regexp.MustCompile(`(\w+) of machine \\"[^/]*/([^"\\]+)`)

// names reports whether the line names a call as in flight.
func (l loss) names(a arrival) bool {
	for _, named := range callInFlight.FindAllStringSubmatch(l.line, -1) {
		if named[1] == a.op && bytes.Contains(a.body, []byte(`"`+named[2]+`"`)) {
			return true
		}
	}
	return strings.Contains(l.line, a.op+" of class") // the listing of a class
}

// writesAfter returns the writes of the managers with the least rights that arrived
// after a time.
func writesAfter(t *testing.T, s *env.Env, at time.Time) (writes []controlplane.Request) {
	t.Helper()
	all, err := s.Requests(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		if r.Time.After(at) && !slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			writes = append(writes, r)
		}
	}
	return writes
}

// admin writes a kubeconfig of a cluster admin, for a manager whose requests are to
// be told from those of another.
func admin(t *testing.T) string {
	t.Helper()
	text, err := controlplane.Kubeconfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// lostIts waits for the end of a manager that has lost its lease.
func lostIts(t *testing.T, m *env.Manager) loss {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.ErrorContains(t, m.Ended(ctx), "exit status 1")
	return lossOf(t, m)
}

func TestPausedLeader_AnotherLeads_BeginsNothing(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "paused", withShortLease(fastOptions()))
	door := openFrontDoor(t, s)
	one := s.StartManager(t, "one", "--simulated-cloud="+door.url)
	s.Wait(t, patience, "one leads", leads(one.Log, 1))
	two := s.StartManager(t, "two", "--target-kubeconfig="+admin(t))
	deploy(t, s, s.Deployment("workers", "small", 12, 3, 1))
	seen := watchCloud(t, s)
	roll(t, s, "workers", "large")
	await(t, seen, drivertest.VMCreated)
	require.NoError(t, one.Pause())
	missing, err := s.Complete("workers")(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, missing, "the roll is over before the pause")
	s.Wait(t, patience, "two leads", leads(two.Log, 1))

	resumed := time.Now()
	require.NoError(t, one.Resume())
	lost := lostIts(t, one)
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	for _, a := range door.after(resumed) {
		require.True(t, lost.names(a), "%s arrived %s after the end of the pause, and is not named in flight: %s", a.op, a.at.Sub(resumed), lost.line)
	}
	require.Empty(t, writesAfter(t, s, resumed))
	removeAll(t, s)
}

func TestLeader_LeaseTakenByHand_BeginsNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, *env.Env){
		"stolen": func(t *testing.T, s *env.Env) {
			_, err := s.Client.CoordinationV1().Leases(s.ManagerNamespace()).Patch(t.Context(), "machine-controller", mergePatch,
				[]byte(`{"spec":{"holderIdentity":"other"}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		},
		"deleted": func(t *testing.T, s *env.Env) {
			require.NoError(t, s.Client.CoordinationV1().Leases(s.ManagerNamespace()).Delete(t.Context(), "machine-controller", metav1.DeleteOptions{}))
		},
	}
	for name, take := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const retry = 5 * time.Second
			o := fastOptions()
			o.Cloud.CreateLatency = 2 * time.Second // so that calls are in flight
			o.Flags = append(o.Flags, "--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period="+retry.String())
			s := cluster.Set(t, name, o)
			door := openFrontDoor(t, s)
			one := s.StartManager(t, "one", "--simulated-cloud="+door.url)
			seen := watchCloud(t, s)
			require.NoError(t, s.Class(t.Context(), "small"))
			d := s.Deployment("workers", "small", 20, 1, 0)
			_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(t.Context(), d, metav1.CreateOptions{})
			require.NoError(t, err)
			await(t, seen, drivertest.VMCreated)
			taken := time.Now()
			take(t, s)

			lost := lostIts(t, one)
			require.Less(t, lost.at.Sub(taken), retry)
			require.Regexp(t, `calls=[1-9]\d* inFlight=".*CreateMachine`, lost.line, "what was in flight is named")
			for _, a := range door.after(lost.at) {
				require.True(t, lost.names(a), "%s: %s", a.op, lost.line)
			}
			for _, w := range writesAfter(t, s, lost.at) {
				name := w.Name
				if w.Verb == "create" && w.Subresource == "" { // whose path does not end with a name
					name = ""
				}
				require.Contains(t, lost.line, path.Join("/", w.Namespace, w.Resource, name, w.Subresource), "%v", w)
			}
			t.Logf("the lease was lost after %s; %d calls in all", lost.at.Sub(taken).Round(time.Millisecond), len(door.after(time.Time{})))

			s.Start(t, one) // a labelTaker that does not renew it holds the lease as long as a leader
			s.Wait(t, patience, "all machines run", s.Complete("workers"))
			removeAll(t, s)
		})
	}
}
