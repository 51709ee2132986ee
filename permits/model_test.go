// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/permits"
)

// naive is the simplest ledger: one list of all leases.
type naive struct {
	ttl    time.Duration
	leases []permits.Lease
}

// under removes the expired leases of key and returns the others, sorted.
func (n *naive) under(key string, now time.Time) []permits.Lease {
	var kept, found []permits.Lease
	for _, l := range n.leases {
		over := !l.Expires.IsZero() && !l.Expires.After(now)
		if l.Key == key && !over {
			found = append(found, l)
		}
		if l.Key != key || !over {
			kept = append(kept, l)
		}
	}
	n.leases = kept
	sort.Slice(found, func(i, j int) bool { return found[i].Holder < found[j].Holder })
	return found
}

func (n *naive) acquire(limit int, key, holder string, now time.Time, adopt bool) (permits.Lease, *permits.Refusal) {
	held := n.under(key, now)
	end := time.Time{}
	if n.ttl > 0 {
		end = now.Add(n.ttl)
	}
	for i, l := range n.leases {
		if l.Key == key && l.Holder == holder {
			if end.After(l.Expires) {
				n.leases[i].Expires = end
			}
			return n.leases[i], nil
		}
	}
	if !adopt && len(held) >= limit {
		return permits.Lease{}, n.refusal(limit, key, holder, held)
	}
	got := permits.Lease{Key: key, Holder: holder, Since: now, Expires: end}
	n.leases = append(n.leases, got)
	return got, nil
}

func (n *naive) refusal(limit int, key, holder string, held []permits.Lease) *permits.Refusal {
	no := &permits.Refusal{Key: key, Holder: holder, Limit: limit, Holders: held}
	if limit <= 0 {
		no.Reason = "NothingAllowed"
		return no
	}
	no.Reason = "LimitReached"
	for _, candidate := range held { // the first end after which fewer than limit are left
		left := 0
		for _, l := range held {
			if l.Expires.IsZero() || l.Expires.After(candidate.Expires) {
				left++
			}
		}
		end := candidate.Expires
		if left < limit && !end.IsZero() && (no.RetryAt.IsZero() || end.Before(no.RetryAt)) {
			no.RetryAt = end
		}
	}
	return no
}

func (n *naive) release(key, holder string, now time.Time) bool {
	n.under(key, now)
	for i, l := range n.leases {
		if l.Key == key && l.Holder == holder {
			n.leases = slices.Delete(n.leases, i, i+1)
			return true
		}
	}
	return false
}

// runLedger reads program as a list of calls of two bytes each, makes them on a ledger and on
// the naive one, and compares the results. With forward, time does not go backwards, and the
// leases that were returned are never live for more holders than allowed.
func runLedger(t *testing.T, limit int, ttl time.Duration, forward bool, program []byte) {
	t.Helper()
	l, model := permits.NewLedger(limit, ttl), &naive{ttl: ttl}
	given := map[[2]string]permits.Lease{} // the leases that were returned
	adopted := false
	now := t0
	for len(program) >= 2 {
		op, arg := program[0], int(program[1])
		program = program[2:]
		key, holder := fmt.Sprint("k", op>>4&3), fmt.Sprint("h", arg&7)
		step := time.Duration(arg>>3) * time.Second
		if !forward && op&0x80 != 0 {
			step = -step
		}
		now = now.Add(step)
		switch op & 7 {
		case 0:
			require.Equal(t, model.release(key, holder, now), l.Release(key, holder, now))
			delete(given, [2]string{key, holder})
		case 1:
			if op&8 == 0 { // seldom: it exceeds the limit
				break
			}
			want, _ := model.acquire(limit, key, holder, now, true)
			require.Equal(t, want, l.Adopt(permits.Lease{Key: key, Holder: holder}, now))
			adopted = true
		default:
			want, wantNo := model.acquire(limit, key, holder, now, false)
			got, no := l.Acquire(key, holder, now)
			require.Equal(t, want, got, "%s %s at %v", key, holder, now)
			require.Equal(t, wantNo, no, "%s %s at %v", key, holder, now)
			if no == nil {
				given[[2]string{key, holder}] = got
			} else {
				require.True(t, no.RetryAt.IsZero() || no.RetryAt.After(now), "refused at %v: %v", now, no)
			}
		}
		if adopted {
			continue
		}
		for _, shift := range []time.Duration{-100, -10, 0, 10, 100} {
			held := l.Held(key, now.Add(shift*time.Second))
			require.LessOrEqual(t, len(held), max(limit, 0), "held at %v%+ds", now, shift)
		}
		live := 0
		for _, lease := range given {
			if lease.Key == key && lease.Live(now) {
				live++
			}
		}
		require.True(t, !forward || live <= max(limit, 0), "callers have %d live leases at %v, limit %d", live, now, limit)
	}
}

func TestLedger_RandomCalls_AgreesWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 1500 {
		program := make([]byte, 200)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		limit, ttl, forward := rng.IntN(6)-1, time.Duration(rng.IntN(80)-5)*time.Second, round%2 == 0
		if round%3 == 0 { // without adoption
			for i := 0; i < len(program); i += 2 {
				program[i] &^= 8
			}
		}
		if !t.Run("", func(t *testing.T) { runLedger(t, limit, ttl, forward, program) }) {
			t.Fatalf("round %d: limit %d, ttl %v, forward %v, program %x", round, limit, ttl, forward, program)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add(1, int64(60), true, []byte{2, 0, 2, 1, 0, 0, 2, 1, 2, 0xf8})
	f.Add(2, int64(0), false, []byte{9, 0, 9, 1, 9, 2, 2, 3, 0x80, 0xf8, 2, 3})
	f.Add(0, int64(-1), false, []byte{2, 0, 9, 0, 2, 0})
	f.Fuzz(func(t *testing.T, limit int, seconds int64, forward bool, program []byte) {
		ttl := time.Duration(seconds%1000) * time.Second
		runLedger(t, limit, ttl, forward, program[:min(len(program), 400)])
	})
}
