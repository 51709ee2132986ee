// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// labelTaker takes the label by which machines are selected, and gives it back later. It
// is for one goroutine.
type labelTaker struct {
	s      *env.Env
	taken  map[string]time.Time // by machine
	thefts atomic.Int64
	failed []error
}

// round gives back what was taken long ago, and takes from the first machines that
// have it, but not from too many.
func (f *labelTaker) round(ctx context.Context, most int, long time.Duration) {
	list, err := f.s.Machines.MachineV1alpha1().Machines(f.s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		f.failed = append(f.failed, err)
		return
	}
	for i := range list.Items {
		m := &list.Items[i]
		at, taken := f.taken[m.Name]
		switch {
		case taken && time.Since(at) >= long:
			f.label(ctx, m.Name, "workers")
			delete(f.taken, m.Name)
		case !taken && most > 0 && m.DeletionTimestamp == nil:
			f.label(ctx, m.Name, "stolen")
			f.taken[m.Name] = time.Now()
			f.thefts.Add(1)
			most--
		}
	}
}

func (f *labelTaker) label(ctx context.Context, machine, value string) {
	_, err := f.s.Machines.MachineV1alpha1().Machines(f.s.Namespace).Patch(ctx, machine, mergePatch, []byte(`{"metadata":{"labels":{"name":"`+value+`"}}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.failed = append(f.failed, err)
	}
}
