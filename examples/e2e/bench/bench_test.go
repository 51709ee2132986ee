// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
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
	"github.com/machinist-dev/machinist/examples/audit"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestTheFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []int
		says string
	}{
		"the defaults":        {nil, []int{1, 20, 200}, ""},
		"sizes in any order":  {[]string{"-machines", "20, 3,20"}, []int{3, 20}, ""},
		"no number":           {[]string{"-machines", "1,x"}, nil, `"x" is no number`},
		"nothing":             {[]string{"-machines", ""}, nil, "is no number"},
		"no machines":         {[]string{"-machines", "0"}, nil, "is no number"},
		"too many":            {[]string{"-machines", "5001"}, nil, "is no number"},
		"an argument":         {[]string{"200"}, nil, "no arguments are expected"},
		"less than no rounds": {[]string{"-rounds", "-1"}, nil, "must not be negative"},
		"no time":             {[]string{"-timeout", "0s"}, nil, "must be positive"},
		"an unknown flag":     {[]string{"-x"}, nil, "not defined"},
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
	require.Equal(t, 3, settings{}.roundsOf(20))
	require.Equal(t, 1, settings{}.roundsOf(200))
	require.Equal(t, 7, settings{rounds: 7}.roundsOf(200))
}

func TestShares(t *testing.T) {
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
	up, down := whole(machines, timing{created: []time.Time{at(-5)}, deleted: []time.Time{at(55)}})
	require.Equal(t, 55*time.Millisecond, up)
	require.Equal(t, 45*time.Millisecond, down)

	timeline := timelineOf(log, requests, nodeName)
	require.Equal(t, "machine a", timeline[0])
	require.Contains(t, strings.Join(timeline, "\n"), "40.0 ms update machines/status 200")
	require.Contains(t, timeline[len(timeline)-1], "100.0 ms   is gone")
	require.Nil(t, timelineOf(audit.Log{}, requests, nodeName))
}

func TestLives_Sequential_SumOfEach(t *testing.T) {
	first, history, requests := record("a", 0)
	second, history2, requests2 := record("b", 1000)
	log := audit.Log{Changes: append(first.Changes, second.Changes...)}
	machines := momentsOf(log, append(history, history2...), append(requests, requests2...), nodeName)
	require.Len(t, machines, 2)
	up, down := whole(machines, timing{created: []time.Time{at(-1), at(995)}, deleted: []time.Time{at(59), at(1055)}})
	require.Equal(t, 55*time.Millisecond, up)
	require.Equal(t, 45*time.Millisecond, down)
}

// resultOf returns a result of a round of so many machines, of which everything was
// measured.
func resultOf(n int, cpu time.Duration, writes int) result {
	r := round{planned: n, cpu: time.Duration(n) * cpu, peak: 40 << 20, figures: audit.Figures{}}
	for i := range n {
		log, history, requests := record(fmt.Sprintf("m%d", i), 0)
		r.machines = append(r.machines, momentsOf(log, history, requests, nodeName)...)
		for range writes {
			r.requests = append(r.requests, controlplane.Request{Verb: "update", Resource: "machines", UserAgent: "machinist/machines"})
		}
		r.requests = append(r.requests, requests[2:]...)
	}
	r.up, r.down = 100*time.Millisecond, 200*time.Millisecond
	return result{title: "machines", rounds: []round{r}}
}

func TestTheTables(t *testing.T) {
	r := resultOf(4, 3*time.Millisecond, 5)
	require.Equal(t, 4, r.machines())
	require.InDelta(t, 7, r.writes("control"), 0.01)
	require.InDelta(t, 1, r.writes("control", "events"), 0.01)
	require.InDelta(t, 2, r.writes("target"), 0.01)
	var out bytes.Buffer
	r.print(&out, true)
	for _, says := range []string{
		"== machines", "machine to Running       50    50    50     100", "deletion to gone       40    40    40     200",
		"control cluster    1.00    5.00                   1.00", "pods/eviction    1.00", "CPU 3.0 ms for each machine", "40 MiB of memory", "no bound broken",
	} {
		require.Contains(t, out.String(), says)
	}
}

