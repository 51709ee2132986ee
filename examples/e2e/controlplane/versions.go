// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// VersionEnv is the environment variable with the version of Kubernetes that is built and run, one
// of [Versions]. Without it, that is [DefaultVersion].
const VersionEnv = "MACHINIST_KUBERNETES"

// DefaultVersion is the version of Kubernetes without [VersionEnv].
const DefaultVersion = "v1.36.3"

// EtcdVersion is the version of etcd, for each version of Kubernetes.
const EtcdVersion = "v3.7.3"

// ErrVersion is the error of a version of Kubernetes that this package does not build.
var ErrVersion = errors.New("control plane: unknown version of Kubernetes")

// Feature is a feature of Kubernetes that a release lacks.
type Feature string

const (
	// WatchList are watches that ask for a list first (sendInitialEvents=true).
	WatchList Feature = "WatchList"
	// StatusRatcheting is that a write of the status does not check the rules of a definition for fields
	// of the spec. It came with v1.33.
	StatusRatcheting Feature = "StatusRatcheting"
)

// release is a version of Kubernetes. The folder components/VERSION has its module files.
type release struct {
	version   string
	apiServer []string           // flags of the API server, in addition to those of all versions
	cloud     bool               // the controller manager has controllers that need a cloud
	lacks     map[Feature]string // with what a user sees of that
}

// releases are sorted, the oldest first.
var releases = []release{
	{
		version:   "v1.30.14",
		apiServer: []string{"--feature-gates=WatchList=false"}, // which is its default
		cloud:     true,
		lacks: map[Feature]string{
			WatchList:        "the API server refuses the first watch of each informer with 422, and the informer lists",
			StatusRatcheting: "the status of an invalid object that was stored before the rules cannot be written until its spec is corrected",
		},
	},
	{version: DefaultVersion, cloud: true},
	{version: "v1.37.2"},
}

// Versions returns the versions of Kubernetes that this package builds, the oldest first. The caller
// owns the result.
func Versions() (all []string) {
	for _, r := range releases {
		all = append(all, r.version)
	}
	return all
}

// chosen returns the release that the environment chooses. An error matches [ErrVersion].
func chosen() (release, error) {
	version := cmp.Or(os.Getenv(VersionEnv), DefaultVersion)
	i := slices.IndexFunc(releases, func(r release) bool { return r.version == version })
	if i < 0 {
		return release{}, fmt.Errorf("%w: %s=%s: set one of %s", ErrVersion, VersionEnv, version, strings.Join(Versions(), ", "))
	}
	return releases[i], nil
}

// Version returns the version of Kubernetes that runs, such as "v1.36.3".
func (c *ControlPlane) Version() string { return c.release.version }

// Lacks returns what a user sees of it that the version lacks a feature. It is empty if the version has
// the feature.
func (c *ControlPlane) Lacks(f Feature) string { return c.release.lacks[f] }
