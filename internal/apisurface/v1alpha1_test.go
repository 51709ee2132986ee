// SPDX-License-Identifier: Apache-2.0

// Package apisurface_test holds the names that projects import from MCM, in the way in which they use them. If
// it stops compiling, so do they. The generator writes it once more with the import paths of MCM.
package apisurface_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The kinds and their lists.
var (
	_ = []runtime.Object{
		&v1alpha1.Machine{}, &v1alpha1.MachineClass{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{},
		&v1alpha1.MachineList{}, &v1alpha1.MachineClassList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{},
	}
	_ = []metav1.Object{&v1alpha1.Machine{}, &v1alpha1.MachineClass{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}}
	_ = []metav1.ListInterface{&v1alpha1.MachineList{}, &v1alpha1.MachineClassList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{}}

	_ func(*v1alpha1.Machine) *v1alpha1.Machine                                 = (*v1alpha1.Machine).DeepCopy
	_ func(*v1alpha1.MachineClass) *v1alpha1.MachineClass                       = (*v1alpha1.MachineClass).DeepCopy
	_ func(*v1alpha1.MachineSet) *v1alpha1.MachineSet                           = (*v1alpha1.MachineSet).DeepCopy
	_ func(*v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment             = (*v1alpha1.MachineDeployment).DeepCopy
	_ func(*v1alpha1.MachineStatus) *v1alpha1.MachineStatus                     = (*v1alpha1.MachineStatus).DeepCopy
	_ func(*v1alpha1.MachineDeploymentStatus) *v1alpha1.MachineDeploymentStatus = (*v1alpha1.MachineDeploymentStatus).DeepCopy

	_ func(*runtime.Scheme) error           = v1alpha1.AddToScheme
	_                                       = runtime.NewSchemeBuilder(v1alpha1.AddToScheme)
	_ runtime.SchemeBuilder                 = v1alpha1.SchemeBuilder
	_ schema.GroupVersion                   = v1alpha1.SchemeGroupVersion
	_ func(string) schema.GroupKind         = v1alpha1.Kind
	_ func(string) schema.GroupResource     = v1alpha1.Resource
	_ []v1alpha1.Machine                    = v1alpha1.MachineList{}.Items
	_ []v1alpha1.MachineClass               = v1alpha1.MachineClassList{}.Items
	_ []v1alpha1.MachineSet                 = v1alpha1.MachineSetList{}.Items
	_ []v1alpha1.MachineDeployment          = v1alpha1.MachineDeploymentList{}.Items
	_ []v1alpha1.MachineSetCondition        = v1alpha1.MachineSetStatus{}.Conditions
	_ *[]v1alpha1.MachineSummary            = v1alpha1.MachineSetStatus{}.FailedMachines
	_ []*v1alpha1.MachineSummary            = v1alpha1.MachineDeploymentStatus{}.FailedMachines
	_ corev1.NodeConditionType              = v1alpha1.NodeInPlaceUpdate
	_ corev1.NodeConditionType              = v1alpha1.NodePreserved
	_ corev1.NodeConditionType              = v1alpha1.NodeTerminationCondition
	_ v1alpha1.ConditionStatus              = v1alpha1.ConditionTrue
	_ []v1alpha1.MachineDeploymentCondition = v1alpha1.MachineDeploymentStatus{}.Conditions
)

// The literals that extensions, autoscalers and tests write: every field by its
// name, with its type.
var (
	_ = v1alpha1.Machine{
		TypeMeta: metav1.TypeMeta{}, ObjectMeta: metav1.ObjectMeta{},
		Spec: v1alpha1.MachineSpec{
			Class:            v1alpha1.ClassSpec{APIGroup: "", Kind: v1alpha1.MachineClassKind, Name: ""},
			ProviderID:       "",
			NodeTemplateSpec: v1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{}, Spec: corev1.NodeSpec{}},
			MachineConfiguration: &v1alpha1.MachineConfiguration{
				MachineDrainTimeout: &metav1.Duration{}, MachineHealthTimeout: &metav1.Duration{}, MachineCreationTimeout: &metav1.Duration{},
				MachineInPlaceUpdateTimeout: &metav1.Duration{}, MachinePreserveTimeout: &metav1.Duration{},
				DisableHealthTimeout: new(bool), MaxEvictRetries: new(int32), NodeConditions: new(string),
			},
		},
		Status: v1alpha1.MachineStatus{
			Addresses: []corev1.NodeAddress{}, Conditions: []corev1.NodeCondition{}, LastKnownState: "",
			LastOperation: v1alpha1.LastOperation{
				Description: "", ErrorCode: "", LastUpdateTime: metav1.Time{}, State: v1alpha1.MachineStateFailed, Type: v1alpha1.MachineOperationCreate,
			},
			CurrentStatus: v1alpha1.CurrentStatus{
				Phase: v1alpha1.MachineRunning, TimeoutActive: false, LastUpdateTime: metav1.Time{}, PreserveExpiryTime: &metav1.Time{},
			},
		},
	}

	_ = v1alpha1.MachineClass{
		TypeMeta: metav1.TypeMeta{}, ObjectMeta: metav1.ObjectMeta{}, CredentialsSecretRef: &corev1.SecretReference{}, SecretRef: &corev1.SecretReference{},
		ProviderSpec: runtime.RawExtension{Raw: []byte{}}, Provider: "",
		NodeTemplate: &v1alpha1.NodeTemplate{
			Capacity: corev1.ResourceList{"gpu": resource.Quantity{}}, VirtualCapacity: corev1.ResourceList{},
			InstanceType: "", Region: "", Zone: "", Architecture: new(string),
		},
	}

	_ = v1alpha1.MachineSet{
		TypeMeta: metav1.TypeMeta{}, ObjectMeta: metav1.ObjectMeta{},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: int32(0), Selector: &metav1.LabelSelector{}, MachineClass: v1alpha1.ClassSpec{},
			Template:        v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{}, Spec: v1alpha1.MachineSpec{}},
			MinReadySeconds: int32(0), AutoPreserveFailedMachineMax: int32(0),
		},
		Status: v1alpha1.MachineSetStatus{
			Replicas: int32(0), FullyLabeledReplicas: int32(0), ReadyReplicas: int32(0), AvailableReplicas: int32(0),
			PreservedFailedReplicas: int32(0), AutoPreserveFailedMachineCount: int32(0), ObservedGeneration: int64(0),
			LastOperation: v1alpha1.LastOperation{}, FailedMachines: &[]v1alpha1.MachineSummary{},
			Conditions: []v1alpha1.MachineSetCondition{{
				Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, LastTransitionTime: metav1.Time{}, Reason: "", Message: "",
			}},
		},
	}

	_ = v1alpha1.MachineDeployment{
		TypeMeta: metav1.TypeMeta{}, ObjectMeta: metav1.ObjectMeta{},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: int32(0), Selector: &metav1.LabelSelector{}, Template: v1alpha1.MachineTemplateSpec{},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxUnavailable: &intstr.IntOrString{}, MaxSurge: &intstr.IntOrString{}},
				},
				InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{}, OrchestrationType: v1alpha1.OrchestrationTypeManual,
				},
			},
			MinReadySeconds: int32(0), RevisionHistoryLimit: new(int32), Paused: false, RollbackTo: &v1alpha1.RollbackConfig{Revision: int64(0)},
			ProgressDeadlineSeconds: new(int32), AutoPreserveFailedMachineMax: int32(0),
		},
		Status: v1alpha1.MachineDeploymentStatus{
			ObservedGeneration: int64(0), Replicas: int32(0), UpdatedReplicas: int32(0), ReadyReplicas: int32(0), AvailableReplicas: int32(0),
			UnavailableReplicas: int32(0), PreservedFailedReplicas: int32(0), CollisionCount: new(int32),
			FailedMachines: []*v1alpha1.MachineSummary{{Name: "", ProviderID: "", LastOperation: v1alpha1.LastOperation{}, OwnerRef: ""}},
			Conditions: []v1alpha1.MachineDeploymentCondition{{
				Type: v1alpha1.MachineDeploymentAvailable, Status: v1alpha1.ConditionUnknown, LastUpdateTime: metav1.Time{},
				LastTransitionTime: metav1.Time{}, Reason: "", Message: "",
			}},
		},
	}
)

// Fields that are read without a detour through the embedded struct.
var (
	_ map[string]string   = v1alpha1.NodeTemplateSpec{}.Labels
	_ map[string]string   = v1alpha1.MachineTemplateSpec{}.Annotations
	_ *intstr.IntOrString = v1alpha1.RollingUpdateMachineDeployment{}.MaxSurge
	_ *intstr.IntOrString = v1alpha1.InPlaceUpdateMachineDeployment{}.MaxUnavailable
	_ string              = v1alpha1.Machine{}.Name

	_ = func(s v1alpha1.MachineSpec) *metav1.Duration { return s.MachineDrainTimeout }
)
