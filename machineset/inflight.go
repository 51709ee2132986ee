// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// InFlight is what this process has asked for in the name of one set and what
// its cache may not show yet. [Plan] counts it, so that a stale cache does not
// make it ask for the same thing twice. The zero InFlight is that nothing was
// asked for. It is a value: methods return a changed copy, and it may be stored
// as JSON. It is not needed across a restart if the first cache after the
// restart is read from the API server later than the last write before it.
//
// Entries are recorded before the call is made, because a call whose answer is
// lost may have had its effect. They end in one of three ways, none of which is
// the passing of time: the cache shows the effect ([InFlight.Observe]), the API
// server has refused the call ([InFlight.Refused]), or a live read, for which
// Plan asks with a [Look] when an entry grows old, shows that there is no
// effect ([InFlight.Looked]).
type InFlight struct {
	// Creates are the machines whose creation has not shown up, ordered by name.
	Creates []Sent `json:"creates,omitempty"`
	// Deletes are the machines whose deletion has not shown up, ordered by name.
	Deletes []Sent `json:"deletes,omitempty"`
	// NeverJoined are the machines that were deleted because they failed before they
	// had joined, ordered by name. Each is remembered for [ShortLife] after its
	// deletion, by the clock that recorded it. They slow down what is created.
	NeverJoined []Sent `json:"neverJoined,omitempty"`
}

// Sent is one call that was made.
type Sent struct {
	// Name of the machine.
	Name string `json:"name"`
	// UID of the machine; empty for a creation.
	UID types.UID `json:"uid,omitempty"`
	// At is when the call was made, or the machine last looked at.
	At time.Time `json:"at"`
	// NeverJoined says that it is the deletion of a machine that never joined.
	NeverJoined bool `json:"neverJoined,omitempty"`
}

// Creating records that a machine of this name is about to be created. A second
// record of the same name replaces the first.
func (f InFlight) Creating(name string, at time.Time) InFlight {
	next := f.clone()
	next.Creates = put(next.Creates, Sent{Name: name, At: at})
	return next
}

// Deleting records that this machine is about to be deleted. A second record of
// the same machine replaces the first.
func (f InFlight) Deleting(d Delete, at time.Time) InFlight {
	next := f.clone()
	next.Deletes = put(next.Deletes, Sent{Name: d.Name, UID: d.UID, At: at, NeverJoined: d.NeverJoined})
	next.NeverJoined = without(next.NeverJoined, func(s Sent) bool { return !recent(s, at) })
	return next
}

func (f InFlight) clone() InFlight {
	return InFlight{Creates: slices.Clone(f.Creates), Deletes: slices.Clone(f.Deletes), NeverJoined: slices.Clone(f.NeverJoined)}
}

// recent reports whether a machine that never joined was deleted less than ShortLife
// ago.
func recent(s Sent, now time.Time) bool {
	return recorded.Known(s.At, now) && now.Sub(s.At) < ShortLife
}

// Refused drops what was recorded for this name: the API server has answered
// that it did not do it. An answer that was lost, such as a timeout, is not a
// refusal, nor is "already exists"; see [InFlight.Failed].
func (f InFlight) Refused(name string) InFlight {
	named := func(s Sent) bool { return s.Name == name }
	next := f.clone()
	next.Creates, next.Deletes = without(f.Creates, named), without(f.Deletes, named)
	return next
}

// Failed records that the call for this name returned an error. Where the answer was
// lost, the record stays. look reports that the server did answer, so that a live read
// can tell at once what became of the call: hand its result to [InFlight.Looked].
//
// No answer to a creation proves that there is no machine: client-go repeats a request
// after an answer such as 503 with Retry-After, and the answer to the second may be
// "already exists", or that a quota is used up. A deletion was not done where the API
// server answered by a rule (conflict, forbidden, not found, too many requests, …): its
// record is dropped as by [InFlight.Refused].
//
// It decides by the type of the error, never by its text. A nil error changes
// nothing.
func (f InFlight) Failed(name string, err error) (next InFlight, look bool) {
	switch {
	case err == nil:
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
	case f.names()[name], apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err):
		return f, true
	default:
		return f.Refused(name), false
	}
	return f, false
}

// Observe drops what the cache shows by now: creations of machines which are in
// it, and deletions of machines that are leaving. A machine that is not in the
// cache counts as gone only if complete is true. Hand it every machine of the
// namespace rather than those claimed, as a machine may lose its labels; nil
// machines are skipped.
func (f InFlight) Observe(machines []*v1alpha1.Machine, complete bool) InFlight {
	if len(f.Creates) == 0 && len(f.Deletes) == 0 {
		return InFlight{NeverJoined: slices.Clone(f.NeverJoined)}
	}
	asked, seen := f.names(), map[string]bool{}
	going, staying := f.deleting(), map[types.UID]bool{}
	for _, m := range machines {
		if m == nil {
			continue
		}
		if asked[m.Name] {
			seen[m.Name] = true
		}
		if going[m.UID] {
			staying[m.UID] = !Leaving(m)
		}
	}
	next := f.clone()
	next.Creates = without(f.Creates, func(s Sent) bool { return seen[s.Name] })
	next.Deletes = without(f.Deletes, func(s Sent) bool {
		stays, found := staying[s.UID]
		happened := found && !stays || !found && complete
		if happened && s.NeverJoined {
			next.NeverJoined = put(next.NeverJoined, s)
		}
		return happened
	})
	return next
}

// Looked settles what was recorded for this name by a live read: live is the
// machine that was read, or nil if the API server says that there is none. Do
// not call it if the read failed.
//
//   - A creation of which nothing is to be seen did not happen: it is dropped.
//   - A deletion that did not happen, as the same machine is there and is not
//     leaving, is dropped too, and decided anew.
//   - Everything else did happen: it is kept until the cache shows it, and may
//     be looked at again after another while.
func (f InFlight) Looked(name string, live *v1alpha1.Machine, at time.Time) InFlight {
	next := f.clone()
	if live == nil {
		next.Creates = without(next.Creates, func(s Sent) bool { return s.Name == name })
	} else {
		next.Deletes = without(next.Deletes, func(s Sent) bool {
			return s.Name == name && s.UID == live.UID && !Leaving(live)
		})
	}
	for _, sent := range [][]Sent{next.Creates, next.Deletes} {
		for i := range sent {
			if sent[i].Name == name {
				sent[i].At = at
			}
		}
	}
	return next
}

// Empty reports whether nothing is in flight.
func (f InFlight) Empty() bool { return len(f.Creates) == 0 && len(f.Deletes) == 0 }

// names returns the names whose creation is in flight.
func (f InFlight) names() map[string]bool {
	names := make(map[string]bool, len(f.Creates))
	for _, s := range f.Creates {
		names[s.Name] = true
	}
	return names
}

// deleting returns the UIDs whose deletion is in flight.
func (f InFlight) deleting() map[types.UID]bool {
	uids := make(map[types.UID]bool, len(f.Deletes))
	for _, s := range f.Deletes {
		uids[s.UID] = true
	}
	return uids
}

func put(list []Sent, s Sent) []Sent {
	list = append(without(list, func(o Sent) bool { return o.Name == s.Name && o.UID == s.UID }), s)
	slices.SortFunc(list, func(a, b Sent) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	return list
}

func without(list []Sent, drop func(Sent) bool) []Sent {
	var kept []Sent
	for _, s := range list {
		if !drop(s) {
			kept = append(kept, s)
		}
	}
	return kept
}
