// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	sdkmachine "github.com/machinist-dev/machinist/machine"
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
	self := *metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))
	other, weak, no := self, self, false
	other.UID, weak.Controller = "other", &no
	refs, known := map[string][]metav1.OwnerReference{"none": nil, "self": {self}, "other": {other}, "nonController": {weak}}[in.OwnerRef]
	if !known {
		return nil, fmt.Errorf("owner %q", in.OwnerRef)
	}
	m.OwnerReferences = refs
	claims := machineset.Claim(set, []*v1alpha1.Machine{m})
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

type slowStartIn struct{ Count, FailFromCall, InitialBatchSize int }

type slowStartOut struct {
	Calls, Successes int
	Failed           bool
}

func slowStart(in slowStartIn, out slowStartOut) ([]string, error) {
	calls, successes := carryOut(in.batches(), in.FailFromCall)
	return nil, same("calls", out, slowStartOut{calls, successes, successes < calls})
}

// batches are those of the SDK, which begin with one call, for units of as many calls as
// the first batch of the vector has. A first batch without calls has none after it.
func (in slowStartIn) batches() []int {
	first, left := in.InitialBatchSize, in.Count
	if first <= 0 {
		return nil
	}
	batches := members.Batches((left + first - 1) / first)
	for i, units := range batches {
		batches[i] = min(units*first, left)
		left -= batches[i]
	}
	return batches
}

// carryOut is what a shell does with batches: a batch is finished, and none is
// begun after a failure. Calls count from 1; failFrom 0 is never.
func carryOut(batches []int, failFrom int) (calls, successes int) {
	for _, batch := range batches {
		for range batch {
			calls++
			if failFrom == 0 || calls < failFrom {
				successes++
			}
		}
		if successes < calls {
			break
		}
	}
	return calls, successes
}

type markedForDeletionIn struct {
	LastReplicaChangeByScalerTime string
	Machines                      []machine
}

type markedForDeletionOut struct{ Marked []string }

func markedForDeletion(in markedForDeletionIn, out markedForDeletionOut) ([]string, error) {
	set := (&machineSet{Name: "ms", Replicas: 1}).object()
	if at := in.LastReplicaChangeByScalerTime; at != "" {
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at}
	}
	var got markedForDeletionOut
	for _, m := range machinesOf(in.Machines) {
		if members.NamedByAutoscaler(set, m) {
			got.Marked = append(got.Marked, m.Name)
		}
	}
	return nil, same("marked", out, got)
}

type autoPreservationIn struct {
	AutoPreserveFailedMachineMax, StatusAutoPreserveCount int
	Machines                                              []machine
}

type autoPreservationOut struct{ PreserveAnnotations map[string]string }

func autoPreservation(in autoPreservationIn, out autoPreservationOut) ([]string, error) {
	machines := machinesOf(in.Machines)
	got, set := autoPreservationOut{map[string]string{}}, (&machineSet{Name: "ms"}).object()
	set.Spec.Replicas = int32(len(machines)) //nolint:gosec // small
	// The SDK counts what is preserved, and does not read the status.
	counted := members.Count(nil, machines, nil, now).AutoPreserved
	set.Spec.AutoPreserveFailedMachineMax = int32(in.AutoPreserveFailedMachineMax - in.StatusAutoPreserveCount + counted) //nolint:gosec // small
	d := machineset.Decide(machineset.Observation{Set: set, Machines: machines, Complete: true, Proven: true}, machineset.Policy{}, now)
	for _, m := range machines {
		if value, found := decided.After(m, d.Actions).Annotations[v1alpha1.PreserveMachineAnnotationKey]; found {
			got.PreserveAnnotations[m.Name] = value
		}
	}
	return nil, same("annotations", out, got)
}

type failedMachineTerminationIn struct {
	LastAppliedNodeValue, MachineAnnotation, Node string
	PreserveExpiryInSeconds                       *int
}

type failedMachineTerminationOut struct{ Terminate bool }

