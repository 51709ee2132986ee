// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/sha256"
	_ "embed" // the module files of the components
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// The versions that this package builds. They are those of the module files in
// the folder components, which a test checks.
const (
	// KubernetesVersion is what the API server says of itself.
	KubernetesVersion = "v1.36.3"
	// EtcdVersion is the version of the etcd below it.
	EtcdVersion = "v3.7.3"
)

// The module files are embedded under names which the go command does not know:
// a folder with a go.mod of its own would be another module, and would be
// missing from the copy of this one that users have.
var (
	//go:embed components/etcd.mod
	etcdMod string
	//go:embed components/etcd.sum
	etcdSum string
	//go:embed components/kubernetes.mod
	kubernetesMod string
	//go:embed components/kubernetes.sum
	kubernetesSum string
	//go:embed components/kubectl.mod
	kubectlMod string
	//go:embed components/kubectl.sum
	kubectlSum string
	//go:embed components/kubemark.mod
	kubemarkMod string
	//go:embed components/kubemark.sum
	kubemarkSum string
)

// program is one binary of a component: the import path of its main package
// and the name of the file.
type program struct {
	pkg, name string
}

// component is what is built together, from one go.mod, and cached together.
type component struct {
	name, version string
	mod, sum      string
	ldflags       string
	programs      []program
}

func components() []component {
	return []component{etcdComponent(), kubernetesComponent()}
}

func etcdComponent() component {
	return component{
		name:    "etcd",
		version: EtcdVersion,
		mod:     etcdMod,
		sum:     etcdSum,
		ldflags: "-s -w",
		programs: []program{
			{pkg: "go.etcd.io/etcd/server/v3", name: "etcd"},
		},
	}
}

func kubernetesComponent() component {
	return component{
		name:    "kubernetes",
		version: KubernetesVersion,
		mod:     kubernetesMod,
		sum:     kubernetesSum,
		ldflags: kubernetesFlags(KubernetesVersion),
		programs: []program{
			{pkg: "k8s.io/kubernetes/cmd/kube-apiserver", name: "kube-apiserver"},
			{pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", name: "kube-controller-manager"},
			{pkg: "k8s.io/kubernetes/cmd/kube-scheduler", name: "kube-scheduler"},
		},
	}
}

// kubectlComponent is no part of a control plane: [Kubectl] alone builds it.
func kubectlComponent() component {
	return component{
		name:     "kubectl",
		version:  KubernetesVersion,
		mod:      kubectlMod,
		sum:      kubectlSum,
		ldflags:  kubernetesFlags(KubernetesVersion),
		programs: []program{{pkg: "k8s.io/kubernetes/cmd/kubectl", name: "kubectl"}},
	}
}

// kubemarkComponent is no part of a control plane: [Kubemark] alone builds it.
func kubemarkComponent() component {
	return component{
		name:     "kubemark",
		version:  KubernetesVersion,
		mod:      kubemarkMod,
		sum:      kubemarkSum,
		ldflags:  kubernetesFlags(KubernetesVersion),
		programs: []program{{pkg: "k8s.io/kubernetes/cmd/kubemark", name: "kubemark"}},
	}
}

// kubernetesFlags are the linker flags that stamp the version into the binaries,
// which otherwise call themselves v0.0.0-master.
func kubernetesFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=clean")
	}
	return strings.Join(flags, " ")
}

// key names the folder of a component in the cache. It changes with everything
// that says what is built, and not with the version of Go that builds it: a new
// patch release of Go is no reason to wait for minutes.
func (c component) key() string {
	h := sha256.New()
	_, _ = io.WriteString(h, strings.Join([]string{c.mod, c.sum, c.ldflags}, "\x00"))
	for _, p := range c.programs {
		_, _ = io.WriteString(h, "\x00"+p.pkg+"\x00"+p.name)
	}
	return fmt.Sprintf("%s-%s-%s-%s-%s", c.name, c.version, runtime.GOOS, runtime.GOARCH, hex.EncodeToString(h.Sum(nil))[:10])
}
