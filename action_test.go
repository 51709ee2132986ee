// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
)

// Node stands for a typed object: the root package imports none.
type Node struct{ name string }

func (Node) GetNamespace() string { return "" }
func (n Node) GetName() string    { return n.name }

func TestAction_String_NamesObjectAndReasons(t *testing.T) {
	t.Parallel()
	var none *Node
	for want, a := range map[string]machinist.Action{
		"update node a: label x; taint y":    machinist.Update{Object: &Node{"a"}, Changes: []string{"label x", "taint y"}},
		"update status of node a":            machinist.Update{Object: &Node{"a"}, Subresource: "status"},
		"update object: label x":             machinist.Update{Object: none, Changes: []string{"label x"}},
		"create node a: missing":             machinist.Create{Object: Node{"a"}, Message: "missing"},
		"create 1 node":                      machinist.Create{Object: &Node{}},
		"create 3 nodes":                     machinist.Create{Object: &Node{}, Count: 3},
		"create object":                      machinist.Create{},
		"delete node a: TooMany: size 3":     machinist.Delete{Object: &Node{"a"}, Reason: "TooMany", Message: "size 3"},
		"delete node a":                      machinist.Delete{Object: &Node{"a"}},
		"delete object":                      machinist.Delete{},
		"read node a from the API server":    machinist.Refresh{Kind: "Node", Name: "a"},
		"list each node from the API server": machinist.Refresh{Kind: "Node"},
	} {
		require.Equal(t, want, a.String())
	}
}

// TestAction_JSON_IsItsText asserts that JSON does not contain objects, such as the data of a Secret.
func TestAction_JSON_IsItsText(t *testing.T) {
	t.Parallel()
	node := &Node{"a"}
	for want, a := range map[string]machinist.Action{
		`"update node a: label x"`: machinist.Update{Before: node, Object: node, Changes: []string{"label x"}},
		`"create node a"`:          machinist.Create{Object: node},
		`"delete node a"`:          machinist.Delete{Object: node},
	} {
		out, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}
