// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// jsonRow is a type with the bytes of its zero value and of a value that sets
// every field. MCM writes the same bytes: other programs compare them,
// compress them and compute checksums of them. A zero metav1.Time is null.
type jsonRow struct {
	of         reflect.Type
	zero, full string
}

func row[T any](zero, full string) jsonRow { return jsonRow{reflect.TypeFor[T](), zero, full} }

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

// An object begins with its metadata or with its kind, as in MCM.
const (
	fullTypeMeta   = `"kind":"K","apiVersion":"machine.sapcloud.io/v1alpha1"`
	fullMachine    = `{"metadata":` + fullMetadata + `,` + fullTypeMeta + `,"spec":` + fullSpec + `,"status":` + fullStatus + `}`
	fullSet        = `{"metadata":` + fullMetadata + `,` + fullTypeMeta + `,"spec":` + fullSetSpec + `,"status":` + fullSetStatus + `}`
	fullDeployment = `{` + fullTypeMeta + `,"metadata":` + fullMetadata + `,"spec":` + fullDepSpec + `,"status":` + fullDepStatus + `}`
	fullClass      = `{` + fullTypeMeta + `,"metadata":` + fullMetadata + `,` + fullClassFields + `}`
	fullListMeta   = `{` + fullTypeMeta + `,"metadata":{"resourceVersion":"1"},"items":[`
)

const zeroList = `{"metadata":{},"items":null}`

var jsonRows = []jsonRow{
	row[v1alpha1.Machine](zeroMachine, fullMachine),
	row[v1alpha1.MachineSet](zeroSet, fullSet),
	row[v1alpha1.MachineDeployment](zeroDeployment, fullDeployment),
	row[v1alpha1.MachineClass](zeroClass, fullClass),
	row[v1alpha1.MachineList](zeroList, fullListMeta+fullMachine+`]}`),
	row[v1alpha1.MachineSetList](zeroList, fullListMeta+fullSet+`]}`),
	row[v1alpha1.MachineDeploymentList](zeroList, fullListMeta+fullDeployment+`]}`),
	row[v1alpha1.MachineClassList](zeroList, fullListMeta+fullClass+`]}`),
	row[v1alpha1.MachineSpec](zeroTemplateSpec, fullSpec),
	row[v1alpha1.MachineConfiguration](`{}`, `{`+fullConfig+`}`),
	row[v1alpha1.ClassSpec](`{}`, fullClassSpec),
	row[v1alpha1.NodeTemplateSpec](`{"metadata":{},"spec":{}}`, fullNodeTemplate),
	row[v1alpha1.MachineTemplateSpec](zeroTemplate, fullTemplate),
	row[v1alpha1.MachineStatus](`{"lastOperation":`+zeroOperation+`,"currentStatus":`+zeroOperation+`}`, fullStatus),
	row[v1alpha1.LastOperation](zeroOperation, fullOperation),
	row[v1alpha1.CurrentStatus](zeroOperation, fullCurrent),
	row[v1alpha1.MachineSummary](`{"lastOperation":`+zeroOperation+`}`, fullSummary),
	row[v1alpha1.MachineSetSpec](`{"machineClass":{},"template":`+zeroTemplate+`}`, fullSetSpec),
	row[v1alpha1.MachineSetStatus](`{"lastOperation":`+zeroOperation+`}`, fullSetStatus),
	row[v1alpha1.MachineSetCondition](`{"type":"","status":"","lastTransitionTime":null}`, fullSetCondition),
	row[v1alpha1.MachineDeploymentSpec](`{"template":`+zeroTemplate+`,"strategy":{}}`, fullDepSpec),
	row[v1alpha1.MachineDeploymentStatus](`{}`, fullDepStatus),
	row[v1alpha1.MachineDeploymentCondition](`{"type":"","status":"","lastUpdateTime":null,"lastTransitionTime":null}`, fullDepCondition),
	row[v1alpha1.MachineDeploymentStrategy](`{}`, fullStrategy),
	row[v1alpha1.RollingUpdateMachineDeployment](`{}`, `{`+fullBounds+`}`),
	row[v1alpha1.InPlaceUpdateMachineDeployment](`{}`, `{`+fullBounds+`,"orchestrationType":"Manual"}`),
	row[v1alpha1.UpdateConfiguration](`{}`, `{`+fullBounds+`}`),
	row[v1alpha1.RollbackConfig](`{}`, `{"revision":3}`),
	row[v1alpha1.NodeTemplate](`{"capacity":null,"instanceType":"","region":"","zone":""}`, fullClassTemplate),
}

func TestJSON_EveryType_SameBytesAsMCM(t *testing.T) {
	t.Parallel()
	covered := map[reflect.Type]bool{}
	for _, row := range jsonRows {
		covered[row.of] = true
		t.Run(row.of.Name(), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.zero, encoded(t, reflect.Zero(row.of).Interface()))
			for _, data := range []string{row.zero, row.full} {
				back := reflect.New(row.of)
				d := json.NewDecoder(strings.NewReader(data))
				d.DisallowUnknownFields()
				require.NoError(t, d.Decode(back.Interface()))
				require.Equal(t, data, encoded(t, back.Interface()))
				if data == row.full {
					require.Empty(t, unsetFields(row.of.Name(), back.Elem()), "the full value sets every field")
				}
			}
		})
	}
	for typ := range structsOfTheAPI(t) {
		require.True(t, covered[typ], "%s has no row", typ)
	}
}

// otherKeys are the keys of fields that do not have their name as key.
var otherKeys = map[string]string{
	"ObjectMeta": "metadata", "ListMeta": "metadata", "NodeTemplateSpec": "nodeTemplate", "APIGroup": "apiGroup",
	"MachineDrainTimeout": "drainTimeout", "MachineHealthTimeout": "healthTimeout", "MachineCreationTimeout": "creationTimeout", "MachineInPlaceUpdateTimeout": "inPlaceUpdateTimeout",
	"MachineSetStatus.Conditions": "machineSetCondition", "MachineSetStatus.StandardConditions": "conditions", // MCM does not have the latter, and drops it
}

// TestJSON_EveryField_HasItsKey asserts that no two fields of a type have each other's key.
func TestJSON_EveryField_HasItsKey(t *testing.T) {
	for typ := range structsOfTheAPI(t) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if options == "inline" || field.Anonymous && key == "" {
				continue
			}
			want := cmp.Or(otherKeys[typ.Name()+"."+field.Name], otherKeys[field.Name], strings.ToLower(field.Name[:1])+field.Name[1:])
			require.Equal(t, want, key, "%s.%s", typ.Name(), field.Name)
		}
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
		for i := range typ.NumField() {
			field := typ.Field(i)
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
