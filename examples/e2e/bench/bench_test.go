// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestFlags_Each_SettingsOrError(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []int
		says string
	}{
		"the defaults":       {nil, []int{100, 1000, 3000}, ""},
		"sizes in any order": {[]string{"-machines", "20, 3,20"}, []int{3, 20}, ""},
		"no number":          {[]string{"-machines", "1,x"}, nil, `"x" is no number`},
		"nothing":            {[]string{"-machines", ""}, nil, "is no number"},
		"no machines":        {[]string{"-machines", "0"}, nil, "is no number"},
		"too many":           {[]string{"-machines", "20001"}, nil, "is no number"},
		"an argument":        {[]string{"200"}, nil, "no arguments are expected"},
		"no requests":        {[]string{"-qps", "0"}, nil, "must be positive"},
		"an unknown flag":    {[]string{"-x"}, nil, "not defined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			s, err := parse(test.args, &errOut)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				require.Equal(t, 2, bench(t.Context(), test.args, &errOut, &errOut))
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, s.sizes)
		})
	}
	require.Zero(t, bench(t.Context(), []string{"-h"}, &bytes.Buffer{}, &bytes.Buffer{}))
}

func TestPlans_Lives_CreatedAndReplaced(t *testing.T) {
	require.Equal(t, alone, singles().lives())
	require.Equal(t, 600, fleetOf(300).lives())
}

func TestSeries_Shares_OfSortedTimes(t *testing.T) {
	require.Zero(t, series{}.median())
	require.Equal(t, 5*time.Millisecond, series{5 * time.Millisecond}.at(0.95))
	var s series
	for i := range 101 {
		s.add(at(0), at(100-i))
	}
	s.add(time.Time{}, at(5))
	s.add(at(5), time.Time{})
	require.Len(t, s, 101, "what is not known does not count")
	require.Equal(t, []time.Duration{50 * time.Millisecond, 95 * time.Millisecond, 100 * time.Millisecond}, []time.Duration{s.median(), s.at(0.95), s.at(1)})
}

// record returns the records of a machine that begins some time after the start.
func record(name string, begin int) (log audit.Log, history drivertest.History, requests []controlplane.Request) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	change := func(ms int, gone bool, f func(*v1alpha1.Machine)) {
		m = m.DeepCopy()
		f(m)
		log.Changes = append(log.Changes, audit.Change{Time: at(begin + ms), Object: m, Gone: gone})
	}
	change(0, false, func(*v1alpha1.Machine) {})
	change(50, false, func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })
	change(60, false, func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: start} })
	change(100, true, func(*v1alpha1.Machine) {})
	vm := drivertest.VM{UID: string(m.UID)}
	history = drivertest.History{
		{Kind: drivertest.VMCreated, VM: vm, Time: at(begin + 10)},
		{Kind: drivertest.VMDeletionBegan, VM: vm, Time: at(begin + 70)},
		{Kind: drivertest.VMDeleted, VM: vm, Time: at(begin + 80)},
	}
	requests = []controlplane.Request{
		{Verb: "create", Resource: "nodes", Name: "n-" + name, Time: at(begin + 20), Latency: 5 * time.Millisecond, Code: 409},
		{Verb: "create", Resource: "nodes", Name: "n-" + name, Time: at(begin + 30), Latency: 5 * time.Millisecond, Code: 201},
		{Verb: "update", Resource: "machines", Subresource: "status", Name: name, Time: at(begin + 40), Code: 200, UserAgent: "machinist/machines"},
		{Verb: "create", Resource: "events", Name: name + ".1", Time: at(begin + 45), Code: 201, UserAgent: "machinist/events"},
		{Verb: "patch", Resource: "nodes", Name: "n-" + name, Time: at(begin + 65), Code: 200, UserAgent: "machinist/nodes"},
		{Verb: "create", Resource: "pods", Subresource: "eviction", Name: "p", Time: at(begin + 65), Code: 201, UserAgent: "machinist/nodes"},
		{Verb: "get", Resource: "nodes", Name: "n-" + name, Time: at(begin + 66), Code: 200, UserAgent: "machinist/nodes"},
	}
	return log, history, requests
}

func nodeName(machine string) string { return "n-" + machine }

