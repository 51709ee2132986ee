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

// request is the JSON form of every request, with the fields of all of them.
type request struct {
	Machine      *v1alpha1.Machine              `json:",omitzero"`
	MachineClass *v1alpha1.MachineClass         `json:",omitzero"`
	Secret       *corev1.Secret                 `json:",omitzero"`
	PVSpecs      []*corev1.PersistentVolumeSpec `json:",omitzero"`
	Resource     driver.SideResource            `json:",omitzero"`

	// ProviderSpecBytes are the bytes of the provider specification. If not nil, they replace
	// that in the class, which may be invalid JSON and loses its white space.
	ProviderSpecBytes []byte `json:",omitzero"`
}

// encode returns the body of a request. Nil becomes null.
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

// decodeRequest decodes the body of a request. The error has no content of the body.
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

// whereabouts returns the byte at which decoding failed, if err has it.
func whereabouts(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf(": a mistake near byte %d", syntax.Offset)
	}
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return fmt.Sprintf(": something else is wanted near byte %d", other.Offset)
	}
	return ""
}

// errNotUTF8 is the error of encode for texts that JSON would change.
var errNotUTF8 = errors.New("there is text that is not UTF-8")

// encode returns v in JSON without HTML escapes and without replaced characters.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	// The encoder writes this escape for bytes that are not UTF-8. It does not escape a
	// replacement character in the text.
	if bytes.Contains(b.Bytes(), []byte(`\ufffd`)) && replaced(b.Bytes()) {
		return nil, errNotUTF8
	}
	return b.Bytes(), nil
}

// replaced reports whether the encoder replaced bytes that are not UTF-8.
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

// ofMachine is a request with a machine. The compiler checks that all of them have the same
// fields.
type ofMachine struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

// ofClass is a request with a class.
type ofClass struct {
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

// ofVolumes is a request with volumes.
type ofVolumes struct {
	PVSpecs []*corev1.PersistentVolumeSpec
}

// ofResource is a request with a side resource.
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
