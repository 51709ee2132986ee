// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

// one allows one lease of a minute. Its deadline is 10 s before its end.
var one = permits.Policy{Limit: 1, TTL: time.Minute}

// closedFor is how long a new object grants nothing: TTL and MaxSkew, and a second for rounding.
const closedFor = 71

// node is a process: it remembers what it has last read or written.
type node struct {
	name string
	seen permits.Stored
}

// acquire acquires under "pool", and writes what is to be written.
func (n *node) acquire(t *testing.T, s *permits.Stored, p permits.Policy, now time.Time) (permits.Lease, *permits.Refusal) {
	t.Helper()
	next, lease, no, err := s.Acquire(n.seen, p, "pool", n.name, now)
	require.NoError(t, err)
	require.Equal(t, no != nil, lease == permits.Lease{}, "exactly one result is set")
	*s, n.seen = next, next
	return lease, no
}

func (n *node) release(t *testing.T, s *permits.Stored, p permits.Policy, now time.Time) {
	t.Helper()
	next, err := s.Release(n.seen, p, "pool", n.name, now)
	require.NoError(t, err)
	*s, n.seen = next, next
}

// opened returns a ledger that was opened at t0. It was new before.
func opened(t *testing.T) permits.Stored {
	t.Helper()
	s := permits.Stored{UID: "u"}
	a := node{name: "a"}
	_, no := a.acquire(t, &s, one, at(-closedFor))
	require.EqualValues(t, "HoldersUnknown", no.Reason)
	require.Equal(t, t0, no.RetryAt)
	return s
}

func TestStored_NewObject_GrantsNothingForTTLAndSkew(t *testing.T) {
	s := opened(t)
	require.Equal(t, "closed until 2026-01-01T00:00:00Z", s.Holders)
	a, b := node{name: "a"}, node{name: "b"}
	_, no := b.acquire(t, &s, one, at(-1))
	require.Equal(t, `no permit for "b" under "pool": the ledger is new or was restored, and may lack holders until 2026-01-01T00:00:00Z`, no.String())
	got, no := a.acquire(t, &s, one, t0)
	require.Nil(t, no)
	require.Equal(t, lease("a", 0, 60), got)
	require.Equal(t, `"a" until 2026-01-01T00:01:00Z`, s.Holders)
}

// TestStored_RandomCalls_AgreesWithLedger asserts that the rules of a stored ledger are those of a Ledger.
func TestStored_RandomCalls_AgreesWithLedger(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 150 {
		p := permits.Policy{Limit: random.IntN(4), TTL: time.Duration(20+random.IntN(60)) * time.Second}
		s, ledger, now := opened(t), permits.NewLedger(p.Limit, p.TTL), t0
		nodes := []*node{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}}
		for range 100 {
			now = now.Add(time.Duration(random.IntN(20)) * time.Second)
			n := nodes[random.IntN(len(nodes))]
			before := s
			if random.IntN(4) == 0 {
				n.release(t, &s, p, now)
				require.Equal(t, ledger.Release("pool", n.name, now), s != before, "written if there was a lease")
				continue
			}
			lease, no := n.acquire(t, &s, p, now.Add(time.Duration(random.IntN(1000))*time.Millisecond))
			want, wantNo := ledger.Acquire("pool", n.name, now)
			require.Equal(t, want, lease, "round %d", round)
			require.Equal(t, wantNo, no)
			if no != nil {
				require.Equal(t, before, s, "a refusal writes nothing")
			}
		}
	}
}

