// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// expected drops the expectations that the machines of a view fulfil.
func expected(e machine.Expectations, machines []*v1alpha1.Machine, complete bool) machine.Expectations {
	if len(e) == 0 {
		return nil
	}
	named := make(map[string]*v1alpha1.Machine, len(machines))
	for _, m := range machines {
		if m != nil {
			named[m.Name] = m
		}
	}
	return e.Observe(func(_, name string) metav1.Object { return named[name] }, complete)
}

// deleting returns the UIDs whose deletion has not shown up yet.
func deleting(e machine.Expectations) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, x := range e.Deletes() {
		uids[x.UID] = true
	}
	return uids
}
