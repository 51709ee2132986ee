// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// request is what any request of a driver looks like on the way: it has the
// fields of them all, under the same names.
type request struct {
	Machine      *v1alpha1.Machine              `json:",omitzero"`
	MachineClass *v1alpha1.MachineClass         `json:",omitzero"`
	Secret       *corev1.Secret                 `json:",omitzero"`
	PVSpecs      []*corev1.PersistentVolumeSpec `json:",omitzero"`
	Resource     driver.SideResource            `json:",omitzero"`

	// ProviderSpecBytes is the provider specification of the class, byte by
	// byte, if it is not nil; it wins over the one in the class. What stands in
	// there need not be JSON, and would lose its white space.
	ProviderSpecBytes []byte `json:",omitzero"`
}

// encode returns the body of a request. A nil request is null.
func (q *request) encode() ([]byte, error) {
	if q == nil {
		return []byte("null"), nil
	}
	out := *q
	if q.MachineClass != nil && q.MachineClass.ProviderSpec.Raw != nil {
		class := *q.MachineClass
		out.MachineClass, out.ProviderSpecBytes = &class, class.ProviderSpec.Raw
		class.ProviderSpec.Raw = nil
	}
	body, err := encode(&out)
	if err != nil { // its text may quote the request
		return nil, status.Error(codes.InvalidArgument, "the request has no form in JSON")
	}
	return body, nil
}

// decodeRequest reads the body of a request. The error tells nothing of what is
// in it.
func decodeRequest(body []byte) (*request, error) {
	var q *request
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, status.Error(codes.InvalidArgument, "the body is not a request in JSON"+whereabouts(err))
	}
	if q != nil && q.MachineClass != nil && q.ProviderSpecBytes != nil {
		q.MachineClass.ProviderSpec.Raw = q.ProviderSpecBytes
	}
	return q, nil
}

// whereabouts says at which byte decoding failed, if err knows.
func whereabouts(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(": a mistake near byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf(": something else is wanted near byte %d", e.Offset)
	}
	return ""
}

// errNotUTF8 is what encode returns for texts that JSON would change.
var errNotUTF8 = errors.New("there is text that is not UTF-8")

// encode returns v in JSON, as it is: no characters are escaped for the sake of
// HTML, and none are replaced.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	// The encoder puts this in the place of what is not UTF-8, and writes a
	// replacement character that was there before without an escape.
	if bytes.Contains(b.Bytes(), []byte(`\ufffd`)) && replaced(b.Bytes()) {
		return nil, errNotUTF8
	}
	return b.Bytes(), nil
}

// replaced reports whether JSON, as encode writes it, has a replacement
// character in the place of something else.
func replaced(body []byte) bool {
	for i := 0; i+5 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		if string(body[i:i+6]) == `\ufffd` {
			return true
		}
		i++ // what is escaped
	}
	return false
}

// ofMachine is any request that is about a machine: they all look the same, and
// the compiler tells when one of them no longer does.
type ofMachine struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

// ofClass is any request that is about a class.
type ofClass struct {
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

// ofVolumes is a request that is about volumes.
type ofVolumes struct {
	PVSpecs []*corev1.PersistentVolumeSpec
}

// ofResource is a request that is about a side resource.
type ofResource struct {
	Resource     driver.SideResource
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

func (q *ofResource) request() *request {
	if q == nil {
		return nil
	}
	return &request{Resource: q.Resource, MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *request) ofResource() *ofResource {
	if q == nil {
		return nil
	}
	return &ofResource{Resource: q.Resource, MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *ofMachine) request() *request {
	if q == nil {
		return nil
	}
	return &request{Machine: q.Machine, MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *ofClass) request() *request {
	if q == nil {
		return nil
	}
	return &request{MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *ofVolumes) request() *request {
	if q == nil {
		return nil
	}
	return &request{PVSpecs: q.PVSpecs}
}

func (q *request) ofMachine() *ofMachine {
	if q == nil {
		return nil
	}
	return &ofMachine{Machine: q.Machine, MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *request) ofClass() *ofClass {
	if q == nil {
		return nil
	}
	return &ofClass{MachineClass: q.MachineClass, Secret: q.Secret}
}

func (q *request) ofVolumes() *ofVolumes {
	if q == nil {
		return nil
	}
	return &ofVolumes{PVSpecs: q.PVSpecs}
}
