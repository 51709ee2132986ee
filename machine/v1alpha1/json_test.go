// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// jsonRow is a type with the bytes of its zero value and of a value that sets
// every field. MCM writes the same bytes: other programs compare them,
// compress them and compute checksums of them. A zero metav1.Time is null.
type jsonRow struct {
	zeroJSON string
	full     any
	fullJSON string
}

const (
	zeroTemplateSpec = `{"class":{},"nodeTemplate":{"metadata":{},"spec":{}}}`
	zeroTemplate     = `{"metadata":{},"spec":` + zeroTemplateSpec + `}`
	zeroOperation    = `{"lastUpdateTime":null}`
	fullMetadata     = `{"name":"n","labels":{"a":"b"}}`
	fullNodeTemplate = `{"metadata":` + fullMetadata + `,"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]}}`
	fullConfig       = `"drainTimeout":"1m0s","healthTimeout":"2m0s","creationTimeout":"3m0s","inPlaceUpdateTimeout":"4m0s",` +
		`"machinePreserveTimeout":"5m0s","disableHealthTimeout":true,"maxEvictRetries":7,"nodeConditions":"DiskPressure"`
	fullClassSpec = `{"apiGroup":"g","kind":"MachineClass","name":"small"}`
	fullSpec      = `{"class":` + fullClassSpec + `,"providerID":"p","nodeTemplate":` + fullNodeTemplate + `,` + fullConfig + `}`
	fullTemplate  = `{"metadata":` + fullMetadata + `,"spec":` + fullSpec + `}`
	fullOperation = `{"description":"d","errorCode":"Internal","lastUpdateTime":"2026-01-02T03:04:05Z","state":"Failed","type":"Create"}`
	fullCurrent   = `{"phase":"Pending","timeoutActive":true,"lastUpdateTime":"2026-01-02T03:04:05Z","preserveExpiryTime":"2026-01-02T03:04:05Z"}`
	fullSummary   = `{"name":"m","providerID":"p","lastOperation":` + fullOperation + `,"ownerRef":"s"}`
	fullSelector  = `{"matchLabels":{"a":"b"}}`
	fullBounds    = `"maxUnavailable":1,"maxSurge":"20%"`
	fullStatus    = `{"addresses":[{"type":"Hostname","address":"h"}],"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":null,"lastTransitionTime":null}],` +
		`"lastOperation":` + fullOperation + `,"currentStatus":` + fullCurrent + `,"lastKnownState":"k"}`
	fullSetSpec = `{"replicas":1,"selector":` + fullSelector + `,"machineClass":` + fullClassSpec + `,"template":` + fullTemplate +
		`,"minReadySeconds":2,"autoPreserveFailedMachineMax":3}`
	fullSetCondition = `{"type":"Frozen","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"r","message":"m"}`
	fullSetStatus    = `{"replicas":1,"fullyLabeledReplicas":2,"readyReplicas":3,"availableReplicas":4,"preservedFailedReplicas":5,"observedGeneration":6,` +
		`"machineSetCondition":[` + fullSetCondition + `],"conditions":[` + fullSetCondition + `],"lastOperation":` + fullOperation + `,"failedMachines":[` + fullSummary + `],"autoPreserveFailedMachineCount":7}`
	fullStrategy = `{"type":"InPlaceUpdate","rollingUpdate":{` + fullBounds + `},"inPlaceUpdate":{` + fullBounds + `,"orchestrationType":"Manual"}}`
	fullDepSpec  = `{"replicas":1,"selector":` + fullSelector + `,"template":` + fullTemplate + `,"strategy":` + fullStrategy +
		`,"minReadySeconds":2,"revisionHistoryLimit":7,"paused":true,"rollbackTo":{"revision":3},"progressDeadlineSeconds":7,"autoPreserveFailedMachineMax":4}`
	fullDepCondition = `{"type":"Progressing","status":"True","lastUpdateTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"r","message":"m"}`
	fullDepStatus    = `{"observedGeneration":1,"replicas":2,"updatedReplicas":3,"readyReplicas":4,"availableReplicas":5,"preservedFailedReplicas":6,` +
		`"unavailableReplicas":7,"conditions":[` + fullDepCondition + `],"collisionCount":7,"failedMachines":[` + fullSummary + `]}`
	fullClassTemplate = `{"capacity":{"cpu":"2"},"virtualCapacity":{"x/y":"1"},"instanceType":"i","region":"r","zone":"z","architecture":"arm64"}`
	fullSecret        = `{"name":"s","namespace":"n"}`
	zeroMachine       = `{"metadata":{},"spec":` + zeroTemplateSpec + `,"status":{"lastOperation":` + zeroOperation + `,"currentStatus":` + zeroOperation + `}}`
	zeroSet           = `{"metadata":{},"spec":{"machineClass":{},"template":` + zeroTemplate + `},"status":{"lastOperation":` + zeroOperation + `}}`
	zeroDeployment    = `{"metadata":{},"spec":{"template":` + zeroTemplate + `,"strategy":{}},"status":{}}`
	zeroClass         = `{"metadata":{},"providerSpec":null}`
	fullClassFields   = `"nodeTemplate":` + fullClassTemplate + `,"credentialsSecretRef":` + fullSecret + `,"providerSpec":{"a":1},"provider":"aws","secretRef":` + fullSecret
)

