// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Request is a request that the API server has answered.
type Request struct {
	// Time is when it came, to the microsecond.
	Time time.Time
	// Latency is how long it took. It is zero for a watch that has not ended.
	Latency time.Duration
	// User is the name that it came with: "admin" for [ControlPlane.Config],
	// "system:serviceaccount:namespace:name" for a service account.
	User, UserAgent string
	// Verb is that of Kubernetes: get, list, watch, create, update, patch, delete,
	// deletecollection. Requests for something else than a resource have the
	// method of HTTP in small letters.
	Verb string
	// Group, Resource and the rest name what it was about; Group is empty for the
	// core group, Subresource, Namespace and Name if there is none. Resource is
	// empty if it was about something else, like /readyz. The name of an object
	// that is created with a generated name is only known to the answer, and
	// missing here.
	Group, Resource, Subresource string
	Namespace, Name              string
	// Code is that of the HTTP response.
	Code int
}

// Requests returns all requests since Start in the order in which they came to
// the log: most when they are answered, watches when they begin. Those of the
// components are among them, and so are those of [ControlPlane.Namespace].
//
// A request appears moments after its answer; who waits for one polls. The audit
// log is read anew each time, which takes a second for some 100 000 requests.
// Once Stop has deleted the log, there is an error.
func (c *ControlPlane) Requests() ([]Request, error) {
	text, err := os.ReadFile(c.logFile(auditFile))
	if err != nil {
		return nil, fmt.Errorf("control plane: audit log: %w", err)
	}
	return parseAudit(text)
}

// auditEvent is what we read of an event of audit.k8s.io/v1.
type auditEvent struct {
	AuditID, Stage, Verb, UserAgent string
	User                            struct{ Username string }
	ObjectRef                       struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	}
	ResponseStatus                           struct{ Code int }
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// parseAudit reads an audit log. A last line without an end is still being
// written.
func parseAudit(text []byte) ([]Request, error) {
	var requests []Request
	open := map[string]int{} // watches that have begun, by audit ID
	for number := 1; ; number++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			return requests, nil
		}
		text = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := parseEvent(line)
		if err != nil {
			return requests, fmt.Errorf("control plane: audit log, line %d: %w", number, err)
		}
		r := e.request()
		at, begun := open[e.AuditID]
		switch {
		case e.Stage == "ResponseStarted":
			r.Latency = 0
			open[e.AuditID] = len(requests)
			requests = append(requests, r)
		case begun:
			requests[at] = r
			delete(open, e.AuditID)
		default:
			requests = append(requests, r)
		}
	}
}

// parseEvent reads a line of an audit log. If the server was killed while it wrote
// a line, the next server began in the middle of it: then the latter event counts.
func parseEvent(line []byte) (auditEvent, error) {
	var e auditEvent
	err := json.Unmarshal(line, &e)
	if err == nil {
		return e, nil
	}
	if at := bytes.LastIndex(line, []byte(`{"kind":"Event"`)); at > 0 {
		var later auditEvent
		if json.Unmarshal(line[at:], &later) == nil {
			return later, nil
		}
	}
	return auditEvent{}, err
}

func (e auditEvent) request() Request {
	return Request{
		Time:        e.RequestReceivedTimestamp,
		Latency:     e.StageTimestamp.Sub(e.RequestReceivedTimestamp),
		User:        e.User.Username,
		UserAgent:   e.UserAgent,
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		Code:        e.ResponseStatus.Code,
	}
}
