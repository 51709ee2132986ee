// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
)

// moduleFiles have names which the go command does not know: a folder with a go.mod of its own would
// be another module, and would be missing from the copy of this one that users have.
//
//go:embed components
var moduleFiles embed.FS

// moduleFile returns the text of a file in the folder components, empty if there is none: a test
// reads those of each release.
func moduleFile(name string) string {
	text, _ := moduleFiles.ReadFile(path.Join("components", name))
	return string(text)
}

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

func components(r release) []component {
	return []component{etcdComponent(), kubernetesComponent(r)}
}

func etcdComponent() component {
	return component{
		name:     "etcd",
		version:  EtcdVersion,
		mod:      moduleFile("etcd.mod"),
		sum:      moduleFile("etcd.sum"),
		ldflags:  "-s -w",
		programs: []program{{pkg: "go.etcd.io/etcd/server/v3", name: "etcd"}},
	}
}

func kubernetesComponent(r release) component {
	return r.component("kubernetes", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
}

// kubectlComponent is no part of a control plane: [Kubectl] alone builds it.
func kubectlComponent(r release) component { return r.component("kubectl", "kubectl") }

// kubemarkComponent is no part of a control plane: [Kubemark] alone builds it.
func kubemarkComponent(r release) component { return r.component("kubemark", "kubemark") }

// component returns a component of Kubernetes with its programs.
func (r release) component(name string, programs ...string) component {
	c := component{
		name:    name,
		version: r.version,
		mod:     moduleFile(path.Join(r.version, name+".mod")),
		sum:     moduleFile(path.Join(r.version, name+".sum")),
		ldflags: kubernetesFlags(r.version),
	}
	for _, p := range programs {
		c.programs = append(c.programs, program{pkg: "k8s.io/kubernetes/cmd/" + p, name: p})
	}
	return c
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
