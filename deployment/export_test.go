// SPDX-License-Identifier: Apache-2.0

package deployment

import "github.com/machinist-dev/machinist/machine/v1alpha1"

// What the tests look at of the inside.
var (
	ConditionOf   = conditionOf
	StageOf       = stageOf
	MovedMachine  = movedMachine
	TemplateHash  = templateHash
	BuildSet      = buildSet
	StatusOf      = statusOf
	SurplusSets   = surplusSets
	Propagated    = propagated
	RemovalsOf    = removals
	ErrNoNode     = errNoNode
	NoCapacityFor = lacksCapacity
	SetName       = setName
	ErrScaleDown  = errScaleDown
)

const (
	NamedAnnotation   = namedAnnotation
	CountedAnnotation = countedAnnotation
)

// MaxSurge returns how many machines an update may add to the replicas.
func MaxSurge(d *v1alpha1.MachineDeployment) int32 { b, _ := BoundsOf(d); return narrow(b.Surge) }

// MaxUnavailable returns how many of the replicas may be unavailable in an update.
func MaxUnavailable(d *v1alpha1.MachineDeployment) int32 {
	b, _ := BoundsOf(d)
	return narrow(b.Unavailable)
}
