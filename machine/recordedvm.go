// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// RecordedVM returns the last answers of the provider as the status of a machine records them. It is for
// reports, which cannot ask the provider; a controller does not act on it. A VM whose provider ID is
// recorded counts as present, and as the VM that the provider has named.
//
// The status does not record when a call was last repeated. A recorded failure counts as one of now, so
// that a decision has the hold of the failure, with another time of the next attempt. For a machine
// without a record of the provider the view is zero: the next step is to ask the provider.
func RecordedVM(m *v1alpha1.Machine, class ClassView, now time.Time) VMView {
	if m == nil {
		return VMView{}
	}
	var v VMView
	if id, node := m.Spec.ProviderID, m.Labels[v1alpha1.NodeLabelKey]; id != "" {
		v = VMView{
			Presence: present, Initialized: true, ProviderID: id, NodeName: node, Named: NamedVM{AskedAt: now, ProviderID: id, NodeName: node},
			Asked: driver.OpGetMachineStatus, SeenAt: now, LastKnownState: m.Status.LastKnownState,
		}
		missing := &logic{m: m, in: Observation{VM: VMView{Presence: absent}}}
		if strings.Contains(m.Status.LastOperation.Description, facts.WithoutMark(missing.vanishedText())) {
			v.Presence, v.Named = absent, NamedVM{}
		}
	}
	if f := recordedFailure(m.Status.LastOperation, class.Problem); f.Code != codes.OK {
		f.At, f.Attempts, f.ClassVersion = now, 1, class.Version
		v.Failure, v.Asked, v.SeenAt = f, f.Operation, now
	}
	return v
}

// failureForms are the texts of the last operation for a failed call, as MCM writes them: what is before and
// after the message of the provider.
var failureForms = []struct {
	of           v1alpha1.MachineOperationType
	call         driver.Operation
	begins, ends string
}{
	{v1alpha1.MachineOperationCreate, driver.OpCreateMachine, "Cloud provider message - ", ""},
	{v1alpha1.MachineOperationCreate, driver.OpInitializeMachine, "Provider error: ", ". Initialize VM Instance"},
	{v1alpha1.MachineOperationDelete, driver.OpDeleteMachine, "VM deletion failed due to - ", ". However, will re-try in the next resync. " + v1alpha1.InitiateVMDeletion},
}

// failureText returns the text for a failed call. A lookup before a creation has that of the creation.
func failureText(call driver.Operation, message string) string {
	form := failureForms[0]
	for _, f := range failureForms {
		if f.call == call {
			form = f
		}
	}
	return form.begins + message + form.ends
}

// recordedFailure returns the failed call that a last operation describes. problem is that of the class.
func recordedFailure(op v1alpha1.LastOperation, problem string) CallFailure {
	if op.State != v1alpha1.MachineStateFailed {
		return CallFailure{}
	}
	text := facts.WithoutWaits(op.Description)
	code, known := codes.Parse(op.ErrorCode)
	for _, form := range failureForms {
		message, begins := strings.CutPrefix(text, form.begins)
		message, ends := strings.CutSuffix(message, form.ends)
		if op.Type != form.of || !begins || !ends || !known && form.call != driver.OpDeleteMachine { // a deletion may have no code
			continue
		}
		if problem != "" {
			message = strings.TrimSuffix(message, " ("+problem+")")
		}
		return CallFailure{Operation: form.call, Code: code, Message: message}
	}
	return CallFailure{}
}
