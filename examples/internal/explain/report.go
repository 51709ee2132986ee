// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/reasons"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Report is what a view says about some objects: [Report.String] for people, its JSON for programs. A version
// may get new fields; none is renamed or removed.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	// At is the time of the decisions.
	At time.Time `json:"at"`
	// Notes say what is not in the dump, or may not be read.
	Notes []string `json:"notes,omitempty"`
	// Objects are the object that was asked for, or the roots of the tree.
	Objects []Object `json:"objects"`

	tree, dump bool
	namespace  string // of all objects, or ""
}

// Object is an object, what is decided about it, and what it waits for.
type Object struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	// Class is the class of a machine, or of the template of a set or a deployment.
	Class   string    `json:"class,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Phase is that of a machine or a pod, and the status of a Node in the words of kubectl. A machine has it
	// since Since.
	Phase string    `json:"phase,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Replicas are the machines of a set or a deployment.
	Replicas *Replicas `json:"replicas,omitempty"`
	// Status is what the status of the object says, for people.
	Status string `json:"status,omitempty"`
	// Decides is the decision of the controller in one line, without what it waits for. Acts means that the
	// controller does something now.
	Decides string `json:"decides,omitempty"`
	Acts    bool   `json:"acts,omitempty"`
	// WaitsFor are the holds of the decision.
	WaitsFor []Wait `json:"waitsFor,omitempty"`
	// NextCheck is when the object is decided again, at the latest.
	NextCheck time.Time `json:"nextCheck,omitzero"`
	// Details are more lines, and Notes say what only the controller knows.
	Details []string `json:"details,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Drain is the drain of the Node of an object that is explained. A tree has its pods.
	Drain *drain.Decision `json:"drain,omitempty"`
	// Pods is the number of pods on a Node that are not among its children.
	Pods int `json:"pods,omitempty"`
	// Error is why nothing is decided.
	Error string `json:"error,omitempty"`
	// Children are the sets of a deployment, the machines of a set, the Node of a machine, and the pods that
	// the drain of a Node waits for. Only a tree has them.
	Children []Object `json:"children,omitempty"`

	node *corev1.Node // of a machine
}

// Replicas are numbers of machines.
type Replicas struct {
	Desired   int32 `json:"desired"`
	Available int32 `json:"available"`
	// Updated are those of the newest template of a deployment.
	Updated *int32 `json:"updated,omitempty"`
}

// Wait is a hold. Its Since is set if it is known, and its Until is when the provider is called again, if it
// waits for that.
type Wait struct {
	machinist.Hold
	// Helps is what ends the wait, as a sentence.
	Helps string `json:"helps,omitempty"`
}

// DeepCopyObject implements [runtime.Object]. The parts of a report do not change.
func (r Report) DeepCopyObject() runtime.Object { return &r }

// report returns the report about some objects.
func (v *View) report(objects ...Object) Report {
	r := Report{At: v.Now(), Notes: v.notes, Objects: append([]Object{}, objects...), namespace: v.Namespace, dump: v.dump}
	r.APIVersion, r.Kind = "explain.machinist.dev/v1alpha1", "Report"
	return r
}

// String returns the report for people.
func (r Report) String() string {
	head, notes := "", strings.Join(append(slices.Clone(r.Notes), ""), "\n")
	if r.dump {
		head = "at " + stamp(r.At) + ", from a dump"
	}
	if r.tree {
		return strings.TrimPrefix(head+"\n", "\n") + notes + r.table()
	}
	var b strings.Builder
	for _, o := range r.Objects {
		b.WriteString(strings.TrimSuffix(o.id()+", "+head, ", ") + "\n" + notes + o.text(r.At))
	}
	return b.String()
}

// Names returns a list of all objects, parents first, with nothing but their names.
func (r Report) Names() runtime.Object {
	list := &metav1.PartialObjectMetadataList{}
	var add func(all []Object)
	add = func(all []Object) {
		for _, o := range all {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}})
			add(o.Children)
		}
	}
	add(r.Objects)
	return list
}

// Key returns a text that two reports have in common if they differ in nothing but ages and next checks.
func (r Report) Key() string {
	r.At, r.Objects = time.Time{}, slices.Clone(r.Objects)
	for i := range r.Objects {
		r.Objects[i].NextCheck = time.Time{}
	}
	return r.String()
}

// id returns KIND/NAMESPACE/NAME.
func (d Object) id() string {
	return strings.ToLower(d.Kind) + "/" + strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")
}

// identified returns an object with the name and the age of o.
func (d Object) identified(o metav1.Object) Object {
	of := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	d.APIVersion, d.Kind = "v1", of[strings.LastIndex(of, ".")+1:]
	if strings.HasPrefix(of, "v1alpha1.") {
		d.APIVersion = v1alpha1.SchemeGroupVersion.String()
	}
	d.Namespace, d.Name, d.Created = o.GetNamespace(), o.GetName(), o.GetCreationTimestamp().Time
	packages := []string{"machine", "drain", "safety"}
	if d.Replicas != nil {
		packages = []string{strings.TrimPrefix(strings.ToLower(d.Kind), "machine")}
	}
	for i := range d.WaitsFor {
		d.WaitsFor[i].Helps = reasons.Helps(d.WaitsFor[i].Reason, packages...)
	}
	return d
}
