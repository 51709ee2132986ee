// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// atMost is how many requests a phase may take: for each machine, and others that do not depend on the
// machines, or that a busy computer causes. Zero allows none.
type atMost struct {
	each float64
	once int
}

// of returns the number for a phase with so many machines.
func (m atMost) of(machines int) int { return int(m.each*float64(machines)) + m.once }

// budget is the largest number of requests of a kind in each phase of a fleet, and what they are for.
type budget struct {
	of                  write
	create, roll, scale atMost
	why                 string
}

// in returns the largest number in a phase.
func (b budget) in(phase string) atMost {
	switch phase {
	case creation:
		return b.create
	case rollout:
		return b.roll
	case toZero:
		return b.scale
	default:
		return atMost{}
	}
}

// aboutMachines is the resource of the Events of machines. Those of other objects are "events".
const aboutMachines = "events of machines"

// few allows a few requests that a busy computer causes, much less than one for each machine.
func few(each float64) atMost { return atMost{each, 5} }

// budgets are all requests that the manager makes for a fleet of a deployment without pods and without
// failures, with a bootstrap token for each machine, a surge of a tenth, and nodes that the deployment
// holds against the cluster autoscaler during the rollout. A kind of request without a line, and more
// requests than a line allows, are an error: a new write needs a new number here, and a reason.
//
// The requests for sets and deployments depend on the steps of the rollout, of which a small fleet has as
// many as a large one. Watches are not in it: they begin again after some minutes, and when the manager is
// slow.
var budgets = []budget{
	{
		write{"machines", "", "create"}, few(1), few(1), atMost{},
		"the machine, with its finalizer, labels and priority: no update follows for them",
	},
	{
		write{"machines", "status", "update"}, few(3), few(4), few(1),
		"that a VM is requested, before the call, so that a crash loses no VM; Pending, with the VM; Running, with the Node; Terminating, after which no VM is created",
	},
	{
		write{"machines", "", "update"}, few(1), few(2), few(1),
		"the provider ID and the name of the Node in one write: spec and status are two resources; at the end the finalizer",
	},
	{write{"secrets", "", "create"}, few(1), few(1), atMost{}, "the bootstrap token, which no other machine may use"},
	{write{"secrets", "", "delete"}, few(1), few(1), atMost{}, "the bootstrap token of a machine that has joined is a secret without use"},
	{
		write{"nodes", "", "patch"}, few(1), few(5), few(2),
		"finalizer, template, owner and hold against the autoscaler of a Node that joins; taint and hold of an old Node; cordon; the finalizer after the VM is deleted; the end of the hold",
	},
	{write{"nodes", "status", "patch"}, atMost{}, few(1), few(1), "the condition Terminating, before the drain: status and spec are two resources"},
	{write{"nodes", "", "delete"}, atMost{}, few(1), few(1), "no other controller deletes the Node of a deleted VM"},
	{write{"pods", "", "list"}, atMost{}, few(1), few(1), "a cache that shows no pods may be old: the end of the drain is decided on a list of the API server"},
	{write{"machines", "", "delete"}, atMost{}, few(1), few(1), "the set deletes the machine"},
	{
		write{"machinesets", "status", "update"}, atMost{0.5, 40}, atMost{1, 100}, atMost{0.5, 30},
		"the numbers of machines, on which the deployment waits; changes are collected for half a millisecond for each machine",
	},
	{
		write{"machinesets", "", "update"}, atMost{0, 5}, atMost{0.3, 60}, atMost{0, 5},
		"the size of each step of the rollout, for two sets; what a rollout records on them",
	},
	{write{"machinesets", "", "create"}, atMost{0, 1}, atMost{0, 1}, atMost{}, "the set of a template"},
	{write{"machinesets", "", "get"}, atMost{0.02, 10}, atMost{0.3, 60}, atMost{0.02, 10}, "a set creates and deletes for its present size only"},
	{write{"machinedeployments", "", "get"}, atMost{0, 10}, atMost{0.3, 60}, atMost{0, 10}, "a step of a rollout is decided on the present size and pause of the deployment"},
	{write{"machinedeployments", "status", "update"}, atMost{0.1, 20}, atMost{0.2, 40}, atMost{0.1, 20}, "the numbers and the progress of the rollout, once a second"},
	{write{"machinedeployments", "", "update"}, atMost{0, 5}, atMost{0, 5}, atMost{0, 5}, "the finalizer, and the revision of a template"},
	{write{"machineclasses", "", "update"}, atMost{0, 1}, atMost{0, 1}, atMost{0, 1}, "the finalizer while a machine needs the class"},
	{write{"events", "", "create"}, atMost{0, 60}, atMost{0, 120}, atMost{0, 60}, "SuccessfulCreate and SuccessfulDelete of a set, of which client-go sends 25, and the steps of the deployment"},
	{write{"events", "", "patch"}, atMost{0, 60}, atMost{0, 120}, atMost{0, 60}, "the same Event again is counted"},
	{write{"rolebindings", "", "get"}, atMost{0, 20}, atMost{0, 20}, atMost{0, 20}, "once in a while, by the time"},
	{write{"machines", "", "list"}, atMost{0, 5}, atMost{0, 5}, atMost{0, 5}, "before the first creation of a process for a set, and before the finalizer of a class is removed"},
	{write{"machinesets", "", "list"}, atMost{0, 5}, atMost{0, 5}, atMost{0, 5}, "as above"},
	{write{"machinedeployments", "", "list"}, atMost{0, 5}, atMost{0, 5}, atMost{0, 5}, "as above"},
	{
		write{"machines", "", "get"}, few(0.7), few(0.7), few(0),
		"before the token and before the VM, if the last response to a write of the machine is older than a second; the probe of the API server",
	},
	{write{"nodes", "", "get"}, few(0.01), few(0.01), few(0.01), "as above, and a Node that has changed since"},
}