// TestStored_DeletedAndRestored_NeverMoreThanLimit asserts that never more processes believe that they hold a
// permit than allowed, with clocks that differ by MaxSkew, while the object is deleted, and replaced by
// copies. A process that holds one keeps it.
func TestStored_DeletedAndRestored_NeverMoreThanLimit(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 3))
		p := permits.Policy{Limit: 1 + random.IntN(2), TTL: time.Minute, MaxSkew: 7 * time.Second}
		type process struct {
			node

			skew time.Duration
			held permits.Lease
		}
		var nodes []*process
		for i := range 6 {
			nodes = append(nodes, &process{node: node{name: fmt.Sprint(i)}, skew: time.Duration(random.IntN(7001)) * time.Millisecond})
		}
		s, backup, now, granted := permits.Stored{UID: "0"}, permits.Stored{}, t0, 0
		for step := range 400 {
			now = now.Add(time.Duration(random.IntN(12000)) * time.Millisecond)
			n := nodes[random.IntN(len(nodes))]
			clock := now.Add(n.skew)
			holds := n.held.Live(clock) && clock.Before(p.Deadline(n.held))
			switch event := random.IntN(60); {
			case event == 0:
				s = permits.Stored{UID: fmt.Sprint(step)}
			case event == 1:
				s, s.UID = backup, fmt.Sprint(step)
			case event < 4:
				backup = s
			case event < 8:
				n.node = node{name: n.name} // a crash, and a new process
				n.held = permits.Lease{}
			case event < 20:
				n.release(t, &s, p, clock)
				n.held = permits.Lease{}
			default:
				lease, no := n.acquire(t, &s, p, clock)
				if holds {
					require.Nil(t, no, "seed %d: it holds %v", seed, n.held)
					require.Equal(t, n.held.Since, lease.Since)
				} else if no == nil {
					granted++
				}
				n.held = lease
			}
			var holders []string
			for _, n := range nodes {
				if clock := now.Add(n.skew); n.held.Live(clock) && clock.Before(p.Deadline(n.held)) {
					holders = append(holders, n.held.String())
				}
			}
			require.LessOrEqual(t, len(holders), p.Limit, "seed %d, step %d: %v", seed, step, holders)
		}
		require.Greater(t, granted, 5, "seed %d", seed)
	}
}

func TestStored_OlderThanSeen_IsClosed(t *testing.T) {
	s := opened(t)
	a, b := node{name: "a"}, node{name: "b"}
	_, no := b.acquire(t, &s, one, t0)
	require.Nil(t, no)
	backup := s
	b.release(t, &s, one, at(1))
	_, no = a.acquire(t, &s, one, at(2))
	require.Nil(t, no)
	_, no = b.acquire(t, &s, one, at(3))
	require.Equal(t, at(62), no.RetryAt)

	s = backup // says that b holds it
	_, no = b.acquire(t, &s, one, at(4))
	require.EqualValues(t, "HoldersUnknown", no.Reason)
	require.Equal(t, at(4+closedFor), no.RetryAt)
	t.Run("the holder keeps its lease", func(t *testing.T) {
		kept, no := a.acquire(t, &s, one, at(5))
		require.Nil(t, no)
		require.Equal(t, lease("a", 2, 65), kept)
		require.Equal(t, `closed until 2026-01-01T00:01:15Z "a" until 2026-01-01T00:01:05Z`, s.Holders)
	})
	t.Run("also after a crash", func(t *testing.T) {
		again, closed := node{name: "a"}, s
		_, no := again.acquire(t, &closed, one, at(6))
		require.Nil(t, no)
	})
	t.Run("it is closed once", func(t *testing.T) {
		_, no = b.acquire(t, &s, one, at(8))
		require.Equal(t, at(4+closedFor), no.RetryAt)
		_, no = b.acquire(t, &s, one, at(4+closedFor))
		require.Nil(t, no)
	})
}

// TestStored_OtherHistory_IsClosed has an object that was restored, and written as often as before since.
func TestStored_OtherHistory_IsClosed(t *testing.T) {
	s := opened(t)
	a, b, backup := node{name: "a"}, node{name: "b"}, s
	b.acquire(t, &s, one, t0)
	s = backup
	a.acquire(t, &s, one, at(1))
	_, no := b.acquire(t, &s, one, at(2))
	require.Nil(t, no, "it keeps what it holds")
	require.Contains(t, s.Holders, "closed until 2026-01-01T00:01:13Z")
}

