// SPDX-License-Identifier: Apache-2.0

package deployment

import "github.com/machinist-dev/machinist/internal/rollout"

// What the tests look at of the inside.
var (
	ConditionOf  = rollout.Condition
	TemplateHash = templateHash
	BuildSet     = buildSet
	SetName      = setName
	ErrScaleDown = errScaleDown
)

const (
	NamedAnnotation   = namedAnnotation
	CountedAnnotation = countedAnnotation
)
