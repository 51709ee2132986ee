// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrUnreadable means that an object has no ledger that a process has written: it was edited, it is
// damaged, or it belongs to something else. Nothing is granted and nothing is overwritten. What
// helps: delete the object.
var ErrUnreadable = errors.New("the object has no valid ledger: delete it, and permits are granted again after the TTL")

// Policy is how a ledger that is stored in an object grants leases: see [Stored]. All processes of
// one ledger have the same Policy. The zero Policy is invalid, and grants nothing.
type Policy struct {
	// Limit is how many leases there may be. Zero or less grants none, and renews.
	Limit int
	// TTL is the time from the last renewal of a lease to its end. It is at least 10 s and twice
	// MaxSkew, and longer than a holder needs to start again after a crash or a reboot.
	TTL time.Duration
	// MaxSkew is the largest difference between the clocks of two processes. A holder stops that
	// long before the end of its lease: see [Policy.Deadline]. Zero means 10s.
	MaxSkew time.Duration
	// Window is when leases are granted. Renewals do not depend on it.
	Window Window
}

// Validate returns an error for a TTL that is too short and for a window that never opens.
func (p Policy) Validate() error {
	switch {
	case p.MaxSkew < 0 || p.TTL < 10*time.Second || p.TTL/2 < p.skew():
		return errors.New("permits: the policy has a negative MaxSkew, or a TTL shorter than 10s or than twice MaxSkew")
	case p.Window.Opens(time.Unix(0, 0)).IsZero():
		return errors.New("permits: the window of the policy never opens: its start is no time of day, a day is no weekday, or it has no length")
	}
	return nil
}

// Deadline returns when the holder of a lease has to stop by its own clock, if it does not renew the
// lease. No other process gets its permit before that, if no two clocks differ by more than MaxSkew.
func (p Policy) Deadline(l Lease) time.Time { return l.Expires.Add(-p.skew()) }

func (p Policy) skew() time.Duration { return cmp.Or(p.MaxSkew, 10*time.Second) }

// Stored is a [Ledger] of one key as it is stored in an object, for several processes. A process
// reads the object, calls a method, and writes the result if it differs, under the condition that
// the object has not changed since. The rules are those of the Ledger, and the ends of leases are
// those in the object. The zero Stored is that of a new object without UID.
//
// An object that is new or was restored may lack leases: a new one may replace one that was deleted.
// It grants nothing for the TTL and MaxSkew. By then all permits that it lacks have ended.
type Stored struct {
	// UID is that of the object. An object with the ledger of another UID is a restored copy.
	UID string
	// Ledger is the state as JSON. It is empty in a new object, as is Holders.
	Ledger string
	// Holders are the leases as text for people. If it was edited, the ledger is unreadable.
	Holders string
}

// content is the JSON of a stored ledger.
type content struct {
	UID         string    `json:"uid"`
	Writes      int64     `json:"writes"`  // increases with each write
	Written     time.Time `json:"written"` // by the clock of the last writer
	ClosedUntil time.Time `json:"closedUntil,omitzero"`
	Leases      []Lease   `json:"leases,omitempty"` // sorted by holder
	Sum         string    `json:"sum"`              // of the other fields, the key, and the text for people
}

// Acquire is [Ledger.Acquire] on a stored ledger. It returns what to write, which may differ also if
// the permit is refused. A lease counts when it is written. Outside of the window it only renews.
//
// Pass as seen what this process has last read or written. An object that is older than seen was
// restored. An object that is new or was restored is closed to all but a holder whose lease is in
// seen. So pass the zero Stored after a Release whose write may have failed, or with nothing seen.
//
// The error is [ErrUnreadable], that of [Policy.Validate], or that the clock is more than MaxSkew behind
// one that has written the ledger. Texts have to be UTF-8.
func (s Stored) Acquire(seen Stored, p Policy, key, holder string, now time.Time) (Stored, Lease, *Refusal, error) {
	return s.change(seen, p, key, holder, now, false)
}