// TestStored_NewerObject_IsNotClosedAgain has a process that has read the object before it was replaced.
func TestStored_NewerObject_IsNotClosedAgain(t *testing.T) {
	old := opened(t)
	a, b := node{name: "a"}, node{name: "b"}
	for i := range 20 {
		a.acquire(t, &old, one, at(i))
	}
	a.release(t, &old, one, at(20))
	s := permits.Stored{UID: "new"}
	b.acquire(t, &s, one, at(21))
	_, no := a.acquire(t, &s, one, at(21+closedFor))
	require.Nil(t, no)
}

// TestStored_AnyEdit_IsUnreadable changes each byte of the ledger and of the holders.
func TestStored_AnyEdit_IsUnreadable(t *testing.T) {
	s := opened(t)
	a := node{name: "a"}
	a.acquire(t, &s, one, t0)
	refuses := func(edited permits.Stored, key string) {
		t.Helper()
		for _, n := range []string{"a", "b"} {
			next, lease, no, err := edited.Acquire(a.seen, one, key, n, at(1000))
			require.ErrorIs(t, err, permits.ErrUnreadable, "%v", edited)
			require.Zero(t, lease)
			require.Nil(t, no)
			require.Equal(t, edited, next, "nothing is overwritten")
			next, err = edited.Release(a.seen, one, key, n, at(1000))
			require.ErrorIs(t, err, permits.ErrUnreadable)
			require.Equal(t, edited, next)
		}
	}
	for i := range len(s.Ledger) {
		for _, b := range []byte{0, '0', ' ', '"', s.Ledger[i] ^ 1} {
			if text := s.Ledger[:i] + string(rune(b)) + s.Ledger[i+1:]; text != s.Ledger {
				refuses(permits.Stored{UID: "u", Ledger: text, Holders: s.Holders}, "pool")
			}
		}
		refuses(permits.Stored{UID: "u", Ledger: s.Ledger[:i], Holders: s.Holders}, "pool")
	}
	for _, holders := range []string{"", "me", s.Holders + " ", strings.Replace(s.Holders, "a", "b", 1)} {
		refuses(permits.Stored{UID: "u", Ledger: s.Ledger, Holders: holders}, "pool")
	}
	refuses(permits.Stored{UID: "u", Holders: "leader of something else"}, "pool")
	refuses(permits.Stored{UID: "u", Ledger: "null"}, "pool")
	refuses(s, "another pool")
}

func TestStored_Window_RenewsOutside(t *testing.T) {
	p := one
	p.Window = permits.Window{Length: 30 * time.Second} // from midnight on
	s := opened(t)
	a, b := node{name: "a"}, node{name: "b"}
	_, no := a.acquire(t, &s, p, at(29))
	require.Nil(t, no)
	renewed, no := a.acquire(t, &s, p, at(50))
	require.Nil(t, no)
	require.Equal(t, lease("a", 29, 110), renewed)
	_, no = b.acquire(t, &s, p, at(51))
	require.EqualValues(t, "OutsideWindow", no.Reason)
	require.Equal(t, t0.AddDate(0, 0, 1), no.RetryAt)
	require.Equal(t, []permits.Lease{renewed}, no.Holders)
	require.Equal(t, `no permit for "b" under "pool": the window opens at 2026-01-02T00:00:00Z`, no.String())
	_, no = a.acquire(t, &s, p, at(110))
	require.EqualValues(t, "OutsideWindow", no.Reason, "its lease has ended")
	_, no = b.acquire(t, &s, p, no.RetryAt)
	require.Nil(t, no)
}

