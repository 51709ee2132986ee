// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/machinist-dev/machinist/internal/runners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// object is a pointer to an API object of an informer.
type object interface {
	comparable
	metav1.Object
}

// on calls f for every addition, change and deletion of an object: see [runners.On].
func on[T object](informer cache.SharedIndexInformer, f func(before, after T)) {
	_ = runners.On(informer, func(before, after metav1.Object) { // fails only for a stopped informer
		b, was := before.(T)
		a, is := after.(T)
		if was || is {
			f(b, a)
		}
	})
}

// each returns a function that calls f with the object before and with the object after.
func each[T object](f func(T)) func(before, after T) {
	return func(before, after T) {
		var none T
		for _, o := range []T{before, after} {
			if o != none {
				f(o)
			}
		}
	}
}

// onDelete calls f with every deleted object.
func onDelete[T object](informer cache.SharedIndexInformer, f func(T)) {
	var none T
	on(informer, func(before, after T) {
		if after == none {
			f(before)
		}
	})
}

// orNil returns an object, or nil with an error.
func orNil[T any](o *T, err error) *T {
	if err != nil {
		return nil
	}
	return o
}
