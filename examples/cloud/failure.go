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

// failure is an error on the way, and the response next to it.
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
	// Code, if the error is a codes.Coder.
	Code *codes.Code `json:"code,omitempty"`
	// Message, if it is a *status.Status.
	Message *text `json:"message,omitempty"`
	// RetryAfter, if it is a codes.RetryAfterer.
	RetryAfter *time.Duration `json:"retryAfterNanoseconds,omitempty"`
	// Canceled and DeadlineExceeded say that it is that context error.
	Canceled         bool `json:"canceled,omitempty"`
	DeadlineExceeded bool `json:"deadlineExceeded,omitempty"`
	// Wraps is what it wraps.
	Wraps []node `json:"wraps,omitempty"`
}

// The tree of an error is cut off beyond so many nodes. Code and waiting time
// stay right: they are those of the whole.
const maxNodes = 256

// newFailure describes an error that is not nil.
func newFailure[R any](err error, response *R) failure[R] {
	left := maxNodes
	return failure[R]{Code: codes.Of(err), RetryAfter: codes.RetryAfterOf(err), Error: describe(err, &left), Response: response}
}

// err returns the error that was described. Never nil.
func (f failure[R]) err() error {
	err := f.Error.err()
	if f.Code != codes.OK && codes.Of(err) != f.Code {
		err = &remote{text: err.Error(), wraps: []error{&verdict{err.Error(), f.Code}, err}}
	}
	if f.RetryAfter > 0 && codes.RetryAfterOf(err) != f.RetryAfter {
		err = codes.WithRetryAfter(err, f.RetryAfter)
	}
	return err
}

// describe describes the tree of an error, as far as there are nodes left.
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

// is notes what an error is by itself, without what it wraps.
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

// as notes what an error turns itself into when asked.
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

// err returns the error that a node describes. Never nil.
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
		wraps = append(wraps, &verdict{s, *n.Code})
	}
	if n.RetryAfter != nil {
		wraps = append(wraps, &patience{s, *n.RetryAfter})
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

// bare reports whether a node is a context error and nothing else.
func (n node) bare() bool {
	return n.Code == nil && n.Message == nil && n.RetryAfter == nil && n.Canceled != n.DeadlineExceeded && len(n.Wraps) == 0
}

// remote is an error of the other side.
type remote struct {
	text  string
	wraps []error
}

func (r *remote) Error() string   { return r.text }
func (r *remote) Unwrap() []error { return r.wraps }

// verdict is the code of an error of the other side.
type verdict struct {
	text string
	code codes.Code
}

func (v *verdict) Error() string    { return v.text }
func (v *verdict) Code() codes.Code { return v.code }

// patience is the waiting time of an error of the other side.
type patience struct {
	text  string
	after time.Duration
}

func (p *patience) Error() string             { return p.text }
func (p *patience) RetryAfter() time.Duration { return p.after }

// text is a string of any bytes: a JSON string if it is UTF-8, and otherwise the
// bytes as encoding/json has them, in a list.
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
