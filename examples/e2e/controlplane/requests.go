// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
	"unique"
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
	// WatchList is true for a watch that asks for a list first: see the feature [WatchList].
	WatchList bool
	// Code is that of the HTTP response.
	Code int
}

// Requests returns all requests since Start in the order in which they came to
// the log: most when they are answered, watches when they begin. Those of the
// components are among them, and so are those of [ControlPlane.Namespace].
//
// A request appears moments after its answer; who waits for one polls. Each call reads what was added
// to the audit log since the call before. Once Stop has deleted the log, there is an error.
func (c *ControlPlane) Requests() ([]Request, error) {
	requests, err := c.audit.read(c.logFile(auditFile))
	if err != nil {
		return nil, fmt.Errorf("control plane: audit log: %w", err)
	}
	return requests, nil
}

// auditEvent is what we read of an event of audit.k8s.io/v1.
type auditEvent struct {
	AuditID, Stage, Verb, UserAgent, RequestURI string
	User                                        struct{ Username string }
	ObjectRef                                   struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	}
	ResponseStatus                           struct{ Code int }
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// auditLog is what was read of an audit log so far. The zero value has read nothing.
type auditLog struct {
	mu       sync.Mutex
	offset   int64 // of the first line that was not read
	lines    int
	requests []Request
	open     map[string]int // watches that have begun, by audit ID
}

// read reads the rest of the file, and returns a copy of all requests.
func (l *auditLog) read(file string) ([]Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	in := bufio.NewReaderSize(io.NewSectionReader(f, l.offset, math.MaxInt64-l.offset), 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // a last line without an end is still being written
			return slices.Clone(l.requests), nil
		case err != nil:
			return nil, err
		}
		if err := l.add(bytes.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.lines+1, err)
		}
		l.offset += int64(len(line))
		l.lines++
	}
}

// add adds the event of a line, if there is one.
func (l *auditLog) add(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	e, err := parseEvent(line)
	if err != nil {
		return err
	}
	r := e.request()
	at, begun := l.open[e.AuditID]
	switch {
	case e.Stage == "ResponseStarted":
		r.Latency = 0
		if l.open == nil {
			l.open = map[string]int{}
		}
		l.open[e.AuditID] = len(l.requests)
		l.requests = append(l.requests, r)
	case begun:
		l.requests[at] = r
		delete(l.open, e.AuditID)
	default:
		l.requests = append(l.requests, r)
	}
	return nil
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

// once returns the only copy of a text that many requests have.
func once(text string) string { return unique.Make(text).Value() }

func (e auditEvent) request() Request {
	return Request{
		Time:        e.RequestReceivedTimestamp,
		Latency:     e.StageTimestamp.Sub(e.RequestReceivedTimestamp),
		User:        once(e.User.Username),
		UserAgent:   once(e.UserAgent),
		Verb:        once(e.Verb),
		Group:       once(e.ObjectRef.APIGroup),
		Resource:    once(e.ObjectRef.Resource),
		Subresource: once(e.ObjectRef.Subresource),
		Namespace:   once(e.ObjectRef.Namespace),
		Name:        e.ObjectRef.Name,
		WatchList:   e.watchList(),
		Code:        e.ResponseStatus.Code,
	}
}

// watchList reports whether a watch asks for a list first.
func (e auditEvent) watchList() bool {
	uri, err := url.Parse(e.RequestURI)
	return err == nil && e.Verb == "watch" && uri.Query().Get("sendInitialEvents") == "true"
}
