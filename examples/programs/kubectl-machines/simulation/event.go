// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// event is a change of the world at a time after the change of the deployment.
type event struct {
	after time.Duration
	text  string // as on the command line, without the time
	// One of them is set: edit changes the deployment, and act something else.
	edit func(*v1alpha1.MachineDeployment) error
	act  func(*simulation) error
}

// eventKinds read the values of events, by their kinds on the command line. Without a value it is empty.
var eventKinds = map[string]func(e *event, value string) error{
	"replicas": func(e *event, value string) error {
		n, err := numberOf(value, maxMachines)
		e.edit = func(d *v1alpha1.MachineDeployment) error { d.Spec.Replicas = int32(n); return nil }
		return err
	},
	"class": func(e *event, value string) error {
		e.edit = func(d *v1alpha1.MachineDeployment) error { d.Spec.Template.Spec.Class.Name = value; return nil }
		return checkName(value)
	},
	"surge": func(e *event, value string) error {
		return e.bound(value, func(b *v1alpha1.UpdateConfiguration, to *intstr.IntOrString) { b.MaxSurge = to })
	},
	"unavailable": func(e *event, value string) error {
		return e.bound(value, func(b *v1alpha1.UpdateConfiguration, to *intstr.IntOrString) { b.MaxUnavailable = to })
	},
	"pause":  func(e *event, value string) error { return e.pause(value, true) },
	"resume": func(e *event, value string) error { return e.pause(value, false) },
	"rollback": func(e *event, value string) (err error) {
		revision := int64(0)
		if value != "" {
			revision, err = numberOf(value, 1<<53)
		}
		e.edit = func(d *v1alpha1.MachineDeployment) error {
			d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: revision}
			return nil
		}
		return err
	},
	"delete": func(e *event, value string) error {
		e.act = func(s *simulation) error {
			m, err := s.machine(value)
			if err != nil {
				return err
			}
			return s.world.DeleteMachine(m.Name)
		}
		return checkName(value)
	},
	"select": func(e *event, value string) error {
		e.act = func(s *simulation) error { return s.selectNodes(value) }
		return checkName(value)
	},
	"quota": func(e *event, value string) (err error) {
		quota := int64(noQuota)
		if value != "none" {
			quota, err = numberOf(value, maxMachines)
		}
		e.act = func(s *simulation) error { s.provider.quota = quota; return nil }
		return err
	},
}

// noQuota is the quota of a provider without one.
const noQuota = -1

// parseEvent parses TIME=KIND or TIME=KIND:VALUE.
func parseEvent(text string) (event, error) {
	at, what, found := strings.Cut(text, "=")
	if !found {
		return event{}, fmt.Errorf("%q is not an event, want TIME=EVENT such as 5m=replicas:8", text)
	}
	after, err := time.ParseDuration(at)
	switch {
	case err != nil:
		return event{}, fmt.Errorf("%q is not a time, want one such as 5m or 1h30m", at)
	case after < 0:
		return event{}, fmt.Errorf("%s is before the rollout", at)
	}
	e := event{after: after, text: what}
	kind, value, given := strings.Cut(what, ":")
	switch read := eventKinds[kind]; {
	case read == nil:
		err = errors.New("unknown event, --help lists them")
	case given && value == "":
		err = errors.New("the value is missing")
	default:
		err = read(&e, value)
	}
	if err != nil {
		return event{}, fmt.Errorf("%s: %w", what, err)
	}
	return e, nil
}

func (e *event) pause(value string, paused bool) error {
	e.edit = func(d *v1alpha1.MachineDeployment) error { d.Spec.Paused = paused; return nil }
	if value != "" {
		return errors.New("takes no value")
	}
	return nil
}

func (e *event) bound(value string, set func(*v1alpha1.UpdateConfiguration, *intstr.IntOrString)) error {
	number, percent := strings.CutSuffix(value, "%")
	n, err := numberOf(number, maxMachines)
	if err != nil {
		return fmt.Errorf("%q is neither a number of machines nor a percentage", value)
	}
	bound := intstr.FromInt32(int32(n))
	if percent {
		bound = intstr.FromString(value)
	}
	e.edit = func(d *v1alpha1.MachineDeployment) error {
		bounds := boundsOf(d)
		if bounds == nil {
			return errors.New("the strategy has no bounds")
		}
		set(bounds, &bound)
		return nil
	}
	return nil
}

func numberOf(value string, most int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", value, most)
	}
	return n, nil
}

func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a name", name)
	}
	return nil
}

// applyEvent carries out an event.
func (s *simulation) applyEvent(e event) error {
	if e.act != nil {
		return e.act(s)
	}
	var err error
	return errors.Join(s.world.Edit(func(d *v1alpha1.MachineDeployment) { err = e.edit(d) }), err)
}

// machine returns the machine with a name, or the oldest or the newest one.
func (s *simulation) machine(name string) (*v1alpha1.Machine, error) {
	machines := slices.DeleteFunc(s.world.Machines(), func(m *v1alpha1.Machine) bool {
		return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating
	})
	switch m := s.world.Machine(name); {
	case m != nil:
		return m, nil
	case len(machines) > 0 && name == "oldest":
		return machines[0], nil
	case len(machines) > 0 && name == "newest":
		return machines[len(machines)-1], nil
	}
	return nil, errors.New("machine not found")
}

// selectNodes labels the Node of a machine, or those of all candidates, as selected for an update
// in place.
func (s *simulation) selectNodes(name string) error {
	nodes := slices.DeleteFunc(s.world.Nodes(), func(n *corev1.Node) bool {
		return n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] == ""
	})
	if name != "all" {
		m, err := s.machine(name)
		if err != nil {
			return err
		}
		n := s.world.Node(m)
		if n == nil {
			return fmt.Errorf("machine %s has no Node", m.Name)
		}
		nodes = []*corev1.Node{n}
	}
	for _, n := range nodes {
		err := s.world.EditNode(n.Name, func(n *corev1.Node) {
			metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.LabelKeyNodeSelectedForUpdate, "true")
		})
		if err != nil {
			return err
		}
	}
	return nil
}
