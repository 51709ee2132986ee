// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type scaleDownOrderIn struct{ Machines []machine }

type scaleDownOrderOut struct{ DeletionOrder [][]string }

// scaleDownOrder compares groups of machines that MCM does not order. Here the names order them.
func scaleDownOrder(in scaleDownOrderIn, out scaleDownOrderOut) ([]string, error) {
	machines := machinesOf(in.Machines)
	model := func(m mended) scaleDownOrderOut { return orderModel(in, m) }
	var order []string
	for _, v := range members.DeletionOrder(now).First(machines, len(machines)) {
		order = append(order, v.Machine.Name)
	}
	all := model(without("DS-23", "DS-26"))
	if err := same("order", slices.Concat(all.DeletionOrder...), order); err != nil {
		return nil, err
	}
	if err := pairwise(machines, all.DeletionOrder); err != nil {
		return nil, err
	}
	return explain([]string{"DS-23", "DS-26"}, model, out, all)
}

func orderModel(in scaleDownOrderIn, m mended) scaleDownOrderOut {
	r := setModel{m}
	sorted := machinesOf(in.Machines)
	slices.SortStableFunc(sorted, func(a, b *v1alpha1.Machine) int {
		return cmp.Or(r.compare(a, b), strings.Compare(a.Name, b.Name))
	})
	var groups [][]string
	for i, m := range sorted {
		if i == 0 || r.compare(sorted[i-1], m) != 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], m.Name)
	}
	return scaleDownOrderOut{groups}
}

// pairwise holds the comparator against the groups.
func pairwise(machines []*v1alpha1.Machine, groups [][]string) error {
	group := map[string]int{}
	for i, names := range groups {
		for _, name := range names {
			group[name] = i
		}
	}
	for _, a := range machines {
		for _, b := range machines {
			want := cmp.Or(cmp.Compare(group[a.Name], group[b.Name]), strings.Compare(a.Name, b.Name))
			got, by := members.DeletionOrder(now).Compare(a, b)
			if cmp.Compare(got, 0) != want || group[a.Name] == group[b.Name] && by != "Name" {
				return fmt.Errorf("%s and %s: %d by %s, want %d", a.Name, b.Name, got, by, want)
			}
		}
	}
	return nil
}
