// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Executor reconciles deployments. It remembers what it has written until the Reader shows it, so use one
// Executor for all deployments of a process. Different deployments may be reconciled at the same time, and
// the fields must not be changed. The memory of a deployment that no longer exists is dropped by the next
// Reconcile.
type Executor struct {
	// Reader reads the observations. Required.
	Reader machinist.Reader
	// Requests are sent to the API servers of the machine objects and of the Nodes. Required.
	Requests machinist.Requests
	// Policy is that of the decisions. The zero Policy has the defaults.
	Policy deployment.Policy
	// Freeze returns whether the API servers answer. Nil means that they do.
	Freeze func() machine.Freeze
	// Shard is the value of the label machinist.dev/shard of the deployments that are reconciled. Others
	// are skipped. Sets that a deployment creates have the shard of the deployment.
	Shard string
	// Parallel is the number of concurrent requests for one deployment. Zero means 16.
	Parallel int
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.PassiveClock
	// Decided receives each decision before its actions. The deployment is nil if it does not exist. Nil
	// means none.
	Decided func(key types.NamespacedName, d *v1alpha1.MachineDeployment, decision deployment.Decision)
	// Report receives the Events to report about a deployment. Nil means none.
	Report func(o runtime.Object, e machinist.Event)

	own    runners.Own[*v1alpha1.MachineDeployment]
	memory runners.Memory[memory]
}

// memory is what is kept of a deployment between two passes. Without it, work is repeated.
type memory struct {
	expected machine.Expectations
	recorded rollout.Recorded
	proven   bool
}

// errIncomplete is the error of an Executor without a required field.
var errIncomplete = errors.New("deployment/runner: the Executor has no Reader or no Requests")

// pass is one pass over a deployment.
type pass struct {
	*Executor
	in       deployment.Observation
	d        deployment.Decision
	selector *metav1.LabelSelector // of the last claims
}

// Reconcile makes one pass over a deployment: it observes, decides, and carries the decision out. It
// returns when to make the next pass, if no change makes it necessary before. Zero means never. After an
// error, repeat the pass with back-off.
//
// It decides on the newest known version of the deployment. If anything but its status and Nodes is to be
// written, it reads the deployment from the API server, and decides again if that is another version. The
// API server refuses the status of an old version, and the next pass corrects a mark of a Node.
func (e *Executor) Reconcile(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	if e.Reader == nil || e.Requests == nil {
		return time.Time{}, errIncomplete
	}
	p := &pass{Executor: e}
	front := runners.Front[*v1alpha1.MachineDeployment, *v1alpha1.MachineSet, v1alpha1.MachineDeployment]{
		Reader: e.Reader, Requests: e.Requests, Shard: e.Shard, Own: &e.own, Gone: func() { e.forget(key) }, Decide: p.decide,
	}
	if ok, err := front.Begin(ctx, key); err != nil || !ok {
		return time.Time{}, err
	}
	return p.advance(ctx)
}

// forget drops the memory of a deployment that does not exist.
func (e *Executor) forget(key types.NamespacedName) {
	e.memory.Forget(key)
	e.decided(key, nil, deployment.Decision{})
}

func (e *Executor) now() time.Time { return runners.Now(e.Clock) }

func (e *Executor) decided(key types.NamespacedName, d *v1alpha1.MachineDeployment, decision deployment.Decision) {
	if e.Decided != nil {
		e.Decided(key, d, decision)
	}
}

// decide observes a deployment and decides. See [runners.Front].
func (p *pass) decide(ctx context.Context, d *v1alpha1.MachineDeployment) (claims machineset.Claims[*v1alpha1.MachineSet], acts bool, err error) {
	// Expectations are read before the lists, so that the lists are at least as new.
	kept := p.memory.Change(d, func(m *memory) { m.expected = runners.Shown(ctx, p.Reader, d.Namespace, m.expected) })
	if p.in, claims, err = observe(ctx, p.Reader, d); err != nil {
		return claims, false, err
	}
	p.selector = claims.Selector
	p.in.Expectations, p.in.Proven = kept.expected, kept.proven
	p.again()
	return claims, !onlyNodes(p.d.Actions), nil
}

// again decides once more on the observation.
func (p *pass) again() {
	if p.Freeze != nil {
		p.in.Freeze = p.Freeze()
	}
	p.d = deployment.Decide(p.in, p.Policy, p.now())
}

// onlyNodes reports whether all actions write Nodes.
func onlyNodes(actions []machinist.Action) bool {
	return !slices.ContainsFunc(actions, func(a machinist.Action) bool { return !writesNode(a) })
}

// writesNode reports whether an action writes a Node.
func writesNode(a machinist.Action) bool {
	u, _ := a.(machinist.Update)
	_, node := u.Object.(*corev1.Node)
	return node
}
