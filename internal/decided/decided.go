// SPDX-License-Identifier: Apache-2.0

// Package decided reads the actions of decisions, for the tests of packages that decide.
package decided

import "github.com/machinist-dev/machinist"

// Of returns the actions of a type.
func Of[T machinist.Action](actions []machinist.Action) []T {
	var out []T
	for _, a := range actions {
		if a, ok := a.(T); ok {
			out = append(out, a)
		}
	}
	return out
}

// Writes returns the new objects of the updates of objects of a type.
func Writes[T machinist.Object](actions []machinist.Action) []T {
	var out []T
	for _, u := range Of[machinist.Update](actions) {
		if o, ok := u.Object.(T); ok {
			out = append(out, o)
		}
	}
	return out
}

// After returns an object as actions leave it.
func After[T machinist.Object](before T, actions []machinist.Action) T {
	for _, next := range Writes[T](actions) {
		if next.GetName() == before.GetName() {
			return next
		}
	}
	return before
}

// Creates returns the objects of a type that are created.
func Creates[T machinist.Object](actions []machinist.Action) []T {
	var out []T
	for _, c := range Of[machinist.Create](actions) {
		if o, ok := c.Object.(T); ok {
			out = append(out, o)
		}
	}
	return out
}

// Deletes returns the names of the objects that are deleted.
func Deletes(actions []machinist.Action) []string {
	var out []string
	for _, d := range Of[machinist.Delete](actions) {
		out = append(out, d.Object.GetName())
	}
	return out
}
