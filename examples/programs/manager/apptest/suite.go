// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Suite is a provider with its controllers and clusters. [Open] returns one. It is not safe for concurrent use.
type Suite struct {
	o           Options
	control     kubernetes.Interface
	target      kubernetes.Interface
	machines    versioned.Interface
	definitions dynamic.Interface

	folder      string   // of the program that was built
	installed   []string // definitions that did not exist before
	controllers []*controller
	started     bool // all controllers were ready, so that there may be objects
	keepIgnored bool // the Deployment was ignored by the dependency watchdog before
	secret      *corev1.Secret
	resources   map[string]bool // of the cloud, before the first machine
	first       map[string]bool // Nodes before the first machine of the object that is checked
}

// errNotOpen means that a suite is nil, or a check the zero one.
var errNotOpen = errors.New("apptest: there is no suite, or no check: see Open and Checks")

// Open connects to the clusters, scales the Deployment to 0 or installs the definitions, starts the controllers and
// waits until they are ready, deletes what earlier checks have left, and creates the classes. If that fails, it
// undoes what it has done, and the error has the end of the logs of controllers that have ended.
func Open(ctx context.Context, o Options) (*Suite, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	s := &Suite{o: o}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("apptest: %w", errors.Join(err, s.Close(ctx)))
	}
	return s, nil
}

func (s *Suite) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.connect, s.findSecret, s.prepare, s.startControllers, s.removeObjects, s.createClasses, s.findResources,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the clients, and reads the Nodes and the namespace.
func (s *Suite) connect(ctx context.Context) error {
	control, err := clientcmd.BuildConfigFromFlags("", s.o.ControlKubeconfig)
	if err != nil {
		return fmt.Errorf("ControlKubeconfig: %w", err)
	}
	target, err := clientcmd.BuildConfigFromFlags("", s.o.TargetKubeconfig)
	if err != nil {
		return fmt.Errorf("TargetKubeconfig: %w", err)
	}
	if err := s.makeClients(control, target); err != nil {
		return err
	}
	if _, err := s.control.CoreV1().Namespaces().Get(ctx, s.o.Namespace, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("control cluster: namespace %s: %w", s.o.Namespace, err)
	}
	if _, err := s.nodes(ctx); err != nil {
		return fmt.Errorf("target cluster: %w", err)
	}
	return nil
}

func (s *Suite) makeClients(control, target *rest.Config) (err error) {
	if s.control, err = kubernetes.NewForConfig(control); err != nil {
		return err
	}
	if s.target, err = kubernetes.NewForConfig(target); err != nil {
		return err
	}
	if s.machines, err = versioned.NewForConfig(control); err != nil {
		return err
	}
	s.definitions, err = dynamic.NewForConfig(control)
	return err
}

// prepare makes room for the controllers: nothing else may act on the objects, and the API server has to serve them.
func (s *Suite) prepare(ctx context.Context) error {
	if s.o.Deployment != "" {
		return s.pauseDeployment(ctx)
	}
	return s.install(ctx)
}

// class returns the class that is created as one of the two.
func (s *Suite) class(name string) *v1alpha1.MachineClass {
	c := s.o.Class
	if name == NextClassName && s.o.NextClass != nil {
		c = s.o.NextClass
	}
	c = c.DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{Namespace: s.o.Namespace, Name: name, Labels: c.Labels, Annotations: c.Annotations}
	return c
}

// findSecret reads the Secrets of the first class.
func (s *Suite) findSecret(ctx context.Context) error {
	s.secret = &corev1.Secret{Data: map[string][]byte{}}
	for _, ref := range machine.SecretRefs(s.class(ClassName)) { // the credentials override the user data
		secret, err := s.control.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("class: secret %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		maps.Copy(s.secret.Data, secret.Data)
	}
	return nil
}

func (s *Suite) createClasses(ctx context.Context) error {
	for _, name := range []string{ClassName, NextClassName} {
		if _, err := s.machines.MachineV1alpha1().MachineClasses(s.o.Namespace).Create(ctx, s.class(name), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("class %s: %w", name, err)
		}
	}
	return nil
}

// ends is how long each of the last steps of Close may take.
const ends = time.Minute

// Close deletes the machines and classes of the checks, stops the controllers, and restores the Deployment and the definitions. A controller that
// has ended is started again for the deletion. The deletion takes at most three times the
// Timeout, and ends with ctx; the other steps are taken also if ctx has ended. Nil is closed already.
func (s *Suite) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.started {
		errs = append(errs, s.clean(ctx))
	}
	after := context.WithoutCancel(ctx)
	for _, step := range []func(context.Context) error{s.stopControllers, s.restoreDeployment, s.removeDefinitions} {
		bounded, cancel := context.WithTimeout(after, ends)
		errs = append(errs, step(bounded))
		cancel()
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	return errors.Join(errs...)
}

// clean deletes the objects of the checks with controllers that run.
func (s *Suite) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*s.o.Timeout)
	defer cancel()
	for _, c := range s.controllers {
		if err := c.restart(ctx); err != nil {
			return fmt.Errorf("machines and classes may be left in namespace %s: %w", s.o.Namespace, err)
		}
	}
	return s.removeObjects(ctx)
}

// removeObjects deletes the objects of the checks, also those of earlier ones, and waits until they are deleted.
func (s *Suite) removeObjects(ctx context.Context) error {
	api, now := s.machines.MachineV1alpha1(), metav1.DeleteOptions{}
	err := errors.Join(
		ignoreNotFound(api.MachineDeployments(s.o.Namespace).Delete(ctx, deploymentName, now)),
		ignoreNotFound(api.Machines(s.o.Namespace).Delete(ctx, machineName, now)),
	)
	if err != nil {
		return err
	}
	if err := s.wait(ctx, "the deletion of the machines of the checks", s.noMachines); err != nil {
		return err
	}
	for _, name := range []string{ClassName, NextClassName} {
		err = errors.Join(err, ignoreNotFound(api.MachineClasses(s.o.Namespace).Delete(ctx, name, now)))
	}
	if err != nil {
		return err
	}
	return s.wait(ctx, "the deletion of the classes of the checks", s.noClasses)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