func failedMachineTermination(in failedMachineTerminationIn, out failedMachineTerminationOut) ([]string, error) {
	m := machine{
		Name: "m", Phase: v1alpha1.MachineFailed, PreserveExpiryInSeconds: in.PreserveExpiryInSeconds,
		Annotations: map[string]string{
			v1alpha1.PreserveMachineAnnotationKey:              in.MachineAnnotation,
			v1alpha1.LastAppliedNodePreserveValueAnnotationKey: in.LastAppliedNodeValue,
		},
	}.object()
	var view sdkmachine.NodeView
	switch in.Node {
	case "<nonode>":
	case "<missing>":
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		view.Looked = true
	default:
		m.Labels[v1alpha1.NodeLabelKey] = "n"
		node := &corev1.Node{}
		if in.Node != "" {
			node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: in.Node}
		}
		view.Looked, view.Node = true, node
	}
	got, reason := machineset.ReplaceFailed(m, view, time.Time{}, now)
	if reason == "" {
		return nil, errors.New("no reason")
	}
	model := func(m mended) failedMachineTerminationOut { return failedMachineTerminationOut{terminateModel(in, m)} }
	return explain([]string{"DS-28", "DM-15"}, model, out, failedMachineTerminationOut{got})
}

// terminateModel decides by the preservation time, then by the Node, then by the
// value in force. Mended (DS-28), a machine whose Node is gone has its own value; and
// (DM-15) a value of the Node that means nothing is none.
func terminateModel(in failedMachineTerminationIn, m mended) bool {
	asks := func(value string) bool {
		return slices.Contains([]string{"now", "when-failed", "auto-preserved"}, value)
	}
	if s := in.PreserveExpiryInSeconds; s != nil {
		return time.Duration(*s) <= 0
	}
	node := in.Node
	switch node {
	case "<missing>":
		return !m["DS-28"] || !asks(in.MachineAnnotation)
	case "<nonode>":
		node = ""
	}
	if m["DM-15"] && !asks(node) && node != "false" {
		node = ""
	}
	if node != "" || in.LastAppliedNodeValue != "" {
		return !asks(node)
	}
	return !asks(in.MachineAnnotation)
}

type manageReplicasIn struct {
	FailCreateFrom int
	MachineSet     machineSet
	Machines       []machine
}

type manageReplicasOut struct {
	CreateAttempts, Created    int
	Deleted, MarkedTerminating []string
	Error                      *string
}

func manageReplicas(in manageReplicasIn, out manageReplicasOut) ([]string, error) {
	set, machines := in.MachineSet.object(), machinesOf(in.Machines)
	nodes := map[string]sdkmachine.NodeView{}
	for _, m := range in.Machines {
		nodes[m.Node] = sdkmachine.NodeView{Looked: true, Node: &corev1.Node{}}
	}
	d := machineset.Decide(machineset.Observation{Set: set, Machines: machines, Complete: true, Proven: true, Nodes: nodes}, machineset.Policy{}, now)
	create := 0
	for _, a := range d.Actions {
		if c, ok := a.(machinist.Create); ok {
			create += c.Count
		}
	}
	out.Error = nil // the first of the errors, which the shell has
	return explain([]string{"DS-23", "DS-26", "DS-27", named}, func(m mended) manageReplicasOut { return manageModel(in, m) }, out, in.result(create, decided.Deletes(d.Actions)))
}

// result is what comes of so many creations, and of these deletions: those of
// machines that are on their way out already are no calls.
func (in manageReplicasIn) result(create int, deleted []string) manageReplicasOut {
	calls, successes := carryOut(members.Batches(create), in.FailCreateFrom)
	deleted = slices.DeleteFunc(deleted, func(name string) bool {
		return slices.ContainsFunc(in.Machines, func(m machine) bool { return m.Name == name && m.Deleting })
	})
	slices.Sort(deleted)
	return manageReplicasOut{calls, successes, deleted, deleted, nil}
}

func manageModel(in manageReplicasIn, m mended) manageReplicasOut {
	return in.result(setModel{m}.manage(in.MachineSet.object(), machinesOf(in.Machines)))
}

// named is the fault of MCM that has no number: a machine which is
// preserved and named goes beside those that are too many, and not as one of them,
// so that a scale-down by one lets two go.
const named = "named beside (I-5)"

// setModel is a naive model of MCM's replica management.
//
//	DS-23  a deletion timestamp is as good as the phase Terminating
//	DS-26  the empty phase and those of an in-place update have weights
//	DS-27  a set that may not create still deletes
//	named  machines that an autoscaler names are part of what is too much
type setModel struct{ mended mended }

func (r setModel) leaving(m *v1alpha1.Machine) bool {
	return m.Status.CurrentStatus.Phase == "Terminating" || r.mended["DS-23"] && m.DeletionTimestamp != nil
}

