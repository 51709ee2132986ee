// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLine_Each_StatusAndOutput(t *testing.T) {
	cases := []struct {
		name     string
		args     []string
		status   int
		out, err string
	}{
		{"help is no error", []string{"-h"}, 0, "--simulated-cloud", ""},
		{"nor is that of a command", []string{"install", "-h"}, 0, "--rbac", ""},
		{"the cloud is required", nil, 2, "", "--simulated-cloud is required"},
		{"a cloud needs an address", []string{"--simulated-cloud=nowhere"}, 2, "", "--simulated-cloud"},
		{"unknown flag", []string{"--simulated-cloud=http://127.0.0.1:1", "--nonsense"}, 2, "", "unknown flag: --nonsense"},
		{"unknown command", []string{"uninstall"}, 2, "", `"uninstall" is not a command`},
		{"a value that makes no sense", []string{"--simulated-cloud=http://127.0.0.1:1", "--port=0"}, 2, "", "--port"},
		{"clusters that are not there", []string{"--simulated-cloud=http://127.0.0.1:1", "--target-kubeconfig=/no/such/file"}, 1, "", "--target-kubeconfig"},
		{"manifests", []string{"manifests", "--namespace=there"}, 0, "namespace: there\n", ""},
		{"manifests nowhere", []string{"manifests", "--namespace="}, 2, "", "namespace"},
		{"manifests of a program", []string{"manifests", "--program=machine-controller-manager", "--deployment"}, 0, "name: machine-controller-manager.default\n", ""},
		{"manifests of no program", []string{"manifests", "--program=else"}, 2, "", `"else": not one of the programs: machinist, machine-controller, machine-controller-manager`},
		{"install nowhere", []string{"install", "--kubeconfig=/no/such/file"}, 1, "", "/no/such/file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			require.Equal(t, c.status, manager(c.args, &out, &errOut), errOut.String())
			require.Contains(t, out.String(), c.out)
			require.Contains(t, errOut.String(), c.err)
		})
	}
}
