// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gardener/machine-controller-manager/internal/permits"
)

// giverModel makes one call of a PermitGiver at a time and compares its result with that of a
// model: one record per key, and a list of waiting calls.
type giverModel struct {
	pg      permits.PermitGiver
	keys    map[string]*keyModel // nil once closed
	waiting []waiterModel        // in order of arrival
}

type keyModel struct {
	permits, taken int
	used           time.Time
}

type waiterModel struct {
	key      string
	deadline time.Time
	answer   <-chan answer
}

// known returns the record of a key, or nil if it is unknown or stale.
func (m *giverModel) known(key string) *keyModel {
	k := m.keys[key]
	if k != nil && k.taken == 0 && time.Since(k.used) > stale {
		delete(m.keys, key)
		return nil
	}
	return k
}

func (m *giverModel) register(key string, n int) {
	m.pg.RegisterPermits(key, n)
	switch k := m.known(key); {
	case m.keys == nil:
	case k != nil:
		k.used = time.Now()
	default:
		m.keys[key] = &keyModel{permits: n, used: time.Now()}
	}
}

func (m *giverModel) try(t *testing.T, key string, timeout time.Duration) {
	k, got := m.known(key), try(m.pg, key, timeout)
	if k != nil {
		k.used = time.Now()
	}
	switch {
	case k == nil || k.permits <= 0 || (k.taken >= k.permits && timeout <= 0):
		require.Equal(t, answer{false, 0}, receive(t, got))
	case k.taken < k.permits:
		require.Equal(t, answer{true, 0}, receive(t, got))
		k.taken++
	default:
		require.Empty(t, got)
		m.waiting = append(m.waiting, waiterModel{key, time.Now().Add(timeout), got})
	}
}

func (m *giverModel) release(t *testing.T, key string) {
	m.pg.ReleasePermit(key)
	synctest.Wait()
	k := m.known(key)
	if k == nil || k.taken == 0 {
		return
	}
	k.used = time.Now()
	for i, w := range m.waiting {
		if w.key == key { // in order of arrival
			require.True(t, receive(t, w.answer).granted)
			m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
			return
		}
	}
	k.taken--
}

// dismiss checks that exactly the waiting calls that match have returned false.
func (m *giverModel) dismiss(t *testing.T, matches func(w waiterModel) bool) {
	synctest.Wait()
	var rest []waiterModel
	for _, w := range m.waiting {
		if matches(w) {
			require.False(t, receive(t, w.answer).granted)
		} else {
			require.Empty(t, w.answer, "the call has returned too early")
			rest = append(rest, w)
		}
	}
	m.waiting = rest
}

func receive(t *testing.T, from <-chan answer) answer {
	t.Helper()
	require.Len(t, from, 1, "no answer")
	return <-from
}

// runGiver reads program as a list of calls of one byte each.
func runGiver(t *testing.T, program []byte) {
	t.Helper()
	m := giverModel{pg: permits.NewPermitGiver(stale, janitor), keys: map[string]*keyModel{}}
	for _, b := range program {
		key, arg := fmt.Sprint(b>>3&1), int(b>>4)
		switch b & 7 {
		case 0:
			m.register(key, arg%4-1)
		case 1:
			m.try(t, key, 0)
		case 2, 3:
			m.try(t, key, time.Duration(arg+1)*20*time.Minute)
		case 4, 5:
			m.release(t, key)
		case 6:
			pass(time.Duration(arg) * 7 * time.Minute)
			m.dismiss(t, func(w waiterModel) bool { return !time.Now().Before(w.deadline) })
		case 7:
			if arg == 15 {
				m.pg.Close()
				m.keys = nil
				m.dismiss(t, func(waiterModel) bool { return true })
			} else if arg > 10 {
				m.pg.DeletePermits(key)
				delete(m.keys, key)
				m.dismiss(t, func(w waiterModel) bool { return w.key == key })
			}
		}
		require.LessOrEqual(t, permits.Gates(m.pg), 2)
	}
	m.pg.Close()
	m.dismiss(t, func(waiterModel) bool { return true })
}

func TestPermitGiver_RandomCalls_AgreesWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 400 {
		program := []byte{0x20, 0x38} // one permit of key 0, two of key 1
		for range 150 {
			program = append(program, byte(rng.Uint32()))
		}
		if !t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runGiver(t, program) })
		}) {
			t.Fatalf("round %d: program %x", round, program)
		}
	}
}

func FuzzPermitGiver(f *testing.F) {
	f.Add([]byte{0x20, 1, 2, 3, 4, 4, 4})                  // two wait, three release
	f.Add([]byte{0x20, 1, 0x32, 0xb7, 4, 0x20, 1, 4, 1})   // deleted while waited for, then anew
	f.Add([]byte{0x20, 1, 0x32, 0xf7, 4, 0x20, 1, 0xf7})   // closed while waited for
	f.Add([]byte{0x20, 1, 4, 0x96, 1, 4, 0x96, 0x20, 1})   // stale, and not
	f.Add([]byte{0x00, 1, 4, 2, 0x18, 9, 0x0c, 0x0a, 0x0}) // none to give
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) { runGiver(t, program[:min(len(program), 300)]) })
	})
}
