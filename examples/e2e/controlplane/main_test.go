// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

var cp *controlplane.ControlPlane

// helperEnv makes a child of this test binary die in a certain way.
const helperEnv = "CONTROLPLANE_TEST_HELPER"

// helperState is what the child says of its control plane.
type helperState struct {
	PIDs            []int
	Folder, TempDir string
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) {
		cp = c
		switch mode := os.Getenv(helperEnv); mode {
		case "":
			return
		default:
			temp, _ := c.TempDir("of-a-test-")
			text, _ := json.Marshal(helperState{PIDs: c.PIDs(), Folder: c.DataFolder(), TempDir: temp})
			fmt.Println(string(text))
			switch mode {
			case "panic":
				panic("as the test wants it")
			case "timeout":
				_ = flag.Set("test.timeout", "1ms")
			case "exit":
				os.Exit(3)
			case "hang":
				select {}
			}
		}
	}))
}

// TestHelperFails fails in a child that is to fail.
func TestHelperFails(t *testing.T) {
	switch os.Getenv(helperEnv) {
	case "fail":
		t.Fatal("as the test wants it")
	case "timeout":
		select {}
	}
}