func TestLife_AllRecords_Joined(t *testing.T) {
	log, history, requests := record("a", 0)
	machines := momentsOf(log, append(history, drivertest.Event{Kind: drivertest.VMCreated}), requests, nodeName)
	require.Equal(t, []moments{{
		made: at(0), vm: at(10), node: at(35), running: at(50), deleted: at(60), vmDeleted: at(70), removed: at(100),
	}}, machines)
	timeline := timelineOf(log, requests, nodeName)
	require.Equal(t, "machine a", timeline[0])
	require.Contains(t, strings.Join(timeline, "\n"), "40.0 ms update machines/status 200")
	require.Contains(t, timeline[len(timeline)-1], "100.0 ms   is gone")
	require.Nil(t, timelineOf(audit.Log{}, requests, nodeName))
}

func TestWall_Requests_SumToTheLastStepOfEach(t *testing.T) {
	machines := []moments{{running: at(50), removed: at(900)}, {running: at(70), removed: at(940)}, {running: at(400)}}
	tests := map[string]struct {
		asked []time.Time
		ended int
		want  time.Duration
	}{
		"the last of several":          {[]time.Time{at(10)}, 100, 60 * time.Millisecond},
		"the sum of two requests":      {[]time.Time{at(10), at(100)}, 500, 360 * time.Millisecond},
		"machines that are gone":       {[]time.Time{at(500)}, 1000, 440 * time.Millisecond},
		"steps after the end":          {[]time.Time{at(500)}, 910, 400 * time.Millisecond},
		"no step after one of several": {[]time.Time{at(10), at(100), at(200)}, 1000, 0},
		"no step at all":               {[]time.Time{at(941)}, 1000, 0},
		"no request":                   {nil, 1000, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, wall(test.asked, at(test.ended), machines))
		})
	}
}

// resultOf returns a result of a plan with so many lives, of which everything was measured. The
// manager makes 5 requests for each life, an Event, and the given number of updates.
func resultOf(p plan, cpu time.Duration, updates int) result {
	r := result{title: p.title, planned: p.lives(), peak: 40 << 20, figures: audit.Figures{}, budgeted: p.budgeted}
	for i := range p.lives() {
		log, history, requests := record(fmt.Sprintf("m%d", i), 0)
		r.machines = append(r.machines, momentsOf(log, history, requests, nodeName)...)
		for range updates {
			r.requests = append(r.requests, controlplane.Request{Verb: "update", Resource: "machines", UserAgent: "machinist/machines"})
		}
		r.requests = append(r.requests, requests[2:]...)
	}
	for _, s := range p.phases {
		of := writes{{"machines", "", "update"}: 10 * s.machines}
		r.phases = append(r.phases, phase{
			name: s.name, machines: s.machines, writes: of, played: maps.Clone(of), requests: requests(s.machines, write{"machines", "status", "update"}),
			cpu: time.Duration(s.machines) * cpu, wall: 150 * time.Millisecond, floor: 100 * time.Millisecond,
		})
	}
	r.idle = idleness{began: at(0), ended: at(60_000), requests: make([]controlplane.Request, 12)}
	r.restart = idleness{began: at(70_000), ended: at(80_000), requests: requests(20, write{"machines", "", "list"})}
	return r
}

func TestResult_Measured_Tables(t *testing.T) {
	r := resultOf(fleetOf(4), 3*time.Millisecond, 5)
	require.InDelta(t, 10, r.each(), 0.01)
	require.InDelta(t, 9, r.each(withoutEvents), 0.01)
	require.InDelta(t, 6, r.each(withoutEvents, in("control")), 0.01)
	require.InDelta(t, 3, r.each(in("target")), 0.01)
	var out bytes.Buffer
	r.print(&out, true)
	for _, says := range []string{
		"== fleet of 4", "machine to Running       50    50    50", "deletion to gone       40    40    40",
		"roll          4     0.15      0.10         1.50       40               1.00              3.0",
		"control cluster    1.00    5.00                   1.00                       7.00  7.00",
		"pods/eviction    1.00", "idle for 60 s after the rollout: 0.20 requests/s", "CPU time of a life: 4.5 ms; peak memory: 40 MiB", "no bound broken",
	} {
		require.Contains(t, out.String(), says)
	}
}

