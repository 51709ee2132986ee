// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// replicasAnnotation has the replicas of the Deployment before the checks. It outlives a test that was killed.
	replicasAnnotation = "machinist.dev/replicas-before-test"
	// ignoreAnnotation keeps Gardener's dependency watchdog from scaling the Deployment up.
	ignoreAnnotation = "dependency-watchdog.gardener.cloud/ignore-scaling"
)

// pauseDeployment scales the Deployment to 0, and waits until its pods are deleted.
func (s *Suite) pauseDeployment(ctx context.Context) error {
	var selector string
	err := s.changeDeployment(ctx, func(d *appsv1.Deployment) error {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		if d.Annotations[replicasAnnotation] == "" {
			d.Annotations[replicasAnnotation] = strconv.Itoa(int(ptr.Deref(d.Spec.Replicas, 1)))
			_, s.keepIgnored = d.Annotations[ignoreAnnotation]
		}
		if !s.keepIgnored {
			d.Annotations[ignoreAnnotation] = "true"
		}
		d.Spec.Replicas = ptr.To(int32(0))
		parsed, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil {
			selector = parsed.String()
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.wait(ctx, "the end of the pods of deployment "+s.o.Deployment, func(ctx context.Context) (string, error) {
		pods, err := s.control.CoreV1().Pods(s.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(pods.Items) == 0 {
			return "", err
		}
		return fmt.Sprintf("pod %s exists", pods.Items[0].Name), nil
	})
}

// restoreDeployment undoes pauseDeployment. A Deployment that is not paused stays.
func (s *Suite) restoreDeployment(ctx context.Context) error {
	if s.o.Deployment == "" || s.control == nil {
		return nil
	}
	return s.changeDeployment(ctx, func(d *appsv1.Deployment) error {
		before := d.Annotations[replicasAnnotation]
		if before == "" {
			return nil
		}
		replicas, err := strconv.ParseInt(before, 10, 32)
		if err != nil {
			return fmt.Errorf("annotation %s: %w", replicasAnnotation, err)
		}
		d.Spec.Replicas = ptr.To(int32(replicas))
		delete(d.Annotations, replicasAnnotation)
		if !s.keepIgnored {
			delete(d.Annotations, ignoreAnnotation)
		}
		return nil
	})
}

func (s *Suite) changeDeployment(ctx context.Context, change func(*appsv1.Deployment) error) error {
	api := s.control.AppsV1().Deployments(s.o.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d, err := api.Get(ctx, s.o.Deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(d); err != nil {
			return err
		}
		_, err = api.Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %w", s.o.Namespace, s.o.Deployment, err)
	}
	return nil
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// install applies the definitions of the machine objects, and remembers those that did not exist.
func (s *Suite) install(ctx context.Context) error {
	var missing []string
	for _, crd := range v1alpha1.CRDs() {
		_, err := s.definitions.Resource(definitions).Get(ctx, crd.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, crd.Name)
		case err != nil:
			return fmt.Errorf("definition %s: %w", crd.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	s.installed = missing
	if err := install.Definitions(ctx, s.definitions); err != nil {
		return fmt.Errorf("definitions: %w", err)
	}
	return nil
}

// removeDefinitions deletes the definitions that install has created, unless objects of any namespace need them.
func (s *Suite) removeDefinitions(ctx context.Context) error {
	if s.o.KeepDefinitions {
		return nil
	}
	var errs []error
	for _, name := range s.installed {
		resource, _, _ := strings.Cut(name, ".")
		objects, err := s.definitions.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // it was not created, or is deleted already
		case err != nil:
			errs = append(errs, fmt.Errorf("definition %s stays: %w", name, err))
		case len(objects.Items) > 0:
			errs = append(errs, fmt.Errorf("definition %s stays: %s/%s exists", name, objects.Items[0].GetNamespace(), objects.Items[0].GetName()))
		default:
			errs = append(errs, s.removeDefinition(ctx, name))
		}
	}
	return errors.Join(errs...)
}

func (s *Suite) removeDefinition(ctx context.Context, name string) error {
	if err := ignoreNotFound(s.definitions.Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
		return err
	}
	return s.wait(ctx, "the deletion of definition "+name, func(ctx context.Context) (string, error) {
		_, err := s.definitions.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return "it exists", nil
		}
		return "", ignoreNotFound(err)
	})
}
