// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// joinedWithTokens says from the history of the target cluster that Nodes have
// joined with bootstrap tokens, of which none is left.
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
		return "", fmt.Errorf("%d of %d bootstrap tokens are left", left, made)
	}
	return fmt.Sprintf("%d Nodes joined, each with a bootstrap token of its own; none of the %d tokens is left", joined, made), nil
}