func TestResult_NotMeasured_IsSaid(t *testing.T) {
	var out bytes.Buffer
	result{phases: []phase{{name: creation}}, machines: make([]moments, 1), figures: audit.Figures{}}.print(&out, false)
	require.Regexp(t, `create.* not measured .* not measured`, out.String())
	require.Regexp(t, `deletion to gone +not measured`, out.String())
	require.Contains(t, out.String(), "CPU time of a life: not measured; peak memory: not measured")
	require.NotContains(t, out.String(), "idle")
}

func TestTargets_Figures_YesOrNo(t *testing.T) {
	const ms = time.Millisecond
	good := resultOf(singles(), ms, 5)
	small, large := resultOf(fleetOf(20), 3*ms, 4), resultOf(fleetOf(200), 3*ms, 4)
	slower := func(r result, name string, wall time.Duration) result {
		r.phases = slices.Clone(r.phases)
		for i := range r.phases {
			if r.phases[i].name == name {
				r.phases[i].wall = wall
			}
		}
		return r
	}
	spending := func(r result, kind write, code int) result {
		r.phases = slices.Clone(r.phases)
		for range 3 {
			r.phases[1].requests = append(slices.Clip(r.phases[1].requests), request(kind, "", code))
		}
		return r
	}
	busy := small
	busy.idle.requests = make([]controlplane.Request, 13)
	restarting := func(kind write, n int) result {
		r := small
		r.restart.requests = append(requests(19, write{"machines", "", "list"}), requests(n, kind)...)
		return r
	}
	working, fat := small, large
	working.idle.cpu, fat.peak = 130*ms, small.peak+180*36<<10
	of := func(few, many result) map[int]result { return map[int]result{20: few, 50: few, 200: many} }
	tests := map[string]struct {
		single result
		sizes  map[int]result
		met    bool
		says   string
	}{
		"all are met":          {good, of(small, large), true, "yes  5.00 requests to the control cluster"},
		"slow deletion":        {slower(good, deletion, 301*ms), nil, false, "NO   the deletion of a single machine takes 3.01 times"},
		"slow rollout":         {good, of(small, slower(large, rollout, 210*ms)), false, "NO   roll of 200 machines takes 2.10 times"},
		"slow creation":        {good, of(small, slower(large, creation, 210*ms)), false, "NO   create of 200 machines"},
		"slow only if small":   {good, of(slower(small, creation, 210*ms), large), true, "yes  create of 200 machines takes 1.50 times"},
		"many requests":        {good, of(resultOf(fleetOf(20), 3*ms, 9), resultOf(fleetOf(200), 3*ms, 9)), false, "NO   10.00 requests"},
		"growing requests":     {good, of(resultOf(fleetOf(20), 3*ms, 3), large), false, "NO   number of requests of a life for each of 200 machines is 1.12 times"},
		"growing CPU":          {good, of(small, resultOf(fleetOf(200), 4*ms, 4)), false, "NO   CPU time to scale to 0 in ms for each of 200 machines is 1.33 times that of 20"},
		"above the budget":     {good, of(small, spending(large, write{"pods", "", "get"}, 200)), false, "NO   roll of 200 machines keeps its budget of requests: roll: 3 of get pods, at most 0 are allowed"},
		"conflicts":            {good, of(small, spending(large, write{"machines", "status", "update"}, 409)), false, "NO   roll of 200 machines: 1.48 % of its requests are conflicts <= 1 %"},
		"not idle":             {good, of(busy, large), false, "NO   an idle fleet of 20 takes 0.22 requests/s"},
		"working while idle":   {good, of(working, large), false, "NO   an idle fleet of 20 takes 0.22 % of a CPU <= 0.2 %"},
		"writing at a start":   {good, of(restarting(write{"machines", "status", "update"}, 1), large), false, "NO   a manager that starts beside 20 machines makes 20 requests beyond leases <= 20, 1 writes"},
		"reading at a start":   {good, of(restarting(write{"nodes", "", "get"}, 2), large), false, "NO   a manager that starts beside 20 machines makes 21 requests"},
		"reviewing its rights": {good, of(restarting(write{"selfsubjectaccessreviews", "", "create"}, 1), large), true, "yes  a manager that starts beside 20 machines makes 20 requests"},
		"growing memory":       {good, of(small, fat), false, "NO   the memory of each further machine is 36.0 KiB <= 35"},
		"too few to tell":      {good, map[int]result{1: small, 20: small}, true, "-    the rest takes"},
		"too close to tell":    {good, map[int]result{100: small, 200: large}, true, "-    the rest takes"},
		"one size only":        {good, map[int]result{200: large}, true, "-    the rest takes"},
		"nothing but singles":  {good, nil, true, "yes  the deletion of a single machine takes 1.50 times"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.Equal(t, test.met, judge(&out, "linux", test.single, test.sizes), out.String())
			require.Contains(t, out.String(), test.says)
		})
	}
}

