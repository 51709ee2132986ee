// SPDX-License-Identifier: Apache-2.0

// Package mcm_test holds the names of MCM that need more than one package of this project, in the
// way in which importers use them. Those of single packages are in internal/apisurface.
package mcm_test

import (
	"context"
	"embed"
	"io"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	kubernetesdefs "github.com/gardener/machine-controller-manager/kubernetes"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	typed "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common"
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common/helpers"
	"github.com/gardener/machine-controller-manager/pkg/util/backoff"
	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus" // as in a main package
	coreclientbuilder "github.com/gardener/machine-controller-manager/pkg/util/clientbuilder/core"
	machineclientbuilder "github.com/gardener/machine-controller-manager/pkg/util/clientbuilder/machine"
	"github.com/gardener/machine-controller-manager/pkg/util/nodeops"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/cache"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/drain"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecontroller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	provideroptions "github.com/gardener/machine-controller-manager/pkg/util/provider/options"
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus" // as in a main package
	"github.com/gardener/machine-controller-manager/pkg/util/taints"
	timeutil "github.com/gardener/machine-controller-manager/pkg/util/time"
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus" // as in a main package
)

// The main function of a provider.
var (
	_ func(*options.MCServer, driver.Driver) error              = app.Run
	_ func() *options.MCServer                                  = options.NewMCServer
	_ func(*options.MCServer, *pflag.FlagSet)                   = (*options.MCServer).AddFlags
	_                                                           = options.MCServer{ControlKubeconfig: "", TargetKubeconfig: ""}
	_ string                                                    = options.MCServer{}.Namespace
	_ provideroptions.MachineControllerConfiguration            = options.MCServer{}.MachineControllerConfiguration
	_ string                                                    = machinecontroller.BootstrapTokenPlaceholder + machinecontroller.MachineNamePlaceholder
	_ *prometheus.CounterVec                                    = metrics.APIRequestCount
	_ *prometheus.CounterVec                                    = metrics.APIFailedRequestCount
	_ *prometheus.HistogramVec                                  = metrics.APIRequestDuration
	_ *prometheus.HistogramVec                                  = metrics.DriverAPIRequestDuration
	_ *prometheus.CounterVec                                    = metrics.DriverFailedAPIRequests
	_ func(string) codes.Code                                   = codes.StringToCode
	_ func(<-chan struct{}, ...clientcache.InformerSynced) bool = cache.WaitForCacheSync
	_ func(*runtime.Scheme) error                               = machine.AddToScheme
	_ string                                                    = machine.GroupName
)

// Constants and predicates of machines.
var (
	_ = [...]string{
		machineutils.GetVMStatus, machineutils.InitiateDrain, machineutils.DelVolumesAttachments, machineutils.InitiateVMDeletion,
		machineutils.InitiateNodeDeletion, machineutils.InitiateFinalizerRemoval,
		machineutils.LastAppliedALTAnnotation, machineutils.LastDeploymentReplicaChangeByScalerTime,
		machineutils.MachineLabelKey, machineutils.MachinePriority, machineutils.NodePreservedTaintKey, machineutils.NotManagedByMCM,
		machineutils.PreserveMachineAnnotationValueAutoPreserved, machineutils.TriggerDeletionByMCM,
		v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout, v1alpha1.AnnotationKeyMachineJoinDuration,
		v1alpha1.PreservedNodeDrainSuccessful, v1alpha1.PreservedNodeDrainUnsuccessful,
	}
	_ = [...]machineutils.RetryPeriod{machineutils.ConflictRetry, machineutils.ShortRetry, machineutils.MediumRetry, machineutils.LongRetry}

	_ func(*v1alpha1.Machine) bool   = machineutils.IsMachineActive
	_ func(*v1alpha1.Machine) bool   = machineutils.IsMachineFailed
	_ func(*v1alpha1.Machine) bool   = machineutils.IsMachineFailedOrTerminating
	_ func(*v1alpha1.Machine) bool   = machineutils.IsMachinePreservationExpired
	_ func(*v1alpha1.Machine) bool   = machineutils.IsMachineTriggeredForDeletion
	_ func(*v1alpha1.Machine) string = machineutils.GetMachineDeploymentName
	_ []string                       = machineutils.EssentialTaints
	_ sets.Set[string]               = machineutils.AllowedPreserveAnnotationValues

	_ func(metav1.Time, time.Duration) bool = timeutil.HasTimeOutOccurred
)

