// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
)

// checkOptions refuses malformed options of a request.
func checkOptions(action clienttesting.Action) error {
	var name string
	var errs field.ErrorList
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		if _, err := parseVersion(a.GetOptions.ResourceVersion); err != nil {
			return internal(err.Error())
		}
	case clienttesting.ListActionImpl:
		name, errs = "ListOptions", checkVersionMatch(a.ListOptions)
	case clienttesting.CreateActionImpl:
		name, errs = "CreateOptions", metav1validation.ValidateCreateOptions(&a.CreateOptions)
	case clienttesting.UpdateActionImpl:
		name, errs = "UpdateOptions", metav1validation.ValidateUpdateOptions(&a.UpdateOptions)
	case clienttesting.PatchActionImpl:
		name, errs = "PatchOptions", metav1validation.ValidateDryRun(field.NewPath("dryRun"), a.PatchOptions.DryRun)
	case clienttesting.DeleteActionImpl:
		name, errs = "DeleteOptions", metav1validation.ValidateDeleteOptions(&a.DeleteOptions)
	case clienttesting.DeleteCollectionActionImpl:
		name, errs = "DeleteOptions", metav1validation.ValidateDeleteOptions(&a.DeleteOptions)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: name}, "", errs)
}

// checkVersionMatch refuses a rule for versions that makes no sense.
func checkVersionMatch(opts metav1.ListOptions) field.ErrorList {
	match, path := opts.ResourceVersionMatch, field.NewPath("resourceVersionMatch")
	switch {
	case match == "":
		return nil
	case opts.ResourceVersion == "":
		return field.ErrorList{field.Forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")}
	case match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan:
		return field.ErrorList{field.NotSupported(path, match, []metav1.ResourceVersionMatch{
			metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan,
		})}
	case match == metav1.ResourceVersionMatchExact && opts.ResourceVersion == "0":
		return field.ErrorList{field.Forbidden(path, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)}
	default:
		return nil
	}
}
