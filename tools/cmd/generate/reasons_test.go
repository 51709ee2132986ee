// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestReasons_Constants_AreRowsByWord(t *testing.T) {
	root := tree(t, map[string]string{
		"drain/reason.go": `package drain

const (
	// ReasonB means that a [Budget] refuses.
	//
	// What helps: change
	// the budget.
	ReasonB machinist.Reason = "Second"
	// reasonA means that a pod stays.
	reasonA machinist.Reason = "First"
)
`,
		"drain/reason_test.go":   "package drain\n\nconst x machinist.Reason = \"Tested\"\n",
		"examples/own/reason.go": "package own\n\nconst x machinist.Reason = \"Own\"\n",
	})
	found, err := reasonsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(found)
	want := "| `First` | A pod stays. |  |\n| `Second` (`ReasonB`) | A `Budget` refuses. | Change the budget. |\n"
	if !strings.HasSuffix(string(page), "## drain\n\n| Reason | Meaning | What helps |\n|---|---|---|\n"+want) {
		t.Errorf("got %s", page)
	}
	if code := string(helpsOf(found)); !strings.Contains(code, "\t\"drain\": {\n\t\t\"Second\": \"Change the budget.\",\n\t},\n") {
		t.Errorf("got %s", code)
	}
}

func TestReasons_WithoutMeaning_AreErrors(t *testing.T) {
	for _, text := range []string{
		`const a machinist.Reason = "A"`,
		`// a is a reason.
const a machinist.Reason = "A"`,
		`// a means that b.
const a machinist.Reason = "A" + "B"`,
		`var h = machinist.Hold{Reason: "A"}`,
		`var e = machinist.Event{Type: "Normal", Reason: "A"}`,
	} {
		root := tree(t, map[string]string{"drain/reason.go": "package drain\n\n" + text + "\n"})
		if _, err := reasonsOf(root); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
}
