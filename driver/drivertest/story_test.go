// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

// scope is the first part of the provider IDs of most VMs, which stories leave out.
const scope = "simulated:///shoot/"

func fullID(id string) string {
	if strings.Count(id, "/") == 1 {
		return scope + id
	}
	return id
}

// act carries out a step of a story and returns what comes of it.
func (u *user) act(t *testing.T, verb, name, id string) string {
	t.Helper()
	ctx := t.Context()
	id = fullID(id)
	found := func(id string, err error) string {
		return strings.TrimSpace(codes.Of(err).String() + " " + strings.TrimPrefix(id, scope))
	}
	switch verb {
	case "make":
		resp, err := u.make(ctx, name)
		return found(cmp.Or(resp, &createResponse{}).ProviderID, err)
	case "get":
		resp, err := u.get(ctx, name, id)
		return found(cmp.Or(resp, &getResponse{}).ProviderID, err)
	case "initialize":
		return codeOf(u.initialize(ctx, name, id)).String()
	case "delete":
		return codes.Of(u.remove(ctx, name, id)).String()
	case "list":
		vms, err := u.list(ctx)
		return fmt.Sprint(len(vms), " ", codes.Of(err))
	case "sides":
		q := &driver.ListSideResourcesRequest{MachineClass: u.class, Secret: u.secret}
		resp, err := u.ListSideResources(ctx, q)
		return fmt.Sprint(len(cmp.Or(resp, &driver.ListSideResourcesResponse{}).Resources), " ", codes.Of(err))
	case "spec":
		u.class.ProviderSpec.Raw = []byte(name)
		return ""
	case "add":
		namespace, machine, _ := strings.Cut(name, "/")
		return strings.TrimPrefix(u.AddVM(VM{Namespace: namespace, Machine: machine}).ProviderID, scope)
	case "stop":
		return fmt.Sprint(u.Stop(fullID(name)))
	case "terminate":
		return fmt.Sprint(u.Terminate(fullID(name)))
	case "next":
		return u.NextChange().Format(time.TimeOnly)
	case "of":
		return strings.TrimSpace(u.Snapshot().Of(name).String())
	case "most":
		n, machine := u.History().MaxVMsOfOneMachine()
		return fmt.Sprint(n, " ", machine)
	case "history":
		var events []string
		for _, e := range u.History() {
			events = append(events, fmt.Sprintf("%s %s", e.Time.Sub(start), e.Kind))
		}
		return strings.Join(events, ", ")
	case "all":
		return u.all()
	default:
		require.Failf(t, "unknown", "%q", verb)
		return ""
	}
}

// all returns the VMs of the cloud in their states, and the numbers of side resources.
func (u *user) all() string {
	s, vms := u.Snapshot(), []string(nil)
	if s.Empty() {
		return "nothing"
	}
	for _, v := range s.VMs {
		text := strings.TrimPrefix(v.String(), "vm "+scope)
		vms = append(vms, strings.Replace(text, " of machine "+v.Machine+",", "", 1))
	}
	all := cmp.Or(strings.Join(vms, ", "), "no VM")
	leftovers := strings.Count(s.String(), ", without a vm")
	return fmt.Sprintf("%s with %d sides, %d left over", all, len(s.SideResources), leftovers)
}

