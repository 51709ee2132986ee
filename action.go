// SPDX-License-Identifier: Apache-2.0

package machinist

import (
	"fmt"
	"reflect"
	"strings"
)

// Action is one effect that a decision asks for. [Update], [Create], [Delete] and [Refresh] are the
// requests to an API server, the same for all packages. A package adds actions of its own for
// effects that only it has, such as a driver call, and documents which actions its decisions have.
// A caller that does not know an action returns an error.
//
// Every action may be lost, and may be repeated because of its precondition. A conflict is not an
// error: the precondition no longer holds, and the next decision uses the newer object.
type Action interface {
	// String returns the action in one line, for people.
	fmt.Stringer
}

// Object is an object of the Kubernetes API. All typed objects implement it, and metav1.Object,
// which has the UID and the resource version of the preconditions.
type Object interface {
	// GetNamespace returns the namespace, empty for an object without one.
	GetNamespace() string
	// GetName returns the name.
	GetName() string
}

// Update writes an object. Its precondition is the UID of Before, so that no other object of the
// same name is written.
type Update struct {
	// Before is the observed object. Do not modify it.
	Before Object
	// Object is the new object, with the resource version of Before. The caller may modify it.
	Object Object
	// Subresource is "status", or empty for metadata and spec. Nothing else differs between Before
	// and Object, except that annotations of a Node are written with its status.
	Subresource string
	// Unchanged means that the resource version of Before is a precondition too. Otherwise the
	// differences are written as a patch, so that writes of others to other fields do not conflict.
	Unchanged bool
	// Changes are what differs and why, for people.
	Changes []string
	// Report is the Event to report once the update has succeeded. Nil means none.
	Report *Event
}

// Create creates objects.
type Create struct {
	// Object is the new object. The caller may modify it. An object without a name is named by the
	// caller, as the package describes.
	Object Object
	// Count is how many objects without a name are created. Zero means 1.
	Count int
	// Message is why, for people.
	Message string
	// Report is the Event to report once the creation has succeeded. Nil means none.
	Report *Event
}

// Delete deletes an object. Its precondition is the UID of Object.
type Delete struct {
	// Object is the observed object. Do not modify it.
	Object Object
	// Unchanged means that the resource version of Object is a precondition too.
	Unchanged bool
	// Reason is why. Empty if the reason of the decision says it.
	Reason Reason
	// Message is why, for people.
	Message string
}

// Refresh reads objects from the API server, because those of a cache may be old. The package
// describes what the caller does with the result.
type Refresh struct {
	// Kind is the kind of the objects, such as "Node".
	Kind string
	// Name is the name of one object. Empty means all objects of this kind that belong to the object
	// of the decision.
	Name string
}

// String returns the kind and name of the object and the changes.
func (u Update) String() string {
	of := ""
	if u.Subresource != "" {
		of = u.Subresource + " of "
	}
	return withReasons("update "+of+named(u.Object), "; ", u.Changes...)
}

// String returns the kind of the objects, the name or the number, and why.
func (c Create) String() string {
	what := named(c.Object)
	if c.Object != nil && c.Object.GetName() == "" {
		what = fmt.Sprintf("%d %s", max(c.Count, 1), kind(c.Object))
		if c.Count > 1 {
			what += "s"
		}
	}
	return withReasons("create "+what, "", c.Message)
}

// String returns the kind and name of the object, and why.
func (d Delete) String() string {
	return withReasons("delete "+named(d.Object), ": ", string(d.Reason), d.Message)
}

// String returns the kind and name of the object.
func (r Refresh) String() string {
	if r.Name == "" {
		return "list each " + strings.ToLower(r.Kind) + " from the API server"
	}
	return fmt.Sprintf("read %s %s from the API server", strings.ToLower(r.Kind), r.Name)
}

// MarshalText returns [Update.String]: JSON names objects and does not contain them, so that the
// data of a Secret stays hidden. It never fails.
func (u Update) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalText returns [Create.String], as [Update.MarshalText] does.
func (c Create) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalText returns [Delete.String], as [Update.MarshalText] does.
func (d Delete) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// named returns the kind and the name of an object.
func named(o Object) string {
	if o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil() {
		return "object"
	}
	return kind(o) + " " + o.GetName()
}

// kind returns the name of the type of an object in lower case, which is its kind.
func kind(o Object) string {
	return strings.ToLower(reflect.Indirect(reflect.ValueOf(o)).Type().Name())
}

// withReasons returns text and the reasons that are not empty.
func withReasons(text, separator string, reasons ...string) string {
	var why []string
	for _, r := range reasons {
		if r != "" {
			why = append(why, r)
		}
	}
	if len(why) == 0 {
		return text
	}
	return text + ": " + strings.Join(why, separator)
}
