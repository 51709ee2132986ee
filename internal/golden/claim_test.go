// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type claimIn struct {
	APICallError                                        string
	ControllerDeleting, ObjectDeleting, SelectorMatches bool
	OwnerRef                                            string
}

type claimOut struct {
	Calls   []string
	Claimed bool
	Error   *string
}

// claim does not compare which error of a call is returned, which is up to the executor. It
// compares that the machine is not claimed.
func claim(in claimIn, out claimOut) ([]string, error) {
	set := (&machineSet{Name: "ms", Replicas: 1}).object()
	set.Spec.Selector.MatchLabels = map[string]string{"app": "w"}
	m := machine{Name: "m", Phase: v1alpha1.MachineRunning, Labels: map[string]string{"app": "w"}, Deleting: in.ObjectDeleting}.object()
	if in.ControllerDeleting {
		set.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	if !in.SelectorMatches {
		m.Labels = map[string]string{"app": "other"}
	}
	self := machineset.OwnerSet(set).Reference()
	other, weak, no := self, self, false
	other.UID, weak.Controller = "other", &no
	refs, known := map[string][]metav1.OwnerReference{"none": nil, "self": {self}, "other": {other}, "nonController": {weak}}[in.OwnerRef]
	if !known {
		return nil, fmt.Errorf("owner %q", in.OwnerRef)
	}
	m.OwnerReferences = refs
	claims := machineset.Claim(machineset.OwnerSet(set), set.Spec.Selector, []*v1alpha1.Machine{m})
	got := claimOut{Claimed: len(claims.Owned) == 1, Error: out.Error}
	if len(claims.Adopt) == 1 {
		got.Calls = append(got.Calls, "adopt")
		got.Claimed = in.APICallError == "" || in.APICallError == "none" || in.APICallError == "null"
	}
	if len(claims.Release) == 1 {
		got.Calls = append(got.Calls, "release")
	}
	return nil, same("claim", out, got)
}