// TestCloud_Stories plays what a user does with a cloud, and compares what comes of each step, which is behind
// its "=". A step with a duration lets that time pass.
func TestCloud_Stories(t *testing.T) {
	half := []Fault{{Operation: driver.OpDeleteMachine, Kind: Partial, Steps: 2, Times: 1}}
	internal := []Fault{{Operation: driver.OpGetMachineStatus, Machine: "m-1", Times: 2, Code: codes.Internal}}
	for name, c := range map[string]struct {
		options CloudOptions
		story   string
	}{
		"a VM changes its state while time passes, and its ID is never used again": {CloudOptions{BootTime: time.Minute, ShutdownTime: 30 * time.Second}, `
			make m-1 = OK m-1/1; all = m-1/1 Pending with 2 sides, 0 left over; next = 12:01:00; 1m; all = m-1/1 Running with 2 sides, 0 left over; next = 00:00:00;
			delete m-1 m-1/1 = OK; all = m-1/1 Deleting with 0 sides, 0 left over; get m-1 = NotFound; list = 1 OK; make m-1 = Aborted; delete m-1 m-1/1 = OK; 1h; list = 0 OK; all = nothing;
			history = 0s VMCreated, 1m0s VMReady, 1m0s VMDeletionBegan, 1m30s VMDeleted; make m-1 = OK m-1/2`},
		"the first VM has the provider ID of its Node": {CloudOptions{ForgetfulCreate: true, Lag: time.Minute, ProviderID: func(node string) string { return "kubemark://" + node }}, `
			make m-1 = OK kubemark://m-1; make m-1 = OK m-1/1; terminate kubemark://m-1 = true; 1h; all = m-1/1 Running with 2 sides, 0 left over`},
		"a VM that is deleted or stopped while it boots is never ready": {CloudOptions{BootTime: time.Minute, ShutdownTime: time.Hour}, `
			make m-1 = OK m-1/1; delete m-1 = OK; make m-2 = OK m-2/1; stop m-2/1 = true; 2h; history = 0s VMCreated, 0s VMDeletionBegan, 0s VMCreated, 1h0m0s VMDeleted`},
		"a VM of another scope is not found": {CloudOptions{NeedsInitialization: true}, `
			add elsewhere/m-1 = simulated:///elsewhere/m-1/1; get m-1 = NotFound; get m-1 simulated:///elsewhere/m-1/1 = NotFound;
			initialize m-1 = NotFound; initialize m-1 simulated:///elsewhere/m-1/1 = NotFound;
			delete m-1 = NotFound; delete m-1 simulated:///elsewhere/m-1/1 = NotFound; make m-1 = OK m-1/1; list = 1 OK`},
		"the ProviderSpec has a scope": {CloudOptions{}, `
			make m-1 = OK m-1/1; spec; list = 1 OK; spec {}; list = 1 OK; spec {"scope":"shoot"}; list = 1 OK;
			spec {"scope":"other","more":1}; list = 0 OK; spec {; list = 0 InvalidArgument; spec {"scope":1}; list = 0 InvalidArgument`},
		"the zero fault refuses every call": {CloudOptions{Faults: []Fault{{}}}, `
			make m-1 = Unavailable; list = 0 Unavailable; sides = 0 Unavailable; all = nothing`},
		"a VM is initialized once, and not while it is deleted": {CloudOptions{NeedsInitialization: true, ShutdownTime: time.Minute}, `
			make m-1 = OK m-1/1; all = m-1/1 Running, not initialized with 2 sides, 0 left over; get m-1 = Uninitialized m-1/1;
			initialize m-1 = OK; initialize m-1 m-1/1 = OK; get m-1 = OK m-1/1; history = 0s VMCreated, 0s VMReady;
			delete m-1 = OK; initialize m-1 = NotFound; initialize m-1 m-1/1 = NotFound; 1m; add shoot/m-2 = m-2/1; add shoot/m-2 = m-2/2; initialize m-2 = OutOfRange`},
		"lag delays what is seen, and by its ID a VM can be deleted": {CloudOptions{Lag: 10 * time.Second}, `
			make m-1 = OK m-1/1; get m-1 m-1/1 = NotFound; list = 0 OK; sides = 0 OK; delete m-1 = NotFound; make m-2 = OK m-2/1; delete m-2 m-2/1 = OK;
			make m-1 = OK m-1/1; all = m-1/1 Running with 2 sides, 0 left over; 10s; get m-1 m-1/1 = OK m-1/1; list = 1 OK; sides = 2 OK; delete m-1 = OK;
			9s; get m-1 m-1/1 = OK m-1/1; list = 1 OK; sides = 2 OK; 1s; get m-1 m-1/1 = NotFound; list = 0 OK; sides = 0 OK`},
		"a forgetful create makes duplicates": {CloudOptions{Lag: 10 * time.Second, ForgetfulCreate: true}, `
			make m-1 = OK m-1/1; make m-1 = OK m-1/2; 1m; get m-1 = OutOfRange; make m-1 = OutOfRange; list = 2 OK; most = 2 m-1`},
		"a deletion by provider ID keeps the duplicate, and one by name deletes all": {CloudOptions{}, `
			make m-1 = OK m-1/1; add shoot/m-1 = m-1/2; delete m-1 m-1/2 = OK; all = m-1/1 Running with 2 sides, 0 left over;
			add shoot/m-1 = m-1/3; delete m-1 = OK; all = nothing`},
		"a quota counts VMs that are being deleted": {CloudOptions{Quota: 1, ShutdownTime: time.Minute}, `
			make m-1 = OK m-1/1; make m-2 = ResourceExhausted; of m-2 = nothing; sides = 2 OK; delete m-1 = OK; make m-2 = ResourceExhausted; 1m; make m-2 = OK m-2/1`},
		"a VM is stopped or terminated from outside": {CloudOptions{BootTime: time.Minute, ShutdownTime: time.Minute}, `
			make m-1 = OK m-1/1; make m-2 = OK m-2/1; stop m-1/1 = true; stop m-1/1 = true; 1h; all = m-1/1 Stopped, m-2/1 Running with 4 sides, 0 left over; get m-1 = OK m-1/1;
			terminate m-2/1 = true; all = m-1/1 Stopped with 2 sides, 0 left over; delete m-1 = OK; terminate m-1/1 = true; all = nothing;
			terminate m-2/1 = false; stop none = false`},
		"a fault selects operation, machine and number of calls": {CloudOptions{Faults: internal}, `
			get m-2 = NotFound; get m-1 = Internal; get m-2 = NotFound; get m-1 = Internal; get m-2 = NotFound; get m-1 = NotFound`},
		"a deletion that stops half way leaves side resources": {CloudOptions{ShutdownTime: time.Minute, Faults: half}, `
			make m-1 = OK m-1/1; delete m-1 m-1/1 = Unavailable; 1m; all = no VM with 1 sides, 1 left over; get m-1 m-1/1 = NotFound;
			delete m-1 m-1/1 = OK; all = nothing; delete m-1 m-1/1 = NotFound`},
	} {
		t.Run(name, func(t *testing.T) {
			u, clk := standing(c.options)
			for step := range strings.SplitSeq(c.story, ";") {
				act, want, _ := strings.Cut(strings.TrimSpace(step), " = ")
				if d, err := time.ParseDuration(act); err == nil {
					clk.Step(d)
					continue
				}
				words := append(strings.Fields(act), "", "")
				require.Equal(t, want, u.act(t, words[0], words[1], words[2]), step)
			}
		})
	}
}
