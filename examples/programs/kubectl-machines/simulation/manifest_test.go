// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

func TestFile_Invalid_Refused(t *testing.T) {
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	good := string(data)
	aliases := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		aliases += strings.NewReplacer("N", string(c), "O", string(c-1)).Replace("N: &N [*O,*O,*O,*O,*O,*O,*O,*O,*O,*O]\n")
	}
	for _, c := range []struct {
		name, text, says string
	}{
		{"nothing", "", "no MachineDeployment"},
		{"a comment", "# nothing\n---\n# here\n", "no MachineDeployment"},
		{"other kinds", "apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: List\nitems: []\n", "no MachineDeployment"},
		{"no YAML", "{{{", "invalid character"},
		{"a list of nothing", "- 1\n- 2\n", "cannot unmarshal array"},
		{"a number", "42", "cannot unmarshal number"},
		{"bytes", "\x00\x01\xff", "control characters"},
		{"an explosion of aliases", aliases, "excessive aliasing"},
		{"depth", strings.Repeat("[", 100_000), "max depth"},
		{"a deployment of another API", strings.Replace(good, "machine.sapcloud.io/v1alpha1", "cluster.x-k8s.io/v1beta1", 1), `of "cluster.x-k8s.io/v1beta1", want machine.sapcloud.io/v1alpha1`},
		{"an unknown field", strings.Replace(good, "maxSurge", "maxSruge", 1), `unknown field "spec.strategy.rollingUpdate.maxSruge": correct the name of the field, or delete the field`},
		{"a number that is a text", strings.Replace(good, "replicas: 5", "replicas: five", 1), "replicas"},
		{"no name", strings.Replace(good, "  name: pool\n  namespace", "  namespace", 1), "metadata.name is missing"},
		{"an invalid name", strings.Replace(good, "  name: pool\n", "  name: A_b!\n", 1), "metadata.name \"A_b!\""},
		{"negative replicas", strings.Replace(good, "replicas: 5", "replicas: -5", 1), "spec.replicas"},
		{"too many replicas", strings.Replace(good, "replicas: 5", "replicas: 2000000000", 1), "want at most 100000"},
		{"a negative surge", strings.Replace(good, "maxSurge: 2", "maxSurge: -2", 1), `maxSurge: Invalid value: "-2": must not be negative`},
		{"a negative percentage", strings.Replace(good, "maxUnavailable: 1", `maxUnavailable: "-5%"`, 1), `maxUnavailable: Invalid value: "-5%": must not be negative`},
		{"a bound without a number", strings.Replace(good, "maxSurge: 2", "maxSurge: some", 1), "maxSurge"},
		{"an unknown strategy", strings.Replace(good, "type: RollingUpdate", "type: Hope", 1), "strategy type must be one of"},
		{"a selector of other labels", strings.Replace(good, "matchLabels:\n      name: pool", "matchLabels:\n      name: other", 1), "selector"},
		{"several deployments", good + "---\n" + strings.Replace(good, "name: pool", "name: other", 1), "2 MachineDeployments in it (pool, other): select one by its name"},
		{"a broken document behind", good + "---\n{{{\n", "did not find"},
		{"no class", strings.Replace(good, "name: small", `name: ""`, 1), "class.name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := runWith(t, c.text, "-f", "-")
			require.Equal(t, cli.Refused, status, errOut)
			require.Contains(t, errOut, c.says)
			require.Contains(t, errOut, "standard input: ")
			require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
			require.Empty(t, out)
		})
	}
}

func TestFile_OtherDocuments_AreSkipped(t *testing.T) {
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	good := string(data)
	item := "  " + strings.ReplaceAll(strings.TrimSpace(good), "\n", "\n  ")
	for name, text := range map[string]string{
		"after others":  "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n" + good,
		"before others": good + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
		"in a list":     "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n-" + item[1:] + "\n",
		"with a status": good + "status: {availableReplicas: 3, somethingNew: 4}\n",
	} {
		t.Run(name, func(t *testing.T) {
			text = strings.Replace(text, "-# A pool", "- # A pool", 1)
			d, err := simulation.ReadDeployment([]byte(text), "")
			require.NoError(t, err)
			require.Equal(t, "pool", d.Name)
			require.EqualValues(t, 5, d.Spec.Replicas)
			require.Zero(t, d.Status)
		})
	}
}

func TestFile_SeveralDeployments_NameSelectsOne(t *testing.T) {
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	good := string(data)
	other := strings.Replace(good, "  name: pool\n  namespace: demo", "  name: other\n  namespace: demo", 1)
	elsewhere := strings.Replace(good, "  name: pool\n  namespace: demo", "  name: pool\n  namespace: shop", 1)
	broken := strings.Replace(other, "type: RollingUpdate", "type: Hope", 1)
	all := good + "---\n" + other + "---\n" + elsewhere
	for _, c := range []struct{ text, name, want, says string }{
		{all, "other", "demo/other", ""},
		{all, "shop/pool", "shop/pool", ""},
		{all, "demo/pool", "demo/pool", ""},
		{all, "pool", "", "2 MachineDeployments pool in it: select one by NAMESPACE/NAME"},
		{all, "none", "", "no MachineDeployment none in it, but pool, other, pool"},
		{good + "---\n" + broken, "pool", "demo/pool", ""},
		{good, "other", "", "no MachineDeployment other in it, but pool"},
	} {
		d, err := simulation.ReadDeployment([]byte(c.text), c.name)
		if c.says != "" {
			require.EqualError(t, err, "standard input: "+c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, d.Namespace+"/"+d.Name)
	}
	status, _, errOut := runWith(t, all, "other", "-f", "-", "-o", "summary")
	require.Equal(t, cli.Done, status, errOut)
}

func FuzzFiles(f *testing.F) {
	data, err := os.ReadFile(pool)
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte("kind: List\nitems: [{kind: List, items: [1]}]"))
	f.Add([]byte("apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineDeployment\nspec: null\n"))
	f.Add([]byte("--- \n---\n%YAML 1.1\n---\na: &a {b: *a}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := simulation.ReadDeployment(data, "")
		if err != nil {
			return
		}
		require.NotNil(t, d)
		require.Empty(t, deployment.Validate(d))
		require.NotEmpty(t, d.Name)
	})
}
