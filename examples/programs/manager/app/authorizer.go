// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// The bounds of reviews. A token that is taken back may get the metrics for allowedFor more.
const (
	allowedFor     = time.Minute
	deniedFor      = 10 * time.Second
	reviewedTokens = 128
	reviewTime     = 5 * time.Second
	reviewsAtATime = 4
)

// metricsPath is the path that a caller has to be authorized for.
const metricsPath = "/metrics"

// authorizer asks the control cluster whether the bearer token of a request may get the metrics. It
// keeps answers for a while, by the hash of the token. It refuses a token if the control cluster
// cannot be asked. It is safe for concurrent use.
type authorizer struct {
	client  kubernetes.Interface
	log     *slog.Logger
	known   *cache.LRUExpireCache // of decisions
	reviews chan struct{}         // one for each review that runs
}

// decision is the answer to a request: an HTTP status and its reason.
type decision struct {
	code int
	text string
}

func newAuthorizer(client kubernetes.Interface, log *slog.Logger) *authorizer {
	return &authorizer{client: client, log: log, known: cache.NewLRUExpireCache(reviewedTokens), reviews: make(chan struct{}, reviewsAtATime)}
}

// guard returns a handler that serves authorized requests only. Others get 401 or 403, or 503 if
// the control cluster cannot be asked.
func (a *authorizer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		token = strings.TrimSpace(token)
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			refuse(w, decision{http.StatusUnauthorized, "the request has no bearer token"})
			return
		}
		if v := a.decide(r.Context(), token); v.code != http.StatusOK {
			refuse(w, v)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, v decision) {
	if v.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, v.text, v.code)
}

// decide returns the answer for a token.
func (a *authorizer) decide(ctx context.Context, token string) decision {
	key := sha256.Sum256([]byte(token))
	if v, ok := a.known.Get(key); ok {
		if v, ok := v.(decision); ok {
			return v
		}
	}
	select {
	case a.reviews <- struct{}{}:
		defer func() { <-a.reviews }()
	default:
		return decision{http.StatusServiceUnavailable, fmt.Sprintf("%d tokens are being reviewed, try again", reviewsAtATime)}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	v, err := a.review(ctx, token)
	if err != nil {
		a.log.Error("the control cluster did not review a token", "err", err)
		return decision{http.StatusServiceUnavailable, "the control cluster cannot review the token now: see the log of the manager"}
	}
	age := deniedFor
	if v.code == http.StatusOK {
		age = allowedFor
	}
	a.known.Add(key, v, age)
	return v
}

// review asks the control cluster for the user of a token, and whether that user may get the
// metrics.
func (a *authorizer) review(ctx context.Context, token string) (decision, error) {
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answered, err := a.client.AuthenticationV1().TokenReviews().Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return decision{}, err
	}
	if !answered.Status.Authenticated {
		return decision{http.StatusUnauthorized, "the control cluster does not know the token, or it has expired"}, nil
	}
	user := answered.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	access, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: metricsPath, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, err
	}
	if !access.Status.Allowed || access.Status.Denied {
		return decision{http.StatusForbidden, fmt.Sprintf("user %q may not get %s: bind it to the ClusterRole %s", user.Username, metricsPath, manifests.MetricsReader)}, nil
	}
	return decision{code: http.StatusOK}, nil
}
