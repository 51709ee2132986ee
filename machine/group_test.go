// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestGroupOf_OwnersBeforeLabel(t *testing.T) {
	t.Parallel()
	own := func(kind, name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: machineUID(uid), Controller: new(true)}}
	}
	build := func(label string, owners []metav1.OwnerReference) *v1alpha1.Machine {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m", OwnerReferences: owners}}
		if label != "" {
			m.Labels = map[string]string{v1alpha1.LabelKeyMachineDeploymentName: label}
		}
		return m
	}
	set := func(uid string, owners []metav1.OwnerReference) *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "s", UID: machineUID(uid), OwnerReferences: owners}}
	}
	bySet, byDeployment := own("MachineSet", "s", "1"), own("MachineDeployment", "d", "2")
	for name, tc := range map[string]struct {
		m    *v1alpha1.Machine
		set  *v1alpha1.MachineSet
		want string
	}{
		"the deployment of its set":          {build("", bySet), set("1", byDeployment), "shoot/d"},
		"whatever the label says":            {build("other", bySet), set("1", byDeployment), "shoot/d"},
		"the label if the set has no owner":  {build("other", bySet), set("1", nil), "shoot/other"},
		"or another kind of owner":           {build("other", bySet), set("1", own("Pool", "d", "2")), "shoot/other"},
		"or is not known":                    {build("other", bySet), nil, "shoot/other"},
		"or is another one of its name":      {build("other", bySet), set("3", byDeployment), "shoot/other"},
		"the set if there is no label":       {build("", bySet), set("1", nil), "shoot/machineset/s"},
		"also if the set is not known":       {build("", bySet), nil, "shoot/machineset/s"},
		"the label of a machine by itself":   {build("other", nil), nil, "shoot/other"},
		"none for a machine with neither":    {build("", nil), nil, ""},
		"nor for one of another kind's":      {build("", own("Pool", "s", "1")), set("1", byDeployment), ""},
		"nor for one that is not controlled": {build("", []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "1"}}), set("1", byDeployment), ""},
		"nor for none":                       {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, machine.GroupOf(tc.m, tc.set).String())
		})
	}
}

// A machine whose owner is known only by its own reference is limited as well: it is
// held until the other machines of its set were looked at.
func TestReplacementLimit_OwnerWithoutLabel_NeedsSiblings(t *testing.T) {
	t.Parallel()
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, copied)
	in.Machine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "1", Controller: new(true)}}
	d := lawful(t, in, limited(1))
	require.Nil(t, d.Do)
	require.Equal(t, "machineset/s", d.Holds[0].Subject)
	require.Equal(t, machine.ReasonReplacementLimit, d.Reason)

	in.Siblings = machine.Siblings{Complete: true, Group: machine.Group{Namespace: "shoot", Deployment: "d"}}
	require.Equal(t, "take one of 1 permits of shoot/d", lawful(t, in, limited(1)).Do.String())
}

func TestNeedsSiblings_OnlyPhasesThatHealthFails(t *testing.T) {
	t.Parallel()
	require.False(t, machine.NeedsSiblings(nil))
	for _, p := range allPhases {
		m := newMachine("m")
		m.Status.CurrentStatus.Phase = p
		require.Equal(t, p == v1alpha1.MachineUnknown || p == v1alpha1.MachineInPlaceUpdateFailed, machine.NeedsSiblings(m), p)
		m.DeletionTimestamp = &metav1.Time{Time: now}
		require.False(t, machine.NeedsSiblings(m), p)
	}
}
