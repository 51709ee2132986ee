// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/machinist-dev/machinist/drain"
)

// The version and kind of a [Document].
const (
	APIVersion = "drain.machinist.dev/v1alpha1"
	Kind       = "DrainPlan"
)

// Document is a plan as a dry run prints it. Fields may be added to a version,
// and are neither renamed nor removed. What is zero is left out.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Node is the name of the Node, Time that of the plan.
	Node string    `json:"node"`
	Time time.Time `json:"time"`
	// Outcome is empty for a drain that is not over.
	Outcome string `json:"outcome,omitempty"`
	// Feasible says that the drain can end. If not, Obstacles are why: the pods in
	// the form namespace/name.
	Feasible  bool     `json:"feasible"`
	Obstacles []string `json:"obstacles,omitempty"`
	// Cordon is what has to be done to the Node first, if anything.
	Cordon *Cordon `json:"cordon,omitempty"`
	// Pods, Volumes and Gates are what something is done about, or not.
	Pods    []Pod    `json:"pods"`
	Volumes []Volume `json:"volumes,omitempty"`
	Gates   []Gate   `json:"gates,omitempty"`
	// NotEvaluated are the sources that nobody could ask.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Ladder is how the drain escalates.
	Ladder []string `json:"ladder,omitempty"`
	// Next is the rung that comes next, and NextAt when.
	Next   string    `json:"next,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`
	// NextCheck is when to look again if nothing changes before.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// Cordon is what keeps new pods off the Node.
type Cordon struct {
	// Unschedulable says that the Node is cordoned, Taint that it is tainted instead.
	Unschedulable bool   `json:"unschedulable,omitempty"`
	Taint         string `json:"taint,omitempty"`
	// Owner is who claims it, or nobody.
	Owner string `json:"owner,omitempty"`
}

// Pod is what happens to one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Action is evict, delete, force-delete, wait, block or ignore.
	Action string `json:"action"`
	// Reason is why, as a stable word; Message is the same for people.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Wave of the pod: higher ones go later.
	Wave int32 `json:"wave,omitempty"`
	// GraceSeconds of the request; without it the pod has its own.
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
	// Budgets are those that refuse.
	Budgets []Budget `json:"budgets,omitempty"`
	// Since when this has been the reason. A dry run remembers nothing.
	Since time.Time `json:"since,omitzero"`
	// Until is when to look again if nothing changes before.
	Until time.Time `json:"until,omitzero"`
	// Next is what the pod escalates to, and NextAt when.
	Next   string    `json:"next,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`
}

// Budget is a disruption budget that refuses.
type Budget struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Allowed is how many disruptions it allows now.
	Allowed int32 `json:"allowed"`
	// Healthy, Desired and Expected are its pods: the healthy ones, those that must
	// be, and all.
	Healthy  int32 `json:"healthy"`
	Desired  int32 `json:"desired"`
	Expected int32 `json:"expected"`
}

// Volume is what happens to one volume.
type Volume struct {
	Attachment string    `json:"attachment,omitempty"`
	Volume     string    `json:"volume,omitempty"`
	Action     string    `json:"action"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Until      time.Time `json:"until,omitzero"`
}

// Gate is what else the drain waits for.
type Gate struct {
	Subject string    `json:"subject"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
}

// NewDocument returns a plan of a policy as a document.
func NewDocument(plan drain.Decision, p drain.Policy, now time.Time) Document {
	d := Document{
		APIVersion: APIVersion, Kind: Kind, Node: plan.Node, Time: now.UTC(), Outcome: string(plan.Outcome),
		Feasible: plan.Feasible(), Pods: []Pod{},
		NotEvaluated: texts(plan.NotEvaluated), Next: string(plan.Next), NextAt: utc(plan.NextAt), NextCheck: utc(plan.NextCheck),
	}
	if f := plan.Cordon; f != nil {
		d.Cordon = &Cordon{Owner: f.Cordon.Owner, Taint: f.Cordon.Taint, Unschedulable: f.Cordon.Taint == ""}
	}
	for _, o := range plan.Obstacles() {
		d.Obstacles = append(d.Obstacles, o.Namespace+"/"+o.Name)
	}
	for _, r := range plan.Rows {
		d.Pods = append(d.Pods, newPod(r))
	}
	for _, v := range plan.Volumes {
		d.Volumes = append(d.Volumes, Volume{
			Attachment: v.Attachment, Volume: v.Volume, Action: string(v.Action), Reason: string(v.Reason), Message: v.Message,
			Since: utc(v.Since), Until: utc(v.Until),
		})
	}
	for _, g := range plan.Gates {
		d.Gates = append(d.Gates, Gate{Subject: g.Subject, Reason: string(g.Reason), Message: g.Message, Since: utc(g.Since), Until: utc(g.Until)})
	}
	for _, r := range p.Ladder {
		d.Ladder = append(d.Ladder, r.String())
	}
	return d
}

func newPod(r drain.Row) Pod {
	p := Pod{
		Namespace: r.Namespace, Name: r.Name, UID: string(r.UID), Action: string(r.Action), Reason: string(r.Reason), Message: r.Message,
		Wave: r.Wave, GraceSeconds: r.Grace, Since: utc(r.Since), Until: utc(r.Until), Next: string(r.Next), NextAt: utc(r.NextAt),
	}
	for _, b := range r.Budgets {
		p.Budgets = append(p.Budgets, Budget{
			Namespace: b.Namespace, Name: b.Name, Allowed: b.Allowed, Healthy: b.Healthy, Desired: b.Desired, Expected: b.Expected,
		})
	}
	return p
}

func texts[T ~string](words []T) []string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}

// utc is a time as it is printed for programs; zero stays zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
