// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/permits"
	"github.com/machinist-dev/machinist/permits/runner"
)

var (
	worlds     = flag.Int("worlds", 4, "how many simulations are run")
	firstWorld = flag.Uint64("first-world", 0, "the seed of the first simulation")
)

const (
	processes = 20
	maxSkew   = 8 * time.Second
	simTTL    = 10 * time.Minute
	// slack is the longest time from a free permit to its next holder: a poll, its pause and jitter,
	// and requests that are slow or fail several times.
	slack = 3 * time.Minute
)

// skewedClock is the clock of a process that differs from the true one.
type skewedClock struct {
	clock.RealClock

	skew time.Duration
}

func (c skewedClock) Now() time.Time { return time.Now().Add(c.skew) }

// network is the way to the API server. Requests are slow, conflict, fail, and fail after they were
// carried out. A request whose context ends is carried out all the same, also later.
type network struct {
	runner.Leases

	// calm is true for a network without delays and failures.
	calm bool
}

var leases = coordinationv1.Resource("leases")

// send sends a request.
func (n network) send(ctx context.Context, write bool, request func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	if n.calm {
		return request()
	}
	type response struct {
		o   *coordinationv1.Lease
		err error
	}
	arrived := make(chan response, 1)
	go func() {
		var r response
		defer func() { arrived <- r }()
		time.Sleep(delay()) // of the bubble
		switch fate := rand.IntN(100); {
		case fate < 5:
			r.err = apierrors.NewServiceUnavailable("injected")
			return
		case fate < 15 && write:
			r.err = apierrors.NewConflict(leases, "group", errors.New("injected"))
			return
		case fate < 25 && write:
			_, _ = request()
			r.err = apierrors.NewTimeoutError("injected", 0)
			return
		}
		r.o, r.err = request()
		time.Sleep(delay())
	}()
	select {
	case r := <-arrived:
		return r.o, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func delay() time.Duration {
	switch n := rand.IntN(200); {
	case n == 0:
		return 40 * time.Second
	case n < 5:
		return 5 * time.Second
	default:
		return time.Duration(n) * time.Millisecond
	}
}

func (n network) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error) {
	return n.send(ctx, false, func() (*coordinationv1.Lease, error) { return n.Leases.Get(ctx, name, opts) })
}

func (n network) Create(ctx context.Context, o *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	o = o.DeepCopy()
	return n.send(ctx, true, func() (*coordinationv1.Lease, error) { return n.Leases.Create(ctx, o, opts) })
}

func (n network) Update(ctx context.Context, o *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	o = o.DeepCopy()
	return n.send(ctx, true, func() (*coordinationv1.Lease, error) { return n.Leases.Update(ctx, o, opts) })
}

// judge knows which processes work, by the true time and without the ledger.
type judge struct {
	t      *testing.T
	object runner.Leases
	limit  int

	mu      sync.Mutex
	working map[string]bool
	// dead are the processes that were killed while they worked, with the end of their lease.
	dead    map[string]time.Time
	waiting map[string]time.Time // since when
	// idle is since when a permit is free although processes wait.
	idle           time.Time
	granted, ended int
	longest        time.Duration
}

// begins asserts that a process may work now. The lease of a dead process counts until the clock that is
// ahead of all others is at its end.
func (j *judge) begins(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.dead, name) // its own permit
	j.longest = max(j.longest, time.Since(j.waiting[name]))
	delete(j.waiting, name)
	j.working[name] = true
	j.granted++
	held := len(j.working)
	for holder, end := range j.dead {
		if time.Now().Add(maxSkew / 2).Before(end) {
			held++
		} else {
			delete(j.dead, holder)
			j.ended++
		}
	}
	if held > j.limit {
		j.t.Errorf("%v: %s begins, and %v work, %v are dead, limit %d", time.Now(), name, j.working, j.dead, j.limit)
	}
}

// ends records that a process works no longer. Zero is no end.
func (j *judge) ends(name string, dead time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.working, name)
	if !dead.IsZero() {
		j.dead[name] = dead
	}
}

// waits records that a process waits, or does not anymore.
func (j *judge) waits(name string, waits bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if delete(j.waiting, name); waits {
		j.waiting[name] = time.Now()
	}
}

