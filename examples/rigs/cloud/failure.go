// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// failure is the JSON form of an error and its response.
type failure[R any] struct {
	// Code and RetryAfter are those of the whole error.
	Code       codes.Code    `json:"code"`
	RetryAfter time.Duration `json:"retryAfterNanoseconds,omitempty"`
	Error      node          `json:"error"`
	Response   *R            `json:"response,omitempty"`
}

// node is one error of the tree that errors.As walks.
type node struct {
	// Text of the error.
	Text text `json:"text"`
	// Code of a codes.Coder.
	Code *codes.Code `json:"code,omitempty"`
	// Message of a *status.Status.
	Message *text `json:"message,omitempty"`
	// RetryAfter of a codes.RetryAfterer.
	RetryAfter *time.Duration `json:"retryAfterNanoseconds,omitempty"`
	// Canceled and DeadlineExceeded report that the error is that context error.
	Canceled         bool `json:"canceled,omitempty"`
	DeadlineExceeded bool `json:"deadlineExceeded,omitempty"`
	// Wraps are the wrapped errors.
	Wraps []node `json:"wraps,omitempty"`
}

// maxNodes limits the tree of an error. Code and RetryAfter are those of the whole error.
const maxNodes = 256

// newFailure returns the form of an error that is not nil.
func newFailure[R any](err error, response *R) failure[R] {
	left := maxNodes
	return failure[R]{Code: codes.Of(err), RetryAfter: codes.RetryAfterOf(err), Error: describe(err, &left), Response: response}
}

// err returns the error of the form. It is not nil.
func (f failure[R]) err() error {
	err := f.Error.err()
	if f.Code != codes.OK && codes.Of(err) != f.Code {
		err = &remote{text: err.Error(), wraps: []error{&coded{err.Error(), f.Code}, err}}
	}
	if f.RetryAfter > 0 && codes.RetryAfterOf(err) != f.RetryAfter {
		err = codes.WithRetryAfter(err, f.RetryAfter)
	}
	return err
}

// describe returns the tree of an error within the remaining nodes.
func describe(err error, left *int) node {
	*left--
	n := node{Text: text(err.Error())}
	n.is(err)
	var inside []error
	if as, ok := err.(interface{ As(target any) bool }); ok { // what errors.As finds first
		n.as(as.As, &inside, left)
	}
	switch wrapper := err.(type) { //nolint:errorlint // one node of the tree at a time
	case interface{ Unwrap() error }:
		inside = append(inside, wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		inside = append(inside, wrapper.Unwrap()...)
	}
	for _, e := range inside {
		if e != nil && *left > 0 {
			n.Wraps = append(n.Wraps, describe(e, left))
		}
	}
	return n
}

// is sets the fields of the error itself, without the wrapped errors.
func (n *node) is(err error) {
	if c, ok := err.(codes.Coder); ok { //nolint:errorlint // one node of the tree at a time
		code := c.Code()
		n.Code = &code
	}
	if s, ok := err.(*status.Status); ok && s != nil { //nolint:errorlint // one node of the tree at a time
		message := text(s.Message())
		n.Message = &message
	}
	if r, ok := err.(codes.RetryAfterer); ok { //nolint:errorlint // one node of the tree at a time
		after := r.RetryAfter()
		n.RetryAfter = &after
	}
	is, ok := err.(interface{ Is(target error) bool })
	n.Canceled = err == context.Canceled || ok && is.Is(context.Canceled)                         //nolint:errorlint // one node of the tree at a time
	n.DeadlineExceeded = err == context.DeadlineExceeded || ok && is.Is(context.DeadlineExceeded) //nolint:errorlint // one node of the tree at a time
}

// as sets the fields that the As method of an error gives.
func (n *node) as(as func(any) bool, inside *[]error, left *int) {
	var c codes.Coder
	if n.Code == nil && as(&c) && c != nil {
		*inside = append(*inside, c)
	}
	var r codes.RetryAfterer
	if n.RetryAfter == nil && *left > 0 && as(&r) && r != nil {
		*inside = append(*inside, r)
	}
}

// err returns the error of a node. It is not nil.
func (n node) err() error {
	switch {
	case n.Canceled && n.bare() && string(n.Text) == context.Canceled.Error():
		return context.Canceled
	case n.DeadlineExceeded && n.bare() && string(n.Text) == context.DeadlineExceeded.Error():
		return context.DeadlineExceeded
	}
	s := string(n.Text)
	var wraps []error
	isStatus := n.Message != nil && n.Code != nil && *n.Code != codes.OK
	if n.Code != nil && !isStatus {
		wraps = append(wraps, &coded{s, *n.Code})
	}
	if n.RetryAfter != nil {
		wraps = append(wraps, &delayed{s, *n.RetryAfter})
	}
	if n.Canceled {
		wraps = append(wraps, context.Canceled)
	}
	if n.DeadlineExceeded {
		wraps = append(wraps, context.DeadlineExceeded)
	}
	for _, inside := range n.Wraps {
		wraps = append(wraps, inside.err())
	}
	switch {
	case isStatus && len(wraps) == 0:
		return status.Error(*n.Code, string(*n.Message))
	case isStatus && len(wraps) == 1:
		return status.WrapError(*n.Code, string(*n.Message), wraps[0])
	case isStatus:
		return status.WrapError(*n.Code, string(*n.Message), &remote{text: s, wraps: wraps})
	default:
		return &remote{text: s, wraps: wraps}
	}
}

// bare reports whether a node is only a context error.
func (n node) bare() bool {
	return n.Code == nil && n.Message == nil && n.RetryAfter == nil && n.Canceled != n.DeadlineExceeded && len(n.Wraps) == 0
}

// remote is an error of the server.
type remote struct {
	text  string
	wraps []error
}

func (r *remote) Error() string   { return r.text }
func (r *remote) Unwrap() []error { return r.wraps }

// coded is an error of the server with a code.
type coded struct {
	text string
	code codes.Code
}

func (v *coded) Error() string    { return v.text }
func (v *coded) Code() codes.Code { return v.code }

// delayed is an error of the server with a wait.
type delayed struct {
	text  string
	after time.Duration
}

func (p *delayed) Error() string             { return p.text }
func (p *delayed) RetryAfter() time.Duration { return p.after }

// text is a string of any bytes. In JSON it is a string if it is UTF-8, otherwise a list with
// the bytes in base64.
type text string

// MarshalJSON implements [json.Marshaler].
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return encode(string(t))
	}
	return json.Marshal([][]byte{[]byte(t)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		var exact [][]byte
		if err := json.Unmarshal(data, &exact); err != nil {
			return err
		}
		*t = ""
		for _, part := range exact {
			*t += text(part)
		}
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}