func TestTarget_NothingMeasured_NotMet(t *testing.T) {
	tests := map[string]struct {
		spoil func(*result)
		want  string
	}{
		"no start of another manager":           {func(r *result) { r.restart.requests = nil }, "the requests of a manager that starts"},
		"deletion not observed":                 {func(r *result) { r.machines[3].deleted = time.Time{} }, "deletion to gone of 1 of"},
		"end of a machine not observed":         {func(r *result) { r.machines[3].removed = time.Time{} }, "deletion to gone of 1 of"},
		"VMs not observed":                      {func(r *result) { r.machines[0].vm, r.machines[1].vm = time.Time{}, time.Time{} }, "machine to VM of 2 of"},
		"Node of no VM":                         {func(r *result) { r.machines[0].node = time.Time{} }, "VM to Node of 1 of"},
		"a machine that never ran":              {func(r *result) { r.machines[0].running = time.Time{} }, "machine to Running of 1 of"},
		"a machine of which nothing is written": {func(r *result) { r.machines = r.machines[1:] }, "1 of"},
		"no machines":                           {func(r *result) { r.machines = nil }, "machines"},
		"no phases":                             {func(r *result) { r.phases = nil }, "anything"},
		"no end of a phase":                     {func(r *result) { r.phases[1].wall = 0 }, "the time of"},
		"no floor":                              {func(r *result) { r.phases[1].floor = 0 }, "the floor of"},
		"a floor without a kind":                {func(r *result) { r.phases[0].played = writes{{"nodes", "", "create"}: r.phases[0].writes.sum()} }, "the floor of create, with"},
		"no writes":                             {func(r *result) { r.phases[0].writes, r.phases[0].played = nil, nil }, "the floor of create, with 0 of 0"},
		"no requests":                           {func(r *result) { r.requests = nil }, "the writes of"},
		"no requests of a phase":                {func(r *result) { r.phases[1].requests = nil }, "the requests of"},
		"no requests for one": {func(r *result) {
			r.requests = slices.DeleteFunc(r.requests, func(q controlplane.Request) bool { return q.Name == "m0" })
		}, "the writes of 1 of"},
		"no process": {func(r *result) { r.phases[0].cpu = 0 }, "CPU time of 1 of"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for which := range 3 {
				all := []result{resultOf(singles(), 1, 4), resultOf(fleetOf(20), 1, 4), resultOf(fleetOf(200), 1, 4)}
				sizes := func() map[int]result { return map[int]result{20: all[1], 200: all[2]} }
				require.True(t, judge(&bytes.Buffer{}, "linux", all[0], sizes()))
				test.spoil(&all[which])
				var out bytes.Buffer
				require.False(t, judge(&out, "linux", all[0], sizes()), out.String())
				require.Regexp(t, `(?m)^NO   .*: not measured: .*`+test.want, out.String())
			}
		})
	}
}

func TestCPUTime_OtherSystem_NoTarget(t *testing.T) {
	single, sizes := resultOf(singles(), 0, 4), map[int]result{20: resultOf(fleetOf(20), 0, 4), 200: resultOf(fleetOf(200), 0, 4)}
	var out bytes.Buffer
	require.False(t, judge(&out, "linux", single, sizes))
	require.NotContains(t, out.String(), "CPU time of a rollout")

	out.Reset()
	require.True(t, judge(&out, "plan9", single, sizes), out.String())
	require.Contains(t, out.String(), "-    CPU time was not measured: plan9 does not tell it here\n")
	require.NotRegexp(t, `yes .*CPU`, out.String())
}

func TestProcess_Own_CPUAndMemory(t *testing.T) {
	require.Zero(t, process(0).cpu())
	require.Zero(t, process(0).peak())
	require.Zero(t, managerOf("unknown"))
	if runtime.GOOS != "linux" {
		return
	}
	me := process(os.Getpid())
	for began := time.Now(); me.cpu() == 0; {
		require.Less(t, time.Since(began), 10*time.Second, "this loop takes CPU time")
	}
	require.Greater(t, me.peak(), 1<<20)
}
