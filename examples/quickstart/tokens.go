// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// joinedWithTokens checks in the history of the target cluster that Nodes joined with bootstrap
// tokens, and that all tokens were deleted.
func joinedWithTokens(history []draintest.Write) (string, error) {
	joined, made, left := 0, 0, 0
	count := func(o runtime.Object, isNode, isToken *int) {
		switch o := o.(type) {
		case *corev1.Node:
			*isNode++
		case *corev1.Secret:
			if o.Type == corev1.SecretTypeBootstrapToken {
				*isToken++
			}
		}
	}
	var other int
	for _, w := range history {
		switch {
		case w.Before == nil:
			count(w.After, &joined, &made)
		case w.After == nil:
			count(w.Before, &other, &left)
		}
	}
	switch left = made - left; {
	case joined == 0 || made < joined:
		return "", fmt.Errorf("%d Nodes joined with %d bootstrap tokens", joined, made)
	case left > 0:
		return "", fmt.Errorf("%d of %d bootstrap tokens were not deleted", left, made)
	}
	return fmt.Sprintf("%d Nodes joined, each with its own bootstrap token; all %d tokens were deleted", joined, made), nil
}