// written returns the leases in the object. It reads the JSON by itself.
func (j *judge) written(ctx context.Context) map[string]time.Time {
	o, err := j.object.Get(ctx, "group", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	var read struct {
		Leases []struct {
			Holder  string
			Expires time.Time
		}
	}
	if err := json.Unmarshal([]byte(o.Annotations["machinist.dev/permits"]), &read); err != nil {
		return nil
	}
	ends := map[string]time.Time{}
	for _, l := range read.Leases {
		ends[l.Holder] = l.Expires
	}
	return ends
}

// check asserts that no permit is free for long while processes wait.
func (j *judge) check(ctx context.Context) {
	held := 0
	for _, end := range j.written(ctx) {
		if time.Now().Before(end.Add(maxSkew)) { // by the slowest clock
			held++
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if held >= j.limit || len(j.waiting) == 0 {
		j.idle = time.Now()
	}
	if idle := time.Since(j.idle); idle > slack {
		j.t.Errorf("%v: a permit is free since %v, and %v wait", time.Now(), idle, j.waiting)
		j.idle = time.Now()
	}
}

// TestLock_KilledProcesses_NeverTwoHolders has 20 processes that work under a permit, several times each,
// and are killed at random. Clocks are skewed within the bound, and requests are slow, conflict, fail,
// and fail after they were carried out. In each second world a user edits, deletes and restores the object.
func TestLock_KilledProcesses_NeverTwoHolders(t *testing.T) {
	for i := range *worlds {
		seed := *firstWorld + uint64(i)
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		}) {
			return
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	cluster := draintest.New(draintest.Options{Seed: int64(seed)})
	start := time.Now()
	j := &judge{
		t: t, object: cluster.Client().CoordinationV1().Leases("ns"), limit: 1 + int(seed/2%2), idle: start.Add(2 * simTTL),
		working: map[string]bool{}, dead: map[string]time.Time{}, waiting: map[string]time.Time{},
	}
	var group sync.WaitGroup
	for i := range processes {
		p := &process{
			judge: j, name: fmt.Sprintf("p%02d", i), random: rand.New(rand.NewPCG(seed, 100+uint64(i))),
			network: network{Leases: cluster.Client().CoordinationV1().Leases("ns")},
			clock:   skewedClock{skew: time.Duration(random.Int64N(int64(maxSkew)+1)) - maxSkew/2},
		}
		group.Go(p.live)
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	u := &user{object: cluster.Client().CoordinationV1().Leases("ns"), random: random}
	for next := start; ; {
		select {
		case <-done:
			t.Logf("%d permits in %v, %d dead until the end of the lease, the longest wait %v; %v", j.granted, time.Since(start), j.ended, j.longest, u.acts)
			time.Sleep(5 * time.Minute) // of the bubble, for requests that still run
			return
		case <-time.After(5 * time.Second):
			switch {
			case seed%2 == 1 && time.Now().After(next):
				next = time.Now().Add(time.Duration(random.Int64N(int64(2 * time.Hour))))
				u.act(t)
			case seed%2 == 0 && time.Since(start) > 2*simTTL: // a new object grants nothing at first
				j.check(t.Context())
			}
			if time.Since(start) > 100*time.Hour {
				t.Fatalf("%v starve", j.waiting)
			}
		}
	}
}

// user edits, deletes and restores the object.
type user struct {
	object interface {
		runner.Leases
		Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	}
	random *rand.Rand
	backup *coordinationv1.Lease
	broken bool
	acts   [6]int
}

func (u *user) act(t *testing.T) {
	o, err := u.object.Get(t.Context(), "group", metav1.GetOptions{})
	if err != nil {
		return
	}
	act := u.random.IntN(len(u.acts))
	if u.broken { // it has to be deleted
		act = 0
	}
	u.acts[act]++
	u.broken = act >= 3
	ledger := o.Annotations["machinist.dev/permits"]
	switch act {
	case 0:
		err = u.object.Delete(t.Context(), "group", metav1.DeleteOptions{})
	case 1:
		u.backup = o
		return
	case 2:
		if u.backup == nil {
			return
		}
		if err = u.object.Delete(t.Context(), "group", metav1.DeleteOptions{}); err == nil {
			u.backup.UID, u.backup.ResourceVersion = "", ""
			_, _ = u.object.Create(t.Context(), u.backup, metav1.CreateOptions{})
		}
		return
	case 3:
		o.Annotations = map[string]string{"machinist.dev/permits": ledger[:u.random.IntN(len(ledger)+1)] + "?"}
	case 4:
		o.Spec.HolderIdentity = ptr.To("me")
	case 5:
		o.Annotations = nil
		o.Spec.HolderIdentity = ptr.To("me")
	}
	if act > 2 {
		_, err = u.object.Update(t.Context(), o, metav1.UpdateOptions{})
	}
	if err != nil { // another writer was faster
		u.broken = false
	}
}

// process works under a permit several times. It is killed sometimes, and started again or not.
type process struct {
	*judge

	network network
	name    string
	random  *rand.Rand
	clock   skewedClock
	lock    *runner.Lock
	kill    context.CancelFunc
}

func (p *process) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.random.Int64N(int64(to-from)))
}

// start starts a new process, which remembers nothing.
func (p *process) start() {
	p.lock = &runner.Lock{
		Leases: p.network, Name: "group", Holder: p.name, Clock: p.clock,
		Policy: permits.Policy{Limit: p.limit, TTL: simTTL, MaxSkew: maxSkew},
	}
}

func (p *process) live() {
	p.start()
	for worked := 0; worked < 3; {
		time.Sleep(p.between(0, 20*time.Minute)) // of the bubble
		ctx, kill := context.WithCancel(context.Background())
		if p.kill = kill; p.random.IntN(4) == 0 {
			time.AfterFunc(p.between(0, 2*time.Hour), kill) // it mostly waits then
		}
		p.waits(p.name, true)
		err := p.lock.Run(ctx, p.work)
		p.waits(p.name, false)
		if err == nil {
			err = p.lock.Release(ctx)
			worked++
		}
		killed := ctx.Err() != nil
		switch {
		case killed && p.random.IntN(10) == 0:
			return // and is never started again
		case killed:
			p.start()
		case err != nil && !errors.Is(err, runner.ErrLost) && !errors.Is(err, permits.ErrUnreadable):
			p.t.Errorf("%s: %v", p.name, err)
		}
		kill()
	}
}

// work works for a while. A process that is killed meanwhile is dead, with its permit.
func (p *process) work(ctx context.Context) error {
	p.begins(p.name)
	if p.random.IntN(3) == 0 {
		time.AfterFunc(p.between(0, 10*time.Minute), p.kill)
	}
	select {
	case <-ctx.Done():
	case <-time.After(p.between(time.Second, 30*time.Minute)):
	}
	dead := time.Time{}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), runner.ErrLost) {
		dead = p.written(context.WithoutCancel(ctx))[p.name]
	}
	p.ends(p.name, dead)
	if ctx.Err() == nil && p.random.IntN(2) == 0 { // else it is released after Run
		_ = p.lock.Release(ctx)
		time.Sleep(p.between(0, 10*time.Minute)) // of the bubble
	}
	return ctx.Err()
}