// Release is [Ledger.Release] on a stored ledger. It returns what to write. The arguments and the
// error are those of [Stored.Acquire].
func (s Stored) Release(seen Stored, p Policy, key, holder string, now time.Time) (Stored, error) {
	next, _, _, err := s.change(seen, p, key, holder, now, true)
	return next, err
}

// change acquires or releases a lease. It closes the ledger if leases may be missing. Times are
// rounded down to seconds.
func (s Stored) change(seen Stored, p Policy, key, holder string, now time.Time, release bool) (_ Stored, lease Lease, refusal *Refusal, err error) {
	now = now.UTC().Truncate(time.Second)
	c, err := s.read(key)
	last := c
	if seen != s {
		last, _ = seen.read(key)
	}
	if err = cmp.Or(err, p.Validate()); err != nil {
		return s, lease, nil, err
	}
	switch {
	case !utf8.ValidString(s.UID + key + holder): // JSON would change it
		return s, lease, nil, errors.New("permits: the UID, the key or the holder is not UTF-8")
	case now.Add(p.skew()).Before(c.Written):
		return s, lease, nil, fmt.Errorf("permits: the clock shows %s, and the ledger was written at %s: one of the clocks is wrong", instant(now), instant(c.Written))
	}
	older := seen.UID == s.UID && (c.Writes < last.Writes || c.Writes == last.Writes && s.Ledger != seen.Ledger)
	changed := s.Ledger == "" || c.UID != s.UID || older
	if changed { // the leases of a restored object may have been released since; all end before it is opened
		c = content{UID: s.UID, Writes: max(c.Writes, last.Writes), ClosedUntil: now.Add(p.TTL + p.skew() + time.Second)}
	}
	ledger := NewLedger(p.Limit, p.TTL)
	a := ledger.account(key, now)
	a.leases = c.Leases
	a.prune(now)
	closed, opens := now.Before(c.ClosedUntil), p.Window.Opens(now)
	own := slices.IndexFunc(last.Leases, func(l Lease) bool { return l.Holder == holder && now.Before(p.Deadline(l)) })
	switch _, held := a.find(holder); {
	case release:
		changed = ledger.Release(key, holder, now) || changed
	case closed && !held && own >= 0:
		lease, changed = ledger.Adopt(last.Leases[own], now), true
	case closed && !held:
		refusal = a.refuse(holdersUnknown, p.Limit, key, holder)
		refusal.RetryAt = c.ClosedUntil
	case opens.After(now) && !held:
		refusal = a.refuse(outsideWindow, p.Limit, key, holder)
		refusal.RetryAt = opens
	default:
		lease, refusal = ledger.Acquire(key, holder, now)
		changed = changed || refusal == nil
	}
	if !changed {
		return s, lease, refusal, nil
	}
	c.Writes, c.Written, c.Leases = c.Writes+1, now, ledger.Leases(now)
	s.Holders = strings.Trim(fmt.Sprint(c.Leases), "[]")
	if closed {
		s.Holders = strings.TrimSpace("closed until " + instant(c.ClosedUntil) + " " + s.Holders)
	}
	c.Sum = c.sum(key, s.Holders)
	text, err := json.Marshal(c)
	s.Ledger = string(text)
	return s, lease, refusal, err
}

// read parses a ledger. That of a new object is empty.
func (s Stored) read(key string) (c content, err error) {
	if s.Ledger == "" && s.Holders == "" {
		return c, nil
	}
	if err = json.Unmarshal([]byte(s.Ledger), &c); err == nil && c.Sum != c.sum(key, s.Holders) {
		err = errors.New("the sum is wrong")
	}
	if err != nil {
		return content{}, fmt.Errorf("%w (%w)", ErrUnreadable, err)
	}
	return c, nil
}

// sum returns the check sum of a ledger. It tells edits by people from writes of processes.
func (c content) sum(key, holders string) string {
	c.Sum = ""
	text, _ := json.Marshal([]any{c, key, holders}) //nolint:errchkjson // what cannot be encoded is not written
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(text))
}
