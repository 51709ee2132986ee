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

// The columns of a table of requests, and the first that does not write.
var (
	verbs = []string{"create", "update", "patch", "delete", "status", "get", "list", "watch"}
	reads = slices.Index(verbs, "get")
)

// column returns the column of a request, and a negative number if it has none.
func column(q controlplane.Request) int {
	if q.Subresource == "status" && (q.Verb == "update" || q.Verb == "patch") {
		return slices.Index(verbs, "status")
	}
	return slices.Index(verbs, q.Verb)
}

// cluster says which cluster a request is for, were there two.
func cluster(q controlplane.Request) string {
	if q.UserAgent == "machinist/nodes" {
		return "target"
	}
	return "control"
}

// tally is how many requests there were, by column.
type tally [8]int

func (t tally) writes() (n int) {
	for _, x := range t[:reads] {
		n += x
	}
	return n
}

func (t tally) sum() (n int) {
	for _, x := range t {
		n += x
	}
	return n
}

// count returns the requests by cluster and resource.
func (r result) count() map[[2]string]tally {
	counts := map[[2]string]tally{}
	for _, q := range r.requests {
		if i := column(q); i >= 0 {
			key := [2]string{cluster(q), q.Resource}
			if q.Subresource != "" && q.Subresource != "status" {
				key[1] += "/" + q.Subresource
			}
			t := counts[key]
			t[i]++
			counts[key] = t
		}
	}
	return counts
}

// withoutEvents selects the requests that are not about Events.
func withoutEvents(q controlplane.Request) bool { return q.Resource != "events" }

// in selects the requests to a cluster.
func in(name string) func(controlplane.Request) bool {
	return func(q controlplane.Request) bool { return cluster(q) == name }
}

// each returns how many requests there were for each machine, of those that all conditions select.
func (r result) each(selected ...func(controlplane.Request) bool) float64 {
	n := 0
	for _, q := range r.requests {
		if !slices.ContainsFunc(selected, func(is func(controlplane.Request) bool) bool { return !is(q) }) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(r.machines)))
}

func (r result) printRequests(out io.Writer) {
	counts, n := r.count(), float64(max(1, len(r.machines)))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nrequests for each life\t%s\twrites\tall\t\n", strings.Join(verbs, "\t"))
	line := func(title string, t tally) {
		fmt.Fprintf(table, "%s\t", title)
		for _, x := range t {
			cell := ""
			if x > 0 {
				cell = fmt.Sprintf("%.2f", float64(x)/n)
			}
			fmt.Fprintf(table, "%s\t", cell)
		}
		fmt.Fprintf(table, "%.2f\t%.2f\t\n", float64(t.writes())/n, float64(t.sum())/n)
	}
	for _, to := range []string{"control", "target"} {
		var sum tally
		for _, key := range slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }) {
			if key[0] != to {
				continue
			}
			line(key[1], counts[key])
			for i, x := range counts[key] {
				sum[i] += x
			}
		}
		line(to+" cluster", sum)
	}
	_ = table.Flush() // to standard output
	fmt.Fprintln(out)
}
