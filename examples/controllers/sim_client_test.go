// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedstoragev1 "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	typedmachine "github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// All calls of the controllers to the clusters and to the cloud pass through
// process.through.

// verbs are the methods that the clients of all kinds share.
type verbs[T, L any] interface {
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// calls are these methods as calls of the simulation.
type calls[T metav1.Object, L any] struct {
	p    *process
	at   *site
	kind string
	to   verbs[T, L]
}

func (c calls[T, L]) simCall(verb, name string) simCall {
	return simCall{site: c.at, verb: verb, resource: c.kind, name: name, write: verb != "get" && verb != "list"}
}

func (c calls[T, L]) Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error) {
	return call(ctx, c.p, c.simCall("create", o.GetName()), func() (T, error) { return c.to.Create(ctx, o, opts) })
}

func (c calls[T, L]) Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	return call(ctx, c.p, c.simCall("update", o.GetName()), func() (T, error) { return c.to.Update(ctx, o, opts) })
}

func (c calls[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := call(ctx, c.p, c.simCall("delete", name), func() (any, error) { return nil, c.to.Delete(ctx, name, opts) })
	return err
}

func (c calls[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return call(ctx, c.p, c.simCall("get", name), func() (T, error) { return c.to.Get(ctx, name, opts) })
}

func (c calls[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	return call(ctx, c.p, c.simCall("list", ""), func() (L, error) { return c.to.List(ctx, opts) })
}

func (c calls[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (T, error) {
	return call(ctx, c.p, c.simCall("patch", name), func() (T, error) { return c.to.Patch(ctx, name, pt, data, opts, sub...) })
}

// statusCalls is the additional method of kinds with a status.
type statusCalls[T metav1.Object] struct {
	p    *process
	at   *site
	kind string
	to   interface {
		UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	}
}

func (c statusCalls[T]) UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	a := simCall{site: c.at, verb: "update", resource: c.kind, sub: "status", name: o.GetName(), write: true}
	return call(ctx, c.p, a, func() (T, error) { return c.to.UpdateStatus(ctx, o, opts) })
}

// machineClient is the client for the machine objects.
type machineClient struct {
	versioned.Interface
	p *process
}

func (c machineClient) MachineV1alpha1() typedmachine.MachineV1alpha1Interface {
	return machineGroup{c.Interface.MachineV1alpha1(), c.p}
}

type machineGroup struct {
	typedmachine.MachineV1alpha1Interface
	p *process
}

func (g machineGroup) Machines(ns string) typedmachine.MachineInterface {
	to, at := g.MachineV1alpha1Interface.Machines(ns), g.p.w.control
	return machineCalls{
		calls:       calls[*v1alpha1.Machine, *v1alpha1.MachineList]{g.p, at, "machines", to},
		statusCalls: statusCalls[*v1alpha1.Machine]{g.p, at, "machines", to}, machineRest: machineRest{to},
	}
}

func (g machineGroup) MachineClasses(ns string) typedmachine.MachineClassInterface {
	to := g.MachineV1alpha1Interface.MachineClasses(ns)
	return classCalls{
		calls: calls[*v1alpha1.MachineClass, *v1alpha1.MachineClassList]{g.p, g.p.w.control, "machineclasses", to}, classRest: classRest{to},
	}
}

func (g machineGroup) MachineSets(ns string) typedmachine.MachineSetInterface {
	to, at := g.MachineV1alpha1Interface.MachineSets(ns), g.p.w.control
	return setCalls{
		calls:       calls[*v1alpha1.MachineSet, *v1alpha1.MachineSetList]{g.p, at, "machinesets", to},
		statusCalls: statusCalls[*v1alpha1.MachineSet]{g.p, at, "machinesets", to}, setRest: setRest{to},
	}
}

func (g machineGroup) MachineDeployments(ns string) typedmachine.MachineDeploymentInterface {
	to, at := g.MachineV1alpha1Interface.MachineDeployments(ns), g.p.w.control
	return deploymentCalls{
		calls:       calls[*v1alpha1.MachineDeployment, *v1alpha1.MachineDeploymentList]{g.p, at, "machinedeployments", to},
		statusCalls: statusCalls[*v1alpha1.MachineDeployment]{g.p, at, "machinedeployments", to}, deploymentRest: deploymentRest{to},
	}
}

type (
	machineRest  struct{ typedmachine.MachineInterface }
	machineCalls struct {
		calls[*v1alpha1.Machine, *v1alpha1.MachineList]
		statusCalls[*v1alpha1.Machine]
		machineRest
	}
	setRest struct {
		typedmachine.MachineSetInterface
	}
	setCalls struct {
		calls[*v1alpha1.MachineSet, *v1alpha1.MachineSetList]
		statusCalls[*v1alpha1.MachineSet]
		setRest
	}
	deploymentRest struct {
		typedmachine.MachineDeploymentInterface
	}
	deploymentCalls struct {
		calls[*v1alpha1.MachineDeployment, *v1alpha1.MachineDeploymentList]
		statusCalls[*v1alpha1.MachineDeployment]
		deploymentRest
	}
	classRest struct {
		typedmachine.MachineClassInterface
	}
	classCalls struct {
		calls[*v1alpha1.MachineClass, *v1alpha1.MachineClassList]
		classRest
	}
)

// coreClient is the client for built-in kinds.
type coreClient struct {
	kubernetes.Interface
	p  *process
	at *site
}

func (c coreClient) CoreV1() typedcorev1.CoreV1Interface {
	return coreGroup{c.Interface.CoreV1(), c.p, c.at}
}

func (c coreClient) StorageV1() typedstoragev1.StorageV1Interface {
	return storageGroup{c.Interface.StorageV1(), c.p, c.at}
}

type storageGroup struct {
	typedstoragev1.StorageV1Interface
	p  *process
	at *site
}

func (g storageGroup) VolumeAttachments() typedstoragev1.VolumeAttachmentInterface {
	to := g.StorageV1Interface.VolumeAttachments()
	return attachmentCalls{
		calls:          calls[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]{g.p, g.at, "volumeattachments", to},
		attachmentRest: attachmentRest{to},
	}
}

type (
	attachmentRest struct {
		typedstoragev1.VolumeAttachmentInterface
	}
	attachmentCalls struct {
		calls[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]
		attachmentRest
	}
)

type coreGroup struct {
	typedcorev1.CoreV1Interface
	p  *process
	at *site
}

func (g coreGroup) Secrets(ns string) typedcorev1.SecretInterface {
	to := g.CoreV1Interface.Secrets(ns)
	return secretCalls{calls: calls[*corev1.Secret, *corev1.SecretList]{g.p, g.at, "secrets", to}, secretRest: secretRest{to}}
}

func (g coreGroup) Nodes() typedcorev1.NodeInterface {
	to := g.CoreV1Interface.Nodes()
	return nodeCalls{
		calls:       calls[*corev1.Node, *corev1.NodeList]{g.p, g.at, "nodes", to},
		statusCalls: statusCalls[*corev1.Node]{g.p, g.at, "nodes", to}, nodeRest: nodeRest{to},
	}
}

func (g coreGroup) Pods(ns string) typedcorev1.PodInterface {
	to := g.CoreV1Interface.Pods(ns)
	return podCalls{calls: calls[*corev1.Pod, *corev1.PodList]{g.p, g.at, "pods", to}, podRest: podRest{to}}
}

type (
	secretRest  struct{ typedcorev1.SecretInterface }
	secretCalls struct {
		calls[*corev1.Secret, *corev1.SecretList]
		secretRest
	}
	nodeRest  struct{ typedcorev1.NodeInterface }
	nodeCalls struct {
		calls[*corev1.Node, *corev1.NodeList]
		statusCalls[*corev1.Node]
		nodeRest
	}
	podRest  struct{ typedcorev1.PodInterface }
	podCalls struct {
		calls[*corev1.Pod, *corev1.PodList]
		podRest
	}
)

func (c podCalls) EvictV1(ctx context.Context, e *policyv1.Eviction) error {
	a := simCall{site: c.at, verb: "create", resource: "pods", sub: "eviction", name: e.Name, write: true}
	_, err := call(ctx, c.p, a, func() (any, error) { return nil, c.podRest.EvictV1(ctx, e) })
	return err
}

// cloudCalls is the driver.
type cloudCalls struct{ p *process }

func machineOf(m *v1alpha1.Machine) string {
	if m == nil {
		return ""
	}
	return m.Name
}

func (c cloudCalls) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return driverCall(ctx, c.p, driver.OpCreateMachine, machineOf(req.Machine), func(ctx context.Context) (*driver.CreateMachineResponse, error) {
		return c.p.w.cloud.CreateMachine(ctx, req)
	})
}

func (c cloudCalls) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return driverCall(ctx, c.p, driver.OpInitializeMachine, machineOf(req.Machine), func(ctx context.Context) (*driver.InitializeMachineResponse, error) {
		return c.p.w.cloud.InitializeMachine(ctx, req)
	})
}

func (c cloudCalls) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return driverCall(ctx, c.p, driver.OpDeleteMachine, machineOf(req.Machine), func(ctx context.Context) (*driver.DeleteMachineResponse, error) {
		return c.p.w.cloud.DeleteMachine(ctx, req)
	})
}

func (c cloudCalls) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return driverCall(ctx, c.p, driver.OpGetMachineStatus, machineOf(req.Machine), func(ctx context.Context) (*driver.GetMachineStatusResponse, error) {
		if c.p.w.lies[machineOf(req.Machine)] {
			return nil, status.Error(codes.NotFound, "asked with the credentials of another project")
		}
		return c.p.w.cloud.GetMachineStatus(ctx, req)
	})
}

func (c cloudCalls) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return driverCall(ctx, c.p, driver.OpListMachines, "", func(ctx context.Context) (*driver.ListMachinesResponse, error) {
		list, err := c.p.w.cloud.ListMachines(ctx, req)
		if err == nil {
			maps.DeleteFunc(list.MachineList, func(_, name string) bool { return c.p.w.lies[name] })
		}
		return list, err
	})
}

func (c cloudCalls) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return driverCall(ctx, c.p, driver.OpGetVolumeIDs, "", func(ctx context.Context) (*driver.GetVolumeIDsResponse, error) {
		return c.p.w.cloud.GetVolumeIDs(ctx, req)
	})
}