// Nodes.
var (
	_ wait.Backoff                                                                                                 = nodeops.Backoff
	_ func(*corev1.Node, corev1.NodeCondition) *corev1.Node                                                        = nodeops.AddOrUpdateCondition
	_ func(*corev1.Node, corev1.NodeConditionType) *corev1.NodeCondition                                           = nodeops.GetCondition
	_ func(context.Context, kubernetes.Interface, string, *corev1.Node, *corev1.Node) (*corev1.Node, error)        = nodeops.UpdateNodeConditions
	_ func(context.Context, kubernetes.Interface, string, *corev1.Node, *corev1.Node) error                        = nodeops.UpdateNodeTaints
	_ func(context.Context, kubernetes.Interface, string, ...*corev1.Taint) error                                  = nodeops.AddOrUpdateTaintOnNode
	_ func(context.Context, kubernetes.Interface, string, corev1.NodeCondition) (*corev1.Node, error)              = nodeops.AddOrUpdateConditionsOnNode
	_ func(context.Context, kubernetes.Interface, string, corev1.NodeConditionType) (*corev1.NodeCondition, error) = nodeops.GetNodeCondition
	_ func(context.Context, kubernetes.Interface, string, *corev1.Node, ...*corev1.Taint) error                    = nodeops.RemoveTaintOffNode
	_ func([]corev1.Taint, *corev1.Taint) bool                                                                     = taints.TaintExists
	_ func([]corev1.Taint, *corev1.Taint) ([]corev1.Taint, bool)                                                   = taints.DeleteTaint
	_ func([]corev1.Taint, string) ([]corev1.Taint, bool)                                                          = taints.DeleteTaintsByKey
	_ func([]string) ([]corev1.Taint, []corev1.Taint, error)                                                       = taints.ParseTaints
	_ func(context.Context, time.Duration, time.Duration, time.Duration, func() error) error                       = backoff.WaitUntil
	_ func(codes.Code, string, error) *status.Status                                                               = status.WrapError
	_ embed.FS                                                                                                     = kubernetesdefs.CRDs
	_ []drain.AdditionalPodFilter                                                                                  = drain.Options{SkipVolumeDetach: true}.AdditionalPodFilters
	_ func(*drain.Options, interface {
		PodsForNode(ctx context.Context, nodeName string) ([]corev1.Pod, error)
	}) = (*drain.Options).SetPodProvider
	_ func(*drain.Options, context.Context) error = (*drain.Options).RunDrain
	_ func(
		kubernetes.Interface, *semver.Version, time.Duration, int32, time.Duration, time.Duration, string, int, bool, bool, bool, bool,
		io.Writer, io.Writer, driver.Driver, corelisters.PersistentVolumeClaimLister, corelisters.PersistentVolumeLister,
		policylisters.PodDisruptionBudgetLister, corelisters.NodeLister, corelisters.PodLister, *drain.VolumeAttachmentHandler, clientcache.InformerSynced,
	) *drain.Options = drain.NewDrainOptions
)

// Clients.
var (
	_ func(coreclientbuilder.SimpleClientBuilder, string) (kubernetes.Interface, error)   = coreclientbuilder.SimpleClientBuilder.Client
	_ func(machineclientbuilder.SimpleClientBuilder, string) (versioned.Interface, error) = machineclientbuilder.SimpleClientBuilder.Client
	_                                                                                     = machineclientbuilder.SimpleClientBuilder{ClientConfig: &rest.Config{}}
	_                                                                                     = typed.MachineDeploymentInterface.UpdateScale
	_                                                                                     = typed.MachineSetInterface.UpdateScale
)

// The integration test of a provider.
var (
	_ func(helpers.ResourcesTrackerInterface, ...int64) *common.IntegrationTestFramework = common.NewIntegrationTestFramework
	_                                                                                    = [...]func(*common.IntegrationTestFramework){
		(*common.IntegrationTestFramework).SetupBeforeSuite, (*common.IntegrationTestFramework).BeforeEachCheck,
		(*common.IntegrationTestFramework).ControllerTests, (*common.IntegrationTestFramework).Cleanup,
	}
	_ = [...]*helpers.Cluster{common.IntegrationTestFramework{}.ControlCluster, common.IntegrationTestFramework{}.TargetCluster}
	_ = helpers.Cluster{Clientset: (*kubernetes.Clientset)(nil), McmClient: (*versioned.Clientset)(nil), KubeConfigFilePath: ""}
	_ interface {
		IsOrphanedResourcesAvailable() bool
		InitializeResourcesTracker(machineClass *v1alpha1.MachineClass, secretData map[string][]byte, clusterName string) error
	} = helpers.ResourcesTrackerInterface(nil)
)
