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

// release is a version of Kubernetes, and the flags that its components have in addition to those
// of all versions. The folder components/VERSION has its module files.
type release struct {
	version   string
	apiServer []string
}

// releases are sorted, the oldest first.
var releases = []release{
	// Without lists that are sent as watches, as clusters of that age are by default.
	{version: "v1.30.14", apiServer: []string{"--feature-gates=WatchList=false"}},
	{version: DefaultVersion},
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