func TestStored_ClockBehindLastWrite_Error(t *testing.T) {
	s := opened(t)
	a, b := node{name: "a"}, node{name: "b"}
	a.acquire(t, &s, one, at(20))
	for _, n := range []string{"a", "b"} {
		next, _, no, err := s.Acquire(a.seen, one, "pool", n, at(9))
		require.ErrorContains(t, err, "the clock shows 2026-01-01T00:00:09Z, and the ledger was written at 2026-01-01T00:00:20Z")
		require.Nil(t, no)
		require.Equal(t, s, next)
	}
	_, no := b.acquire(t, &s, one, at(10))
	require.EqualValues(t, "LimitReached", no.Reason, "as far behind as MaxSkew")
}

func TestStored_InvalidPolicy_ErrorNoLease(t *testing.T) {
	s := opened(t)
	for name, p := range map[string]permits.Policy{
		"zero":                     {},
		"no TTL":                   {Limit: 1},
		"a short TTL":              {Limit: 1, TTL: 9 * time.Second, MaxSkew: time.Second},
		"less than twice the skew": {Limit: 1, TTL: 19 * time.Second},
		"a negative skew":          {Limit: 1, TTL: time.Minute, MaxSkew: -1},
		"an endless skew":          {Limit: 1, TTL: time.Minute, MaxSkew: 1<<63 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			next, lease, no, err := s.Acquire(permits.Stored{}, p, "pool", "a", t0)
			require.Equal(t, p.Validate(), err)
			require.ErrorContains(t, err, "MaxSkew")
			require.Zero(t, lease)
			require.Nil(t, no)
			require.Equal(t, s, next)
			_, err = s.Release(permits.Stored{}, p, "pool", "a", t0)
			require.Error(t, err)
		})
	}
	require.NoError(t, permits.Policy{TTL: 10 * time.Second, MaxSkew: 5 * time.Second}.Validate())
	_, _, no, err := s.Acquire(permits.Stored{}, permits.Policy{TTL: time.Minute}, "pool", "a", t0)
	require.NoError(t, err)
	require.EqualValues(t, "NothingAllowed", no.Reason)
	_, _, no, err = s.Acquire(permits.Stored{}, one, "pool", "", t0)
	require.NoError(t, err)
	require.EqualValues(t, "HolderMissing", no.Reason)
	_, err = s.Release(permits.Stored{}, one, "pool", "\xe9", t0)
	require.ErrorContains(t, err, "UTF-8", "JSON would change it")
	_, err = permits.Stored{}.Release(permits.Stored{}, one, "pool", "a", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Error(t, err, "JSON has no such year")
}

func FuzzStored(f *testing.F) {
	s := permits.Stored{UID: "u"}
	for i, name := range []string{"a", "a", "b"} {
		f.Add(s.UID, s.Ledger, s.Holders, int64(60*i))
		s, _, _, _ = s.Acquire(s, permits.Policy{Limit: 2, TTL: time.Minute}, "pool", name, at(80*i))
	}
	f.Add(s.UID, s.Ledger, s.Holders, int64(170))
	f.Add("\xe9", "", "", int64(0))
	f.Fuzz(func(t *testing.T, uid, ledger, holders string, seconds int64) {
		s, now := permits.Stored{UID: uid, Ledger: ledger, Holders: holders}, t0.Add(time.Duration(seconds%100000)*time.Second)
		p := permits.Policy{Limit: 2, TTL: time.Minute}
		next, lease, no, err := s.Acquire(permits.Stored{}, p, "pool", "x", now)
		if err != nil {
			require.True(t, errors.Is(err, permits.ErrUnreadable) || !utf8.ValidString(uid) || seconds != 0, "%v", err)
			require.Equal(t, s, next)
			require.Zero(t, lease)
			require.Nil(t, no)
			return
		}
		require.Equal(t, uid, next.UID)
		again, _, _, err := next.Acquire(next, p, "pool", "x", now)
		require.NoError(t, err, "what is written can be read")
		if no != nil {
			require.Equal(t, next, again, "refused twice")
		}
		released, err := next.Release(next, p, "pool", "x", now)
		require.NoError(t, err)
		require.NotContains(t, released.Holders, `"x" until`)
	})
}