func (r setModel) weight(m *v1alpha1.Machine) int {
	weights := map[v1alpha1.MachinePhase]int{
		"Terminating": 0, "Failed": 10, "CrashLoopBackOff": 20, "Unknown": 30,
		"Pending": 40, "Available": 50, "Running": 60,
	}
	if r.mended["DS-26"] {
		weights[""], weights["InPlaceUpdating"] = 35, 45
		weights["InPlaceUpdateFailed"], weights["InPlaceUpdateSuccessful"] = 15, 60
	}
	if r.leaving(m) {
		return 0
	}
	return weights[m.Status.CurrentStatus.Phase]
}

// compare is the order in which machines go.
func (r setModel) compare(a, b *v1alpha1.Machine) int {
	pa, pb := a.Status.CurrentStatus.PreserveExpiryTime, b.Status.CurrentStatus.PreserveExpiryTime
	ka, kb := pa != nil && pa.After(now), pb != nil && pb.After(now)
	if ka != kb {
		return compareBool(ka, kb)
	}
	if ka {
		autoA := a.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		autoB := b.Annotations["node.machine.sapcloud.io/preserve"] == "auto-preserved"
		if n := cmp.Or(compareBool(autoB, autoA), pa.Time.Compare(pb.Time)); n != 0 {
			return n
		}
	}
	if n := cmp.Compare(priorityModel(a), priorityModel(b)); n != 0 {
		return n
	}
	ma, errA := time.Parse(time.RFC3339, a.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	mb, errB := time.Parse(time.RFC3339, b.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	if (errA == nil) != (errB == nil) {
		return compareBool(errA != nil, errB != nil)
	}
	if errA == nil && !ma.Equal(mb) {
		return ma.Compare(mb)
	}
	return cmp.Or(cmp.Compare(r.weight(a), r.weight(b)), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time))
}

// compareBool lets false go first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func priorityModel(m *v1alpha1.Machine) int {
	p, err := strconv.Atoi(m.Annotations["machinepriority.machine.sapcloud.io"])
	if err != nil {
		return 3
	}
	return p
}

// manage returns how many machines are created, and which are asked to be
// deleted.
func (r setModel) manage(set *v1alpha1.MachineSet, machines []*v1alpha1.Machine) (int, []string) {
	var staying, eligible []*v1alpha1.Machine
	for _, m := range machines {
		if r.leaving(m) {
			continue
		}
		staying = append(staying, m)
		if m.Labels["node.machine.sapcloud.io/update-result"] != "successful" {
			eligible = append(eligible, m)
		}
	}
	wanted := int(set.Spec.Replicas)
	_, disabled := set.Labels["node.machine.sapcloud.io/scale-up-disabled"]
	if len(staying) < wanted {
		switch mayCreate := set.Labels["freeze"] != "True" && !disabled; {
		case mayCreate:
			return min(wanted-len(staying), 100), nil
		case !r.mended["DS-27"]:
			return 0, nil
		}
	}
	slices.SortStableFunc(eligible, r.compare)
	if r.mended[named] {
		slices.SortStableFunc(eligible, func(a, b *v1alpha1.Machine) int { return compareBool(!markedModel(set, a), !markedModel(set, b)) })
	}
	chosen := slices.Clone(eligible[:max(0, min(len(eligible)-wanted, 100))])
	for _, m := range eligible {
		if markedModel(set, m) || replacedModel(m) {
			chosen = append(chosen, m)
		}
	}
	var names []string
	for _, m := range chosen {
		if !slices.Contains(names, m.Name) && len(names) < 100 {
			names = append(names, m.Name)
		}
	}
	return 0, names
}

func markedModel(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	scaled, err := time.Parse(time.RFC3339, set.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"])
	marked, errM := time.Parse(time.RFC3339, m.Annotations["machine.sapcloud.io/marked-for-deletion-time"])
	return err == nil && errM == nil && !marked.After(scaled) && m.Annotations["machinepriority.machine.sapcloud.io"] == "1"
}

// replacedModel is for machines whose Node exists without annotations, or that
// have none.
func replacedModel(m *v1alpha1.Machine) bool {
	in := failedMachineTerminationIn{
		MachineAnnotation:    m.Annotations["node.machine.sapcloud.io/preserve"],
		LastAppliedNodeValue: m.Annotations["node.machine.sapcloud.io/last-applied-node-preserve-value"],
		Node:                 "<nonode>",
	}
	if e := m.Status.CurrentStatus.PreserveExpiryTime; e != nil {
		in.PreserveExpiryInSeconds = ptr.To(int(e.Sub(now).Seconds()))
	}
	return m.Status.CurrentStatus.Phase == "Failed" && terminateModel(in, nil)
}

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
