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

// count returns the requests by cluster and resource.
func (r result) count() map[[2]string]tally {
	counts := map[[2]string]tally{}
	for _, one := range r.rounds {
		for _, q := range one.requests {
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
	}
	return counts
}

// writes returns how many writes there were to a cluster for each machine, of some
// resources; of all, if none is named.
func (r result) writes(to string, resources ...string) float64 {
	n := 0
	for key, t := range r.count() {
		if key[0] == to && (len(resources) == 0 || slices.Contains(resources, key[1])) {
			n += t.writes()
		}
	}
	return float64(n) / float64(max(1, r.machines()))
}

func (r result) printRequests(out io.Writer) {
	counts, n := r.count(), float64(max(1, r.machines()))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nrequests for each machine\t%s\twrites\t\n", strings.Join(verbs, "\t"))
	line := func(title string, t tally) {
		fmt.Fprintf(table, "%s\t", title)
		for _, x := range t {
			cell := ""
			if x > 0 {
				cell = fmt.Sprintf("%.2f", float64(x)/n)
			}
			fmt.Fprintf(table, "%s\t", cell)
		}
		fmt.Fprintf(table, "%.2f\t\n", float64(t.writes())/n)
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
