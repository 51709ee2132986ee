// SPDX-License-Identifier: Apache-2.0

package deployment

// What the tests look at of the inside.
var (
	ConditionOf  = conditionOf
	TemplateHash = templateHash
	BuildSet     = buildSet
	SetName      = setName
	ErrScaleDown = errScaleDown
)

const (
	NamedAnnotation   = namedAnnotation
	CountedAnnotation = countedAnnotation
)
