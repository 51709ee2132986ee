// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// What carries out [machine.CreateToken] creates the Secret in the cluster which
// the machine joins. [machine.CreateVM] then comes with the token, for the user
// data. Whatever prints it sees no more than its ID.
func ExampleNewBootstrapToken() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", UID: "5c0d"}}
	expires := time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC)
	random := bytes.NewReader(bytes.Repeat([]byte("not random at all"), 2)) // use crypto/rand.Reader

	secret, err := machine.NewBootstrapToken(m, expires, []string{"system:bootstrappers:workers"}, random)
	fmt.Println(secret.Namespace, secret.Name, secret.Labels, err)

	token, err := machine.TokenOf(secret)
	fmt.Printf("%+v, until %s %v\n", token, token.Expires().Format(time.Kitchen), err)

	data := map[string][]byte{machine.UserDataKey: []byte("join --token <<BOOTSTRAP_TOKEN>>")}
	rendered, err := machine.RenderUserData(data, m.Name, token)
	fmt.Println(strings.HasPrefix(string(rendered[machine.UserDataKey]), "join --token "+token.ID()+"."), err)
	// Output:
	// kube-system bootstrap-token-cdi6gz map[machine.sapcloud.io/machine-uid:5c0d] <nil>
	// bootstrap token cdi6gz, until 12:20PM <nil>
	// true <nil>
}

func ExampleIgnored() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m-1", Annotations: map[string]string{v1alpha1.EffectiveCreationTimeout: "20"},
	}}
	m.Spec.Class.Name = "small"
	for _, err := range machine.Validate(m) {
		fmt.Println("no VM:", err)
	}
	for _, err := range machine.Ignored(m) {
		fmt.Println("ignored:", err)
	}
	// Output:
	// no VM: spec.class.kind: Required value: Kind is required
	// ignored: metadata.annotations[node.machine.sapcloud.io/effective-creation-timeout]: Invalid value: "20": is no duration, such as 20m
}
