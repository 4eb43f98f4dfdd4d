package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMisuse(t *testing.T) {
	require.EqualError(t, &Misuse{"main.go:31", "Map", "no such column"}, "main.go:31: Map: no such column")
	require.EqualError(t, &Misuse{Message: "no operators"}, "no operators")

	g := &Graph{Shards: 3, Nodes: []Node{{Op: "Map", Inputs: []Input{{From: 5}}}}}
	err := fmt.Errorf("job %q: %w", "x", g.Validate())
	var first *Misuse
	require.True(t, errors.As(err, &first))
	require.Contains(t, first.Message, "--shards")
	all := Misuses(g.Validate())
	require.Len(t, all, 2)
	require.Equal(t, "node 0", all[1].Site)
	require.Empty(t, Misuses(nil))
	require.Empty(t, Misuses(errors.New("other")))
}

// TestValidateBounds requires that Validate is fast and that its report stays short, however
// many mistakes there are.
func TestValidateBounds(t *testing.T) {
	n := 5 * many
	ring := &Graph{Shards: 1}
	tangle := &Graph{Shards: 1}
	bare := &Graph{Shards: 1}
	wide := &Graph{Shards: 1, Nodes: []Node{{Op: "Range"}, {ID: 1, Op: "Union"}}}
	for i := range n {
		ring.Nodes = append(ring.Nodes, Node{ID: NodeID(i), Op: "Map", Inputs: []Input{{From: NodeID((i + n - 1) % n)}}})
		tangle.Nodes = append(tangle.Nodes, Node{ID: NodeID(i), Op: "Map", Inputs: []Input{{From: NodeID((i + 1) % n)}, {From: NodeID((i * 7) % n)}}})
		bare.Queues = append(bare.Queues, Queue{Name: fmt.Sprint(i)})
		wide.Nodes[0].Schema = append(wide.Nodes[0].Schema, Column{fmt.Sprint("c", i), "int64", false})
		wide.Nodes[1].Inputs = append(wide.Nodes[1].Inputs, Input{Partitioner: Hash, Keys: []string{fmt.Sprint("d", i)}})
	}
	for name, g := range map[string]*Graph{"ring": ring, "tangle": tangle, "bare": bare, "wide": wide} {
		t.Run(name, func(t *testing.T) {
			err := g.Validate()
			require.Error(t, err)
			require.LessOrEqual(t, len(Misuses(err)), maxMisuses+1)
			for _, m := range Misuses(err) {
				require.Less(t, len(m.Error()), 2000)
			}
			_ = g.Text()
		})
	}
	err := ring.Validate()
	require.ErrorContains(t, err, "closes a cycle: Map (node 0) → Map (node 1) → ")
	require.ErrorContains(t, err, fmt.Sprintf("%d more → Map (node 0)", n-8))
	require.ErrorContains(t, wide.Validate(), fmt.Sprintf("and %d more errors", n-maxMisuses))
}

// TestValidateText requires that Validate refuses text that JSON cannot represent, and that
// Text and DOT escape line breaks and control characters in names.
func TestValidateText(t *testing.T) {
	const bad = "\xff"
	for name, g := range map[string]*Graph{
		"job":   {Job: bad, Nodes: []Node{{Op: "Range"}}},
		"fact":  {Facts: []Fact{{"f", bad}}, Nodes: []Node{{Op: "Range"}}},
		"op":    {Nodes: []Node{{Op: bad}}},
		"label": {Nodes: []Node{{Op: "Range", Name: bad}}},
		"attr":  {Nodes: []Node{{Op: "Range", Attrs: []Attr{{"k", bad}}}}},
		"col":   {Nodes: []Node{{Op: "Range", Schema: []Column{{"c", bad, false}}}}},
		"site":  {Nodes: []Node{{Op: "Range", Site: bad}}},
		"part":  {Nodes: []Node{{Op: "Range", Within: bad}}},
		"func":  {Nodes: []Node{{Op: "Range", Func: bad}}},
		"queue": {Nodes: []Node{{Op: "Range"}}, Queues: []Queue{{bad, 1, false}}},
	} {
		g.Shards = 1
		require.ErrorContains(t, g.Validate(), "not UTF-8", name)
		require.NotContains(t, g.Validate().Error(), bad, name)
	}
	g := &Graph{Shards: 1, Job: "a\nb", Nodes: []Node{{Op: "Ran\nge", Name: "\x1b[31m", Attrs: []Attr{{"k", "v\nw"}}}}}
	p, err := Compile(g, 1)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(p.Text(), "\n"), p.Text())
	require.NotContains(t, p.Text()+g.Text()+p.DOT()+g.DOT(), "\x1b")
	require.Equal(t, `"a\"b\\n\nc d"`, quote("a\"b\\n\nc\x00d"))
}

