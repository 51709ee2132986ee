// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A class or a Secret that is missing or wrong for hours. No machine may fail for that, because its
// replacement would fail, too (I-22).

// wrongness is what is wrong with the class or its Secret.
type wrongness string

const (
	classMissing    wrongness = "the class does not exist"
	secretMissing   wrongness = "the Secret does not exist"
	noUserData      wrongness = "the Secret has no user data"
	wrongCredential wrongness = "the Secret has a wrong credential"
	noZone          wrongness = "the node template has no zone"
)

// wrongClass is a time in which a class or a Secret is wrong. One that is missing is so from the begin.
type wrongClass struct {
	what        wrongness
	from, lasts time.Duration
}

func (c wrongClass) until() time.Duration { return c.from + c.lasts }

func (c *wrongClass) String() string {
	if c == nil {
		return "class right"
	}
	return fmt.Sprintf("%s from %s for %s", c.what, c.from, c.lasts)
}

// anyWrongClass returns a random fault of a class.
func anyWrongClass(rng *rand.Rand) *wrongClass {
	c := &wrongClass{what: []wrongness{classMissing, secretMissing, noUserData, wrongCredential, noZone}[rng.IntN(5)]}
	c.lasts = time.Minute + time.Duration(rng.Int64N(int64(3*time.Hour)))
	if c.what != classMissing && c.what != secretMissing && rng.IntN(2) == 0 {
		c.from = time.Duration(rng.Int64N(int64(2 * time.Minute)))
	}
	return c
}

// addClass creates the class and its Secret, and lets them be wrong for a while.
func (w *world) addClass(class *v1alpha1.MachineClass, secret *corev1.Secret) {
	c := w.scenario.wrong
	if c == nil {
		must(w.control.cluster.Add(class, secret))
		return
	}
	patchSecret := func(patch string) func() {
		return func() {
			_, err := w.secrets.CoreV1().Secrets(ns).Patch(ofOthers, secret.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			w.logf("a user patches the Secret with %s: %v", patch, err)
			must(err)
		}
	}
	patchClass := func(patch string) func() {
		return func() {
			_, err := w.machines.MachineV1alpha1().MachineClasses(ns).Patch(ofOthers, class.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			w.logf("a user patches the class with %s: %v", patch, err)
			must(err)
		}
	}
	var begin, end func()
	switch c.what {
	case classMissing:
		must(w.control.cluster.Add(secret))
		end = func() { must(w.control.cluster.Add(class)) }
	case secretMissing:
		must(w.control.cluster.Add(class))
		end = func() { must(w.control.cluster.Add(secret)) }
	case noUserData:
		begin, end = patchSecret(`{"data":{"userData":null}}`), patchSecret(`{"data":{"userData":"eA=="}}`)
	case wrongCredential:
		begin, end = patchSecret(`{"data":{"credential":"d3Jvbmc="}}`), patchSecret(`{"data":{"credential":"cmlnaHQ="}}`)
	case noZone:
		begin, end = patchClass(`{"nodeTemplate":{"capacity":{"cpu":"1","gpu":"0","memory":"1Gi"},"instanceType":"m","region":"r"}}`), patchClass(`{"nodeTemplate":null}`)
	}
	if begin != nil {
		must(w.control.cluster.Add(class, secret))
	}
	switch {
	case begin != nil && c.from == 0:
		begin()
	case begin != nil:
		w.later(c.from, begin)
	}
	w.later(c.until(), end)
}

// rememberRequest records that a VM was requested for a machine.
func (w *world) rememberRequest(a simCall) {
	if a.operation == driver.OpCreateMachine {
		w.judge.requested[a.name] = true
	}
}

// assessSharedCause checks that a machine does not fail before it has a VM because of its class, nor
// within its timeout after the class is right again. After the record of a creation, a process does not
// know whether an earlier one has requested the VM.
func (w *world) assessSharedCause(was, is *v1alpha1.Machine) {
	never := func(c corev1.NodeCondition) bool {
		return c.Type == v1alpha1.MachineVMRequested && c.Status == corev1.ConditionFalse
	}
	if is.Status.LastOperation.Description == v1alpha1.CreatingMachine && !slices.ContainsFunc(is.Status.Conditions, never) {
		w.judge.requested[is.Name] = true
	}
	c, from := w.scenario.wrong, was.Status.CurrentStatus.Phase
	if c == nil || is.Status.CurrentStatus.Phase != v1alpha1.MachineFailed || from != "" && from != v1alpha1.MachineCrashLoopBackOff {
		return
	}
	if right := w.began.Add(c.until()); w.clock.Now().Before(right.Add(w.policy.CreationTimeout - time.Second)) {
		w.violate("machine %s failed although %s until %s: %s", is.Name, c.what, right, is.Status.LastOperation.Description)
	}
}

// checkUnrequested checks that a machine for which no VM was requested is released soon after its
// deletion, whatever its class.
func (w *world) checkUnrequested() {
	if w.scenario.wrong == nil {
		return
	}
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		if m.DeletionTimestamp.IsZero() || w.judge.requested[m.Name] || !guarded(m, v1alpha1.MCMFinalizerName) {
			continue
		}
		if due := later(m.DeletionTimestamp.Time, w.calmFrom).Add(2 * time.Minute); w.clock.Now().After(due) {
			w.violate("machine %s was deleted at %s, no VM was requested for it, and it is not released: %s", m.Name, m.DeletionTimestamp, m.Status.LastOperation.Description)
		}
	}
}

// randomWrongClass is a scenario in which a class or Secret is wrong, with random faults.
func randomWrongClass(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 8))
	s := scenario{name: "wrong class", joins: true, wrong: anyWrongClass(rng), cloud: anyCloud(rng)}
	s.cloud.Credential = "right"
	if rng.IntN(2) == 0 {
		s.deployment, s.rollout = true, anyRollout(rng)
	} else {
		s.machines, s.oldLists = 1+rng.IntN(3), rng.IntN(4) == 0
		if rng.IntN(2) == 0 {
			s.deleteAfter = time.Duration(1 + rng.Int64N(int64([]time.Duration{100 * time.Millisecond, time.Minute, s.wrong.until()}[rng.IntN(3)])))
		}
	}
	return play(s, rng, randomFaults(rng), verbose)
}