// mostConflicts is the largest share of requests that the API server may refuse because another client
// has written the object. Each is a request for nothing.
const mostConflicts = 0.01

// usage is how many requests of a kind a phase has taken, and how many of them were conflicts.
type usage struct{ all, conflicts int }

// usageOf counts requests by kind. Watches are left out.
func usageOf(requests []controlplane.Request, machines map[string]bool) map[write]usage {
	counts := map[write]usage{}
	for _, q := range requests {
		if q.Verb == "watch" {
			continue
		}
		kind := write{q.Resource, q.Subresource, q.Verb}
		if at := strings.LastIndex(q.Name, "."); q.Resource == "events" && at > 0 && machines[q.Name[:at]] {
			kind.resource = aboutMachines
		}
		u := counts[kind]
		u.all++
		if q.Code == conflict && q.Verb != "create" { // a creation answers so if the object exists
			u.conflicts++
		}
		counts[kind] = u
	}
	return counts
}

// conflict is the code of a response to a write whose precondition did not hold.
const conflict = 409

// spent is what a phase has taken of a kind of request, and the most that it may take.
type spent struct {
	usage
	kind  write
	most  atMost
	limit int
	why   string
}

// spending returns what a phase has taken of each line of the budget, and of kinds without a line.
func (p phase) spending(budgets []budget, machines map[string]bool) (rows []spent) {
	counts := usageOf(p.requests, machines)
	row := func(kind write, most atMost, why string) {
		rows = append(rows, spent{counts[kind], kind, most, most.of(p.machines), why})
		delete(counts, kind)
	}
	for _, b := range budgets {
		if most := b.in(p.name); most != (atMost{}) || counts[b.of].all > 0 {
			row(b.of, most, b.why)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(counts), func(a, b write) int { return cmp.Compare(a.String(), b.String()) }) {
		row(kind, atMost{}, "no line of the budget allows it")
	}
	return rows
}

// overspent returns what is above the budget of a phase, one phrase each.
func (p phase) overspent(budgets []budget, machines map[string]bool) (over []string) {
	for _, r := range p.spending(budgets, machines) {
		if r.all > r.limit {
			over = append(over, fmt.Sprintf("%s: %d of %s, at most %d are allowed", p.name, r.all, r.kind, r.limit))
		}
	}
	return over
}

// printSpending prints the budget of a phase beside the requests that it has taken.
func (p phase) printSpending(out io.Writer, budgets []budget, machines map[string]bool) {
	n, sum := float64(max(1, p.machines)), total(p.requests)
	fmt.Fprintf(out, "\n%s: %.2f requests for each machine, %d conflicts (%.2f %%)\n", p.name, float64(sum.all)/n, sum.conflicts, 100*p.conflictShare())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  request\teach\tmost\tall\tmost\tconflicts\tfor")
	for _, r := range p.spending(budgets, machines) {
		mark := " "
		if r.all > r.limit {
			mark = "!"
		}
		fmt.Fprintf(table, "%s %s\t%.2f\t%.2f\t%d\t%d\t%d\t%s\n", mark, r.kind, float64(r.all)/n, r.most.each, r.all, r.limit, r.conflicts, r.why)
	}
	_ = table.Flush() // to standard output
}

// printBudget prints the budget of each phase.
func (r result) printBudget(out io.Writer) {
	if !r.budgeted {
		return
	}
	for _, p := range r.phases {
		p.printSpending(out, budgets, r.names)
	}
	fmt.Fprintln(out)
}

// total returns how many requests there were, and how many of them were conflicts. Watches are left out.
func total(requests []controlplane.Request) (sum usage) {
	for _, u := range usageOf(requests, nil) {
		sum.all += u.all
		sum.conflicts += u.conflicts
	}
	return sum
}

// conflictShare returns the share of the requests of a phase that were conflicts.
func (p phase) conflictShare() float64 {
	sum := total(p.requests)
	return float64(sum.conflicts) / float64(max(1, sum.all))
}
