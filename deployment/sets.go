// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// templateHash returns the value of the template hash label of a new set: the 32-bit FNV-1a hash,
// in decimal, of the [rollout.Generation] as JSON and of the collision count. Equal templates have the same
// hash. Sets are not found by this label. Its value is not that of MCM.
func templateHash(t v1alpha1.MachineTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	// A template can always be encoded. Otherwise the names would collide, and the collision count
	// would distinguish them.
	if text, err := json.Marshal(rollout.Generation(t)); err == nil {
		_, _ = h.Write(text)
	}
	if collisions != nil {
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions)) //nolint:gosec // the value may wrap
		_, _ = h.Write(count[:])
	}
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

// setName returns the name of a new set: the name of the deployment and five characters of the
// encoded hash. The name of the deployment is cut if the result is too long.
func setName(deployment, hash string) string {
	const suffixLen = 5
	suffix := rand.SafeEncodeString(hash)
	suffix = "-" + suffix[:min(len(suffix), suffixLen)]
	return deployment[:min(len(deployment), validation.DNS1123SubdomainMaxLength-len(suffix))] + suffix
}

// buildSet returns the new set of a deployment. Its name follows from the template and the
// collision count, so that a second creation fails.
func buildSet(d *v1alpha1.MachineDeployment, old []*v1alpha1.MachineSet, replicas int32) *v1alpha1.MachineSet {
	spec := d.Spec.DeepCopy()
	hash := templateHash(spec.Template, d.Status.CollisionCount)
	s := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            setName(d.Name, hash),
			Namespace:       d.Namespace,
			Labels:          withHash(spec.Template.Labels, hash),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas:                     replicas,
			Selector:                     spec.Selector,
			Template:                     spec.Template,
			MinReadySeconds:              spec.MinReadySeconds,
			AutoPreserveFailedMachineMax: spec.AutoPreserveFailedMachineMax,
		},
	}
	if s.Spec.Selector == nil {
		s.Spec.Selector = &metav1.LabelSelector{}
	}
	s.Spec.Selector.MatchLabels = withHash(s.Spec.Selector.MatchLabels, hash)
	s.Spec.Template.Labels = withHash(s.Spec.Template.Labels, hash)
	s.Annotations, _ = rollout.NewSetAnnotations(d, nil, rollout.NextRevision(old), false)
	return s
}

func withHash(labels map[string]string, hash string) map[string]string {
	return k8slabels.Merge(labels, k8slabels.Set{v1alpha1.DefaultMachineDeploymentUniqueLabelKey: hash})
}

// configuration is the name of the fields that all sets of a deployment get from it.
const configuration = "machine configuration"

// propagated returns a copy of the new set with the fields that change without a rollout, and the
// names of those that differ. They are the annotations and the revision (see [rollout.NewSetAnnotations]),
// node template, machine configuration, class kind, minReadySeconds and
// autoPreserveFailedMachineMax. The copy is nil if nothing differs.
//
// Old sets keep these fields, as in MCM, and a rollback restores them. Only the machine
// configuration reaches old sets with machines: see [reconfigured].
func propagated(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) (*v1alpha1.MachineSet, []string) {
	s, from := newSet.DeepCopy(), d.Spec.DeepCopy()
	annotations, changed := rollout.NewSetAnnotations(d, s, rollout.NextRevision(old), true)
	have, want := &s.Spec.Template.Spec, &from.Template.Spec
	var differs []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"annotations", !changed},
		{"node template", apiequality.Semantic.DeepEqual(have.NodeTemplateSpec, want.NodeTemplateSpec)},
		{configuration, apiequality.Semantic.DeepEqual(have.MachineConfiguration, want.MachineConfiguration)},
		{"class kind", have.Class.Kind == want.Class.Kind},
		{"minReadySeconds", s.Spec.MinReadySeconds == from.MinReadySeconds},
		{"autoPreserveFailedMachineMax", s.Spec.AutoPreserveFailedMachineMax == from.AutoPreserveFailedMachineMax},
	} {
		if !part.same {
			differs = append(differs, part.name)
		}
	}
	if len(differs) == 0 {
		return nil, nil
	}
	if changed {
		s.Annotations = annotations
	}
	have.NodeTemplateSpec, have.MachineConfiguration, have.Class.Kind = want.NodeTemplateSpec, want.MachineConfiguration, want.Class.Kind
	s.Spec.MinReadySeconds, s.Spec.AutoPreserveFailedMachineMax = from.MinReadySeconds, from.AutoPreserveFailedMachineMax
	return s, differs
}

// reconfigured returns a copy of a set with the machine configuration of its deployment, or nil if the
// set has it or needs none. A machine reads its timeouts after it has failed and while it is being
// deleted, whichever template it was made from. An empty set keeps its configuration for a rollback.
func reconfigured(d *v1alpha1.MachineDeployment, s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	want := d.Spec.Template.Spec.MachineConfiguration
	if s.Spec.Replicas == 0 && s.Status.Replicas == 0 || apiequality.Semantic.DeepEqual(s.Spec.Template.Spec.MachineConfiguration, want) {
		return nil
	}
	next := s.DeepCopy()
	next.Spec.Template.Spec.MachineConfiguration = want.DeepCopy()
	return next
}

// surplusSets returns the old sets to delete, oldest first. The youngest sets, up to the limit, are
// kept, and so are those with replicas, with machines or with an outdated status. A nil limit keeps
// all. A negative one counts as 0.
func surplusSets(old []*v1alpha1.MachineSet, limit *int32) []*v1alpha1.MachineSet {
	if limit == nil {
		return nil
	}
	candidates := slices.DeleteFunc(rollout.ByCreation(old), func(s *v1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil })
	tooMany := max(0, len(candidates)-int(max(0, *limit)))
	return slices.DeleteFunc(candidates[:tooMany], func(s *v1alpha1.MachineSet) bool {
		return s.Spec.Replicas != 0 || s.Status.Replicas != 0 || !observed(s)
	})
}

// observed reports whether the status of a set is of its present spec.
func observed(s *v1alpha1.MachineSet) bool {
	return s.Status.ObservedGeneration >= s.Generation
}
