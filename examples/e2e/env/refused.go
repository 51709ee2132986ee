// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// accounts are the service accounts of the programs.
var accounts = []string{manifests.ServiceAccount, manifests.MachineController, manifests.MachineControllerManager}

// ofManager reports whether a request came from a manager of the environment.
func (s *Env) ofManager(r controlplane.Request) bool {
	account, ours := strings.CutPrefix(r.User, "system:serviceaccount:"+s.ManagerNamespace()+":")
	return ours && slices.Contains(accounts, account)
}

// refusals are answers that no manager may get, whatever goes on around it: it has
// no business there (401, 403), or what it says makes no sense (400, 405, 415,
// 422).
var refusals = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
	http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
}

// Refused returns the requests of the managers that the API server refused for
// good: such as they must not make. Those that are forgiven are left out, and watches
// that ask for a list if the version of Kubernetes lacks that: clients make another request then.
func (s *Env) Refused(ctx context.Context) ([]controlplane.Request, error) {
	requests, err := s.Requests(ctx)
	if err != nil {
		return nil, err
	}
	withoutWatchList := s.Cluster.ControlPlane.Lacks(controlplane.WatchList) != ""
	return slices.DeleteFunc(requests, func(r controlplane.Request) bool {
		return !slices.Contains(refusals, r.Code) || withoutWatchList && r.WatchList && r.Code == http.StatusUnprocessableEntity || s.options.AllowDenied != nil && s.options.AllowDenied(r)
	}), nil
}

// Requests returns the requests of the managers so far, all that were answered
// before the call.
func (s *Env) Requests(ctx context.Context) ([]controlplane.Request, error) {
	s.mu.Lock()
	s.marks++
	mark := fmt.Sprintf("mark-%d", s.marks)
	s.mu.Unlock()
	// The log is behind; when it has this request, it has all that were before.
	_, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, mark, metav1.GetOptions{})
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	for {
		all, err := s.Cluster.ControlPlane.Requests()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(r controlplane.Request) bool { return r.Namespace == s.Namespace && r.Name == mark }) {
			return slices.DeleteFunc(all, func(r controlplane.Request) bool { return !s.ofManager(r) }), nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("the audit log is behind: %w", err)
		}
	}
}
