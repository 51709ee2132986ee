// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// subject returns the text of a request: names only, for fmt, slog and logr. Requests have
// credentials, which must not appear in logs.
func subject(op Operation, m *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret) string {
	var b strings.Builder
	b.WriteString(string(op) + "(")
	if m == nil {
		b.WriteString("no machine")
	} else {
		fmt.Fprintf(&b, "machine %q", key(m.Namespace, m.Name))
		if m.Spec.ProviderID != "" {
			fmt.Fprintf(&b, " %q", m.Spec.ProviderID)
		}
	}
	b.WriteString(", " + classAndSecret(class, secret) + ")")
	return b.String()
}

// classAndSecret returns the name of a class, and the name and number of keys of a Secret.
func classAndSecret(class *v1alpha1.MachineClass, secret *corev1.Secret) string {
	text := "no class"
	if class != nil {
		text = fmt.Sprintf("class %q", key(class.Namespace, class.Name))
	}
	if secret == nil {
		return text + ", no secret"
	}
	return fmt.Sprintf("%s, secret %q with %d keys", text, key(secret.Namespace, secret.Name), len(secret.Data)+len(secret.StringData))
}

// key returns "namespace/name", or the name without a namespace.
func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// String returns the names of machine, class and Secret, without their content.
func (r CreateMachineRequest) String() string {
	return subject(OpCreateMachine, r.Machine, r.MachineClass, r.Secret)
}

// Format prints [CreateMachineRequest.String] for every verb.
func (r CreateMachineRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [CreateMachineRequest.String] for slog.
func (r CreateMachineRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [CreateMachineRequest.String] for logr.
func (r CreateMachineRequest) MarshalLog() any { return r.String() }

// String returns the names of machine, class and Secret, without their content.
func (r InitializeMachineRequest) String() string {
	return subject(OpInitializeMachine, r.Machine, r.MachineClass, r.Secret)
}

// Format prints [InitializeMachineRequest.String] for every verb.
func (r InitializeMachineRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [InitializeMachineRequest.String] for slog.
func (r InitializeMachineRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [InitializeMachineRequest.String] for logr.
func (r InitializeMachineRequest) MarshalLog() any { return r.String() }

// String returns the names of machine, class and Secret, without their content.
func (r DeleteMachineRequest) String() string {
	return subject(OpDeleteMachine, r.Machine, r.MachineClass, r.Secret)
}

// Format prints [DeleteMachineRequest.String] for every verb.
func (r DeleteMachineRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [DeleteMachineRequest.String] for slog.
func (r DeleteMachineRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [DeleteMachineRequest.String] for logr.
func (r DeleteMachineRequest) MarshalLog() any { return r.String() }

// String returns the names of machine, class and Secret, without their content.
func (r GetMachineStatusRequest) String() string {
	return subject(OpGetMachineStatus, r.Machine, r.MachineClass, r.Secret)
}

// Format prints [GetMachineStatusRequest.String] for every verb.
func (r GetMachineStatusRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [GetMachineStatusRequest.String] for slog.
func (r GetMachineStatusRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [GetMachineStatusRequest.String] for logr.
func (r GetMachineStatusRequest) MarshalLog() any { return r.String() }

// String returns the names of class and Secret, without their content.
func (r ListMachinesRequest) String() string {
	return string(OpListMachines) + "(" + classAndSecret(r.MachineClass, r.Secret) + ")"
}

// Format prints [ListMachinesRequest.String] for every verb.
func (r ListMachinesRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [ListMachinesRequest.String] for slog.
func (r ListMachinesRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [ListMachinesRequest.String] for logr.
func (r ListMachinesRequest) MarshalLog() any { return r.String() }

// String returns the number of volumes.
func (r GetVolumeIDsRequest) String() string {
	return fmt.Sprintf("%s(%d volumes)", OpGetVolumeIDs, len(r.PVSpecs))
}

// Format prints [GetVolumeIDsRequest.String] for every verb.
func (r GetVolumeIDsRequest) Format(f fmt.State, _ rune) { write(f, r.String()) }

// LogValue returns [GetVolumeIDsRequest.String] for slog.
func (r GetVolumeIDsRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalLog returns [GetVolumeIDsRequest.String] for logr.
func (r GetVolumeIDsRequest) MarshalLog() any { return r.String() }

// write writes text.
func write(w io.Writer, text string) { _, _ = io.WriteString(w, text) }
