// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviewer is an API server that reviews tokens and access, and nothing else.
type reviewer struct {
	*authorizer
	clock *clocktesting.FakeClock
	logs  *bytes.Buffer

	mu      sync.Mutex
	users   map[string]authenticationv1.UserInfo // by token
	allowed map[string]bool                      // by name of the user
	fails   string                               // the resource that is answered with 500
	asked   []string                             // resources
	spec    authorizationv1.SubjectAccessReviewSpec
	hold    chan struct{} // if not nil, a review waits for it
}

func newReviewer(t *testing.T) *reviewer {
	t.Helper()
	r := &reviewer{clock: clocktesting.NewFakeClock(time.Now()), logs: &bytes.Buffer{}, users: map[string]authenticationv1.UserInfo{
		"good":  {Username: "prometheus", UID: "u", Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}}},
		"other": {Username: "mallory"},
	}, allowed: map[string]bool{"prometheus": true}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.review(t, w, q) }))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	r.authorizer = newAuthorizer(client, slog.New(slog.NewTextHandler(r.logs, nil)))
	r.known = cache.NewLRUExpireCacheWithClock(2, r.clock)
	t.Cleanup(func() { client.AuthenticationV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections() }) //nolint:forcetypeassert // it is one
	return r
}

func (r *reviewer) review(t *testing.T, w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resource := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
	r.asked = append(r.asked, resource)
	if r.hold != nil {
		hold := r.hold
		r.mu.Unlock()
		<-hold
		r.mu.Lock()
	}
	if resource == r.fails {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var answer any
	switch resource {
	case "tokenreviews":
		review := authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}}
		assert.NoError(t, json.NewDecoder(q.Body).Decode(&review))
		review.Status.User, review.Status.Authenticated = r.users[review.Spec.Token], r.users[review.Spec.Token].Username != ""
		answer = review
	case "subjectaccessreviews":
		review := authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}}
		assert.NoError(t, json.NewDecoder(q.Body).Decode(&review))
		r.spec = review.Spec
		review.Status.Allowed = r.allowed[review.Spec.User]
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	assert.NoError(t, json.NewEncoder(w).Encode(answer))
}

// get asks for the metrics, and returns the status and the text.
func (r *reviewer) get(t *testing.T, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, metricsPath, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	r.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) })).ServeHTTP(recorder, request)
	require.NotContains(t, recorder.Body.String(), "other-token")
	return recorder
}

func (r *reviewer) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func TestAuthorizer_Tokens_OnlyAllowedUsersRead(t *testing.T) {
	both := []string{"tokenreviews", "subjectaccessreviews"}
	for name, tc := range map[string]struct {
		authorization, fails string
		code                 int
		text                 string
		asked                []string
	}{
		"allowed":           {authorization: "Bearer good", code: http.StatusOK, text: "metrics", asked: both},
		"small letters":     {authorization: "bearer good", code: http.StatusOK, text: "metrics", asked: both},
		"not allowed":       {authorization: "Bearer other", code: http.StatusForbidden, text: `user "mallory" may not get /metrics: bind it to the ClusterRole machinist-metrics-reader`, asked: both},
		"unknown":           {authorization: "Bearer none", code: http.StatusUnauthorized, text: "does not know the token", asked: both[:1]},
		"none":              {code: http.StatusUnauthorized, text: "no bearer token"},
		"empty":             {authorization: "Bearer ", code: http.StatusUnauthorized, text: "no bearer token"},
		"another scheme":    {authorization: "Basic good", code: http.StatusUnauthorized, text: "no bearer token"},
		"no token reviews":  {authorization: "Bearer good", fails: "tokenreviews", code: http.StatusServiceUnavailable, text: "cannot review the token now", asked: both[:1]},
		"no access reviews": {authorization: "Bearer good", fails: "subjectaccessreviews", code: http.StatusServiceUnavailable, text: "cannot review the token now", asked: both},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t)
			r.fails = tc.fails
			recorder := r.get(t, tc.authorization)
			require.Equal(t, tc.code, recorder.Code, recorder.Body)
			require.Contains(t, recorder.Body.String(), tc.text)
			require.Equal(t, tc.asked, r.requests())
			require.Equal(t, tc.code == http.StatusUnauthorized, recorder.Header().Get("WWW-Authenticate") == "Bearer")
			require.NotContains(t, r.logs.String(), "good", "no token is logged")
			require.Equal(t, tc.fails != "", strings.Contains(r.logs.String(), "did not review a token"))
		})
	}
}

func TestAuthorizer_User_AskedForWithAllOfIt(t *testing.T) {
	r := newReviewer(t)
	require.Equal(t, http.StatusOK, r.get(t, "Bearer good").Code)
	require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
		User: "prometheus", UID: "u", Groups: []string{"scrapers"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}, r.spec)
}

func TestAuthorizer_Answers_RememberedForAWhile(t *testing.T) {
	r := newReviewer(t)
	ask := func(token string, code, requests int) {
		t.Helper()
		require.Equal(t, code, r.get(t, "Bearer "+token).Code)
		require.Len(t, r.requests(), requests)
	}
	ask("good", http.StatusOK, 2)
	ask("good", http.StatusOK, 0)
	ask("other", http.StatusForbidden, 2)
	ask("other", http.StatusForbidden, 0)
	r.clock.Step(deniedFor + time.Second)
	r.allowed["mallory"] = true
	ask("other", http.StatusOK, 2)
	ask("good", http.StatusOK, 0)
	r.clock.Step(allowedFor)
	r.users["good"] = authenticationv1.UserInfo{}
	ask("good", http.StatusUnauthorized, 1)
	r.users["good"] = authenticationv1.UserInfo{Username: "prometheus"}
	ask("good", http.StatusUnauthorized, 0)
	for _, token := range []string{"a", "b"} { // as many as are remembered here
		ask(token, http.StatusUnauthorized, 1)
	}
	ask("good", http.StatusOK, 2)
	r.fails = "tokenreviews"
	ask("c", http.StatusServiceUnavailable, 1)
	ask("c", http.StatusServiceUnavailable, 1)
}

func TestAuthorizer_ManyReviews_RefusedBeyondTheLimit(t *testing.T) {
	r := newReviewer(t)
	r.hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(r.hold) })
	defer release()
	var asking sync.WaitGroup
	for range reviewsAtATime {
		asking.Go(func() { r.get(t, "Bearer good") })
	}
	require.Eventually(t, func() bool { return len(r.reviews) == reviewsAtATime }, 10*time.Second, time.Millisecond)
	recorder := r.get(t, "Bearer other")
	require.Equal(t, http.StatusServiceUnavailable, recorder.Code)
	require.Contains(t, recorder.Body.String(), "4 tokens are being reviewed")
	release()
	asking.Wait()
	require.Equal(t, http.StatusForbidden, r.get(t, "Bearer other").Code)
}