// TestWrongClass_Schedules checks machines and rollouts whose class or Secret is wrong for hours.
func TestWrongClass_Schedules(t *testing.T) {
	t.Parallel()
	playAll(t, "TestWrongClass_Schedules", 400, randomWrongClass)
}

// TestSharedCause_24Hours_NoMachineTooManyAndAllDeletable lets a cause that all machines share last for
// 24 hours, and a rollout begin in that time. There are never more machines than replicas and surge,
// none is replaced, and a minute after the deletion of the deployment none is left.
func TestSharedCause_24Hours_NoMachineTooManyAndAllDeletable(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	answers := func(code codes.Code, operations ...driver.Operation) plan {
		return func(a simCall) fault {
			if slices.Contains(operations, a.operation) {
				return fault{kind: driverFails, code: code}
			}
			return fault{}
		}
	}
	all := []driver.Operation{driver.OpGetMachineStatus, driver.OpCreateMachine, driver.OpInitializeMachine, driver.OpDeleteMachine}
	cases := map[string]struct {
		wrong   *wrongClass
		patch   string
		at      plan
		created int
	}{
		"class of another kind":           {patch: `{"spec":{"template":{"spec":{"class":{"kind":"AWSMachineClass"}}}}}`},
		"invalid request":                 {at: answers(codes.InvalidArgument, driver.OpCreateMachine), created: 7},
		"no permission to create":         {at: answers(codes.PermissionDenied, driver.OpCreateMachine), created: 7},
		"no image":                        {at: answers(codes.NotFound, driver.OpCreateMachine), created: 7},
		"no credentials for any call":     {at: answers(codes.Unauthenticated, all...), created: 7},
		"no permission to initialize VMs": {at: answers(codes.PermissionDenied, driver.OpInitializeMachine), created: 7},
	}
	for _, what := range []wrongness{classMissing, secretMissing, noUserData, wrongCredential, noZone} {
		c := cases["invalid request"]
		c.at, c.wrong = noFaults, &wrongClass{what: what, lasts: 2 * day}
		cases[string(what)] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario{
				name: name, joins: true, deployment: true, wrong: c.wrong, cloud: drivertest.CloudOptions{Credential: "right"},
				rollout: rolling(3, 1, 0, change{2 * time.Hour, renewed(1)}),
			}
			if c.patch != "" {
				s.rollout.changes = append(s.rollout.changes, change{0, c.patch})
			}
			if c.at == nil {
				c.at = noFaults
			}
			w := newWorld(s, nil, c.at, false)
			created, most := 0, 0
			w.onWrite = func(write draintest.Write) {
				if m, ok := write.After.(*v1alpha1.Machine); ok && write.Before == nil {
					created++
					w.logf("created %s", m.Name)
				}
				most = max(most, len(w.control.now["machines"]))
			}
			w.later(day, w.undeploy)
			left := -1
			w.later(day+time.Minute, func() { left = len(w.control.now["machines"]) })
			w.run()
			require.Empty(t, w.violations)
			require.Zero(t, left, "machines a minute after the deletion")
			require.LessOrEqual(t, most, 4, "machines at once")
			require.LessOrEqual(t, created, c.created, "machines in a day")
			require.Equal(t, c.created > 0, created > 0)
		})
	}
}
