// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// answers records when an API server last answered a request. It is safe for concurrent use. A nil
// value stands for an API server without requests.
type answers struct {
	began time.Time
	last  atomic.Pointer[time.Time]
}

func newAnswers() *answers { return &answers{began: time.Now()} }

// watch returns a copy of a config whose clients record their answers in a.
func (a *answers) watch(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &answeredTransport{next: next, answers: a} })
	return c
}

// age returns the age of the last answer, or the time since the start if there is none.
func (a *answers) age() time.Duration {
	switch {
	case a == nil:
		return 0
	case a.last.Load() == nil:
		return time.Since(a.began)
	default:
		return time.Since(*a.last.Load())
	}
}

// text describes the age of the last answer of a cluster.
func (a *answers) text(cluster string) string {
	switch {
	case a == nil:
		return fmt.Sprintf("the API server of the %s cluster was not asked", cluster)
	case a.last.Load() == nil:
		return fmt.Sprintf("the API server of the %s cluster has not answered for %s, since the start", cluster, rounded(a.age()))
	default:
		return fmt.Sprintf("the last answer of the API server of the %s cluster is %s old", cluster, rounded(a.age()))
	}
}

// answeredTransport records each answer of an API server that works: any answer except 429 and 5xx.
type answeredTransport struct {
	next    http.RoundTripper
	answers *answers
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *answeredTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *answeredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		now := time.Now()
		t.answers.last.Store(&now)
	}
	return response, err
}