func TestTheTargets(t *testing.T) {
	single := resultOf(5, time.Millisecond, 5)
	slow := resultOf(5, time.Millisecond, 5)
	slow.rounds[0].down = time.Second
	of := func(few, many result) map[int]result { return map[int]result{1: few, 20: few, 200: many} }
	tests := map[string]struct {
		single result
		sizes  map[int]result
		met    bool
		says   string
	}{
		"all are met":           {single, of(resultOf(20, 3*time.Millisecond, 5), resultOf(200, 3*time.Millisecond, 5)), true, "yes  7.00 writes"},
		"slow deletion":         {slow, nil, false, "NO   an empty machine is gone 1000 ms"},
		"many writes":           {single, of(resultOf(20, 3*time.Millisecond, 11), resultOf(200, 3*time.Millisecond, 11)), false, "NO   13.00 writes"},
		"growing CPU":           {single, of(resultOf(20, 3*time.Millisecond, 5), resultOf(200, 4*time.Millisecond, 5)), false, "NO   CPU time in ms for each of 200 machines is 1.33 times"},
		"growing writes":        {single, of(resultOf(20, 3*time.Millisecond, 1), resultOf(200, 3*time.Millisecond, 5)), false, "NO   number of writes"},
		"too few to tell":       {single, map[int]result{1: single, 20: single}, true, "-    the rest takes"},
		"too few after all":     {single, map[int]result{20: single, 199: single}, true, "-    the rest takes"},
		"too many to tell":      {single, map[int]result{200: single}, true, "-    the rest takes"},
		"nothing but one alone": {single, nil, true, "yes  an empty machine is gone 200 ms"},
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
	const writes = 5
	tests := map[string]struct {
		spoil func(*round)
		want  string
	}{
		"deletion not observed":                 {func(r *round) { r.machines[3].deleted = time.Time{} }, "deletion to gone of 1 of"},
		"end of a machine not observed":         {func(r *round) { r.machines[3].removed = time.Time{} }, "deletion to gone of 1 of"},
		"VMs not observed":                      {func(r *round) { r.machines[0].vm, r.machines[1].vm = time.Time{}, time.Time{} }, "machine to VM of 2 of"},
		"Node of no VM":                         {func(r *round) { r.machines[0].node = time.Time{} }, "VM to Node of 1 of"},
		"a machine that never ran":              {func(r *round) { r.machines[0].running = time.Time{} }, "machine to Running of 1 of"},
		"a machine of which nothing is written": {func(r *round) { r.machines = r.machines[1:] }, "1 of"},
		"no machines":                           {func(r *round) { r.machines = nil }, "machines in round 1"},
		"no end of the whole":                   {func(r *round) { r.down = 0 }, "deletion to gone of the whole"},
		"no beginning of the whole":             {func(r *round) { r.up = 0 }, "machine to Running of the whole"},
		"no requests":                           {func(r *round) { r.requests = nil }, "the writes of"},
		"no requests for one": {func(r *round) {
			r.requests = slices.DeleteFunc(r.requests, func(q controlplane.Request) bool { return q.Name == "m0" })
		}, "the writes of 1 of"},
		"no process": {func(r *round) { r.cpu, r.peak = 0, 0 }, "CPU time in 1 of 1 rounds"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for which := range 3 {
				all := []result{resultOf(5, time.Millisecond, writes), resultOf(20, time.Millisecond, writes), resultOf(200, time.Millisecond, writes)}
				sizes := map[int]result{20: all[1], 200: all[2]}
				require.True(t, judge(&bytes.Buffer{}, "linux", all[0], sizes))
				test.spoil(&all[which].rounds[0])
				var out bytes.Buffer
				require.False(t, judge(&out, "linux", all[0], sizes), out.String())
				require.Regexp(t, `(?m)^NO   .*: not measured: .*`+test.want, out.String())
			}
		})
	}
	var out bytes.Buffer
	require.False(t, judge(&out, "linux", result{}, nil), "no rounds")
	require.Contains(t, out.String(), "NO   single machines: not measured: anything")
}

func TestCPUTime_Unknown_NotMet(t *testing.T) {
	single, sizes := resultOf(5, 0, 5), map[int]result{20: resultOf(20, 0, 5), 200: resultOf(200, 0, 5)}
	var out bytes.Buffer
	require.False(t, judge(&out, "linux", single, sizes))
	require.Contains(t, out.String(), "NO   deployments of 20: not measured: CPU time in 1 of 1 rounds\nNO   deployments of 200: not measured: CPU time")
	require.NotContains(t, out.String(), "single machines: not measured", "so few may take less than can be measured")
	require.NotContains(t, out.String(), "CPU time in ms")

	out.Reset()
	require.True(t, judge(&out, "plan9", single, sizes), out.String())
	require.Contains(t, out.String(), "-    CPU time was not measured: plan9 does not tell it here\n")
	require.NotRegexp(t, `yes .*CPU`, out.String())

	out.Reset()
	single.rounds[0].peak = 0
	single.print(&out, false)
	require.Contains(t, out.String(), "CPU not measured; memory not measured\n")
}

func TestCPUTime_PartUnknown_SumUnknown(t *testing.T) {
	log, history, requests := record("a", 0)
	asked := timing{created: []time.Time{at(-1)}, deleted: []time.Time{at(55)}}
	machines := momentsOf(log, history, requests, nodeName)
	machines = append(machines, machines[0])
	machines[1].running = time.Time{}
	up, down := whole(machines, asked)
	require.Zero(t, up)
	require.Equal(t, 45*time.Millisecond, down)
	machines[1].running, machines[0].removed = at(50), time.Time{}
	up, down = whole(machines, asked)
	require.Equal(t, 51*time.Millisecond, up)
	require.Zero(t, down)
	up, down = whole(nil, asked)
	require.Zero(t, up+down)
	machines[0].removed, asked.created = at(100), append(asked.created, at(500))
	up, down = whole(machines, asked)
	require.Zero(t, up+down, "the second is not known")

	var out bytes.Buffer
	result{rounds: []round{{machines: make([]moments, 1), figures: audit.Figures{}}}}.print(&out, false)
	require.Regexp(t, `deletion to gone +not measured`, out.String())
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