var (
	at       = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	metadata = metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}
	typeMeta = metav1.TypeMeta{Kind: "K", APIVersion: "machine.sapcloud.io/v1alpha1"}
	seven    = int32(7)
	config   = v1alpha1.MachineConfiguration{
		MachineDrainTimeout: minutes(1), MachineHealthTimeout: minutes(2), MachineCreationTimeout: minutes(3),
		MachineInPlaceUpdateTimeout: minutes(4), MachinePreserveTimeout: minutes(5),
		DisableHealthTimeout: new(true), MaxEvictRetries: &seven, NodeConditions: new("DiskPressure"),
	}
	classSpec    = v1alpha1.ClassSpec{APIGroup: "g", Kind: "MachineClass", Name: "small"}
	nodeTemplate = v1alpha1.NodeTemplateSpec{ObjectMeta: metadata, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}},
	}}
	spec      = v1alpha1.MachineSpec{Class: classSpec, ProviderID: "p", NodeTemplateSpec: nodeTemplate, MachineConfiguration: &config}
	template  = v1alpha1.MachineTemplateSpec{ObjectMeta: metadata, Spec: spec}
	operation = v1alpha1.LastOperation{Description: "d", ErrorCode: "Internal", LastUpdateTime: at, State: "Failed", Type: "Create"}
	current   = v1alpha1.CurrentStatus{Phase: "Pending", TimeoutActive: true, LastUpdateTime: at, PreserveExpiryTime: &at}
	summary   = v1alpha1.MachineSummary{Name: "m", ProviderID: "p", LastOperation: operation, OwnerRef: "s"}
	selector  = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	bounds    = v1alpha1.UpdateConfiguration{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromString("20%"))}
	status    = v1alpha1.MachineStatus{
		Addresses:     []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "h"}},
		Conditions:    []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		LastOperation: operation, CurrentStatus: current, LastKnownState: "k",
	}
	setSpec = v1alpha1.MachineSetSpec{
		Replicas: 1, Selector: selector, MachineClass: classSpec, Template: template, MinReadySeconds: 2, AutoPreserveFailedMachineMax: 3,
	}
	setCondition = v1alpha1.MachineSetCondition{Type: "Frozen", Status: "True", LastTransitionTime: at, Reason: "r", Message: "m"}
	setStatus    = v1alpha1.MachineSetStatus{
		Replicas: 1, FullyLabeledReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 4, PreservedFailedReplicas: 5, ObservedGeneration: 6,
		Conditions: []v1alpha1.MachineSetCondition{setCondition}, LastOperation: operation,
		StandardConditions: []v1alpha1.MachineSetCondition{setCondition}, // MCM has no such field, and drops it
		FailedMachines:     &[]v1alpha1.MachineSummary{summary}, AutoPreserveFailedMachineCount: 7,
	}
	rolling  = v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: bounds}
	inPlace  = v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: bounds, OrchestrationType: "Manual"}
	strategy = v1alpha1.MachineDeploymentStrategy{Type: "InPlaceUpdate", RollingUpdate: &rolling, InPlaceUpdate: &inPlace}
	depSpec  = v1alpha1.MachineDeploymentSpec{
		Replicas: 1, Selector: selector, Template: template, Strategy: strategy, MinReadySeconds: 2, RevisionHistoryLimit: &seven,
		Paused: true, RollbackTo: &v1alpha1.RollbackConfig{Revision: 3}, ProgressDeadlineSeconds: &seven, AutoPreserveFailedMachineMax: 4,
	}
	depCondition = v1alpha1.MachineDeploymentCondition{
		Type: "Progressing", Status: "True", LastUpdateTime: at, LastTransitionTime: at, Reason: "r", Message: "m",
	}
	depStatus = v1alpha1.MachineDeploymentStatus{
		ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 3, ReadyReplicas: 4, AvailableReplicas: 5, PreservedFailedReplicas: 6,
		UnavailableReplicas: 7, Conditions: []v1alpha1.MachineDeploymentCondition{depCondition}, CollisionCount: &seven,
		FailedMachines: []*v1alpha1.MachineSummary{&summary},
	}
	classTemplate = v1alpha1.NodeTemplate{
		Capacity:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		VirtualCapacity: corev1.ResourceList{"x/y": resource.MustParse("1")},
		InstanceType:    "i", Region: "r", Zone: "z", Architecture: new("arm64"),
	}
	secretRef = &corev1.SecretReference{Name: "s", Namespace: "n"}
	class     = v1alpha1.MachineClass{
		TypeMeta: typeMeta, ObjectMeta: metadata, NodeTemplate: &classTemplate, CredentialsSecretRef: secretRef,
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"a":1}`)}, Provider: "aws", SecretRef: secretRef,
	}
)

func minutes(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }

// An object begins with its metadata or with its kind, as in MCM.
const (
	fullTypeMeta   = `"kind":"K","apiVersion":"machine.sapcloud.io/v1alpha1"`
	fullMachine    = `{"metadata":` + fullMetadata + `,` + fullTypeMeta + `,"spec":` + fullSpec + `,"status":` + fullStatus + `}`
	fullSet        = `{"metadata":` + fullMetadata + `,` + fullTypeMeta + `,"spec":` + fullSetSpec + `,"status":` + fullSetStatus + `}`
	fullDeployment = `{` + fullTypeMeta + `,"metadata":` + fullMetadata + `,"spec":` + fullDepSpec + `,"status":` + fullDepStatus + `}`
	fullClass      = `{` + fullTypeMeta + `,"metadata":` + fullMetadata + `,` + fullClassFields + `}`
	fullListMeta   = `{` + fullTypeMeta + `,"metadata":{"resourceVersion":"1"},"items":[`
)

func jsonRows() []jsonRow {
	listMeta := metav1.ListMeta{ResourceVersion: "1"}
	machine := v1alpha1.Machine{ObjectMeta: metadata, TypeMeta: typeMeta, Spec: spec, Status: status}
	set := v1alpha1.MachineSet{ObjectMeta: metadata, TypeMeta: typeMeta, Spec: setSpec, Status: setStatus}
	deployment := v1alpha1.MachineDeployment{TypeMeta: typeMeta, ObjectMeta: metadata, Spec: depSpec, Status: depStatus}
	const zeroList = `{"metadata":{},"items":null}`
	return []jsonRow{
		{zeroMachine, machine, fullMachine},
		{zeroSet, set, fullSet},
		{zeroDeployment, deployment, fullDeployment},
		{zeroClass, class, fullClass},
		{zeroList, v1alpha1.MachineList{TypeMeta: typeMeta, ListMeta: listMeta, Items: []v1alpha1.Machine{machine}}, fullListMeta + fullMachine + `]}`},
		{zeroList, v1alpha1.MachineSetList{TypeMeta: typeMeta, ListMeta: listMeta, Items: []v1alpha1.MachineSet{set}}, fullListMeta + fullSet + `]}`},
		{zeroList, v1alpha1.MachineDeploymentList{TypeMeta: typeMeta, ListMeta: listMeta, Items: []v1alpha1.MachineDeployment{deployment}}, fullListMeta + fullDeployment + `]}`},
		{zeroList, v1alpha1.MachineClassList{TypeMeta: typeMeta, ListMeta: listMeta, Items: []v1alpha1.MachineClass{class}}, fullListMeta + fullClass + `]}`},
		{zeroTemplateSpec, spec, fullSpec},
		{`{}`, config, `{` + fullConfig + `}`},
		{`{}`, classSpec, fullClassSpec},
		{`{"metadata":{},"spec":{}}`, nodeTemplate, fullNodeTemplate},
		{zeroTemplate, template, fullTemplate},
		{`{"lastOperation":` + zeroOperation + `,"currentStatus":` + zeroOperation + `}`, status, fullStatus},
		{zeroOperation, operation, fullOperation},
		{zeroOperation, current, fullCurrent},
		{`{"lastOperation":` + zeroOperation + `}`, summary, fullSummary},
		{`{"machineClass":{},"template":` + zeroTemplate + `}`, setSpec, fullSetSpec},
		{`{"lastOperation":` + zeroOperation + `}`, setStatus, fullSetStatus},
		{`{"type":"","status":"","lastTransitionTime":null}`, setCondition, fullSetCondition},
		{`{"template":` + zeroTemplate + `,"strategy":{}}`, depSpec, fullDepSpec},
		{`{}`, depStatus, fullDepStatus},
		{`{"type":"","status":"","lastUpdateTime":null,"lastTransitionTime":null}`, depCondition, fullDepCondition},
		{`{}`, strategy, fullStrategy},
		{`{}`, rolling, `{` + fullBounds + `}`},
		{`{}`, inPlace, `{` + fullBounds + `,"orchestrationType":"Manual"}`},
		{`{}`, bounds, `{` + fullBounds + `}`},
		{`{}`, v1alpha1.RollbackConfig{Revision: 3}, `{"revision":3}`},
		{`{"capacity":null,"instanceType":"","region":"","zone":""}`, classTemplate, fullClassTemplate},
	}
}

func TestJSON_EveryType_SameBytesAsMCM(t *testing.T) {
	t.Parallel()
	covered := map[reflect.Type]bool{}
	for _, row := range jsonRows() {
		typ := reflect.TypeOf(row.full)
		covered[typ] = true
		t.Run(typ.Name(), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.zeroJSON, encoded(t, reflect.Zero(typ).Interface()))
			require.Equal(t, row.fullJSON, encoded(t, row.full))
			require.Empty(t, unsetFields(typ.Name(), reflect.ValueOf(row.full)), "the full value sets every field")
			for _, data := range []string{row.zeroJSON, row.fullJSON} {
				back := reflect.New(typ)
				require.NoError(t, json.Unmarshal([]byte(data), back.Interface()))
				require.Equal(t, data, encoded(t, back.Interface()))
			}
		})
	}
	for typ := range structsOfTheAPI(t) {
		require.True(t, covered[typ], "%s has no row", typ)
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// unsetFields returns the paths of the fields of our own types that are zero.
func unsetFields(path string, v reflect.Value) (unset []string) {
	for i := range v.NumField() {
		field := path + "." + v.Type().Field(i).Name
		value := v.Field(i)
		if value.IsZero() {
			unset = append(unset, field)
			continue
		}
		for value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		if value.Kind() == reflect.Struct && ours(value.Type()) {
			unset = append(unset, unsetFields(field, value)...)
		}
	}
	return unset
}

func ours(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[v1alpha1.Machine]().PkgPath() }

// structsOfTheAPI returns the struct types of this package that the registered
// kinds consist of.
func structsOfTheAPI(t *testing.T) map[reflect.Type]bool {
	found := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		typ = elem(typ)
		if typ.Kind() != reflect.Struct || !ours(typ) || found[typ] {
			return
		}
		found[typ] = true
		for field := range typ.Fields() {
			visit(field.Type)
		}
	}
	for _, typ := range newScheme(t).KnownTypes(v1alpha1.SchemeGroupVersion) {
		visit(typ)
	}
	return found
}

// elem strips pointers and lists off a type.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}