func TestUnknownEnumerations(t *testing.T) {
	g := &Graph{Shards: 1, Nodes: []Node{
		{ID: 0, Op: "Range", Order: 9},
		{ID: 1, Op: "Map", Stage: -1, Inputs: []Input{{Partitioner: 99}, {Role: 99}}},
		{ID: 7, Inputs: []Input{{From: 0}}, Attrs: []Attr{{"", "v"}}, Schema: []Column{{"", "t", false}, {"c", "", false}}},
	}}
	err := g.Validate()
	for _, want := range []string{
		"unknown kind of reduction 9", "unknown kind of stage -1", "unknown partitioner 99", "unknown role 99",
		"has id 7 at position 2", "does not say what kind", "has no name", `"c" has no type`,
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = Compile(g, 1)
	require.Error(t, err)
	require.NotEmpty(t, g.Text()+g.DOT())
}

func TestNames(t *testing.T) {
	collect := func(attrs ...Attr) Node {
		return Node{Op: "Collect", Sink: true, Attrs: attrs, Inputs: []Input{{From: 0}}}
	}
	g := &Graph{
		Shards: 1,
		Facts:  []Fact{{"", "v"}},
		Queues: []Queue{{"", 1, false}},
		Nodes: []Node{
			{Op: "Range"},
			collect(Attr{"limit", "3"}, Attr{"name", "x"}),
			collect(Attr{"name", "y"}),
			collect(Attr{"name", "x"}),
			collect(),
			collect(),
		},
	}
	for i := range g.Nodes {
		g.Nodes[i].ID = NodeID(i)
	}
	require.EqualError(t, g.Validate(), "fact 0 has no name\n"+
		"queue 0 has no name\n"+
		"node 3: Collect: result \"x\" is already collected at Collect (node 1); give one another name\n"+
		"node 5: Collect: result \"\" is already collected at Collect (node 4); give one another name")
}

func TestKeyable(t *testing.T) {
	for kind, want := range map[string]bool{
		"int64": true, "uint8": true, "float32": true, "utf8": true, "large_utf8": true, "bool": true, "binary": true,
		"timestamp[us, tz=UTC]": true, "decimal(10, 2)": true, "date32": true, "fixed_size_binary[16]": true,
		"dictionary<values=utf8, indices=int32, ordered=false>": true,
		"vector[4]": false, "vector": false, "sparse[123]": false, "sparse_vector": false, "Vector[4]": false,
		"list<item: float64, nullable>": false, "fixed_size_list<item: float64>[4]": false, "large_list<x: utf8>": false,
		"struct<a: int64>": false, "map<utf8, utf8>": false, "dense_union<a: int64=0>": false, "null": false, "": false,
	} {
		require.Equal(t, want, Keyable(kind), kind)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"→→→", 3, "→→→"}, {"→→→→", 3, "→→…"}, {"", 3, ""}, {"ab", 1, "…"},
	} {
		require.Equal(t, c.want, clip(c.s, c.n), "%q", c.s)
	}
}
