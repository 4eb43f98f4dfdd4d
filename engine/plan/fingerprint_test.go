package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// full returns a graph in which every field of every struct is set.
func full() *Graph {
	return &Graph{
		Job: "j", Shards: 2, Seed: 3,
		Facts: []Fact{{"f", "v"}},
		Nodes: []Node{{
			ID: 1, Op: "o", Name: "n", Attrs: []Attr{{"k", "v"}}, Schema: []Column{{"c", "t", true}},
			Inputs: []Input{{From: 1, Partitioner: Hash, Keys: []string{"k"}, Role: Side, Func: "f"}},
			Func:   "f", Site: "s", Within: "w", Single: true, RankState: true, Unkept: true, NamedAfterFunc: true, Sink: true, Queue: "q", Stage: Sum, Order: RankTree,
		}},
		Queues: []Queue{{"q", 4, true}},
	}
}

func clone(t require.TestingT, g *Graph) *Graph {
	data, err := json.Marshal(g)
	require.NoError(t, err)
	c := new(Graph)
	require.NoError(t, json.Unmarshal(data, c))
	return c
}

// TestFingerprintCoversEverything changes each field of a graph in turn. Reflection finds the
// fields, so that a new field cannot be forgotten. Each change, except of Site and Within and of what follows from Func, must
// change the fingerprint and appear in the result of Diff.
func TestFingerprintCoversEverything(t *testing.T) {
	want := full().Fingerprint()
	require.Len(t, want, 64)
	changed := 0
	// walk changes, one at a time, each leaf of the value that get returns.
	var walk func(path string, get func(*Graph) reflect.Value)
	walk = func(path string, get func(*Graph) reflect.Value) {
		v := get(full())
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, func(g *Graph) reflect.Value { return get(g).Field(i) })
			}
			return
		case reflect.Slice:
			require.Equal(t, 1, v.Len(), "%s must be set by full", path)
			walk(path+"[0]", func(g *Graph) reflect.Value { return get(g).Index(0) })
		}
		require.False(t, v.IsZero(), "%s must be set by full", path)
		g := full()
		switch v := get(g); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "'")
		case reflect.Int:
			v.SetInt(v.Int() - 1)
		case reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		case reflect.Bool:
			v.SetBool(false)
		case reflect.Slice:
			v.Set(reflect.Append(v, v.Index(0)))
		default:
			t.Fatalf("%s is a %s", path, v.Kind())
		}
		changed++
		if path == ".Nodes[0].Site" || path == ".Nodes[0].Within" || path == ".Nodes[0].RankState" || path == ".Nodes[0].Unkept" || path == ".Nodes[0].NamedAfterFunc" {
			require.Equal(t, want, g.Fingerprint(), path)
			require.Empty(t, Diff(full(), g), path)
			return
		}
		require.NotEqual(t, want, g.Fingerprint(), path)
		require.Regexp(t, "^the graphs first differ at ", Diff(full(), g), path)
	}
	walk("", func(g *Graph) reflect.Value { return reflect.ValueOf(g).Elem() })
	require.Greater(t, changed, 25)
}

// TestFingerprintBoundaries requires that the fingerprint changes if text moves from one field
// to the next or is split differently.
func TestFingerprintBoundaries(t *testing.T) {
	node := func(n Node) string { return (&Graph{Nodes: []Node{n}}).Fingerprint() }
	seen := map[string]int{}
	for i, f := range []string{
		node(Node{Op: "ab"}),
		node(Node{Op: "a", Name: "b"}),
		node(Node{Name: "ab"}),
		node(Node{Attrs: []Attr{{"a", "b"}}}),
		node(Node{Attrs: []Attr{{"ab", ""}}}),
		node(Node{Inputs: []Input{{Keys: []string{"a", "b"}}}}),
		node(Node{Inputs: []Input{{Keys: []string{"ab"}}}}),
		node(Node{Inputs: []Input{{Keys: []string{"a"}}, {Keys: []string{"b"}}}}),
		(&Graph{Job: "ab"}).Fingerprint(),
		(&Graph{Facts: []Fact{{"a", "b"}}}).Fingerprint(),
	} {
		first, taken := seen[f]
		require.False(t, taken, "graphs %d and %d must have different fingerprints", first, i)
		seen[f] = i
	}
}

// TestFingerprintIsPinned fixes the encoding, so that stored fingerprints stay valid. The
// expected value may change only together with the version in the encoding.
func TestFingerprintIsPinned(t *testing.T) {
	require.Equal(t, "66f13ca4eaef9d94201ac23b790791bade788395b23cb19af44eec46f97a451a", full().Fingerprint())
}

// TestFingerprintLongText changes single bytes of a text that is longer than the encoder's
// buffer, and requires that the fingerprint changes.
func TestFingerprintLongText(t *testing.T) {
	long := make([]byte, 100_000)
	a := (&Graph{Job: string(long)}).Fingerprint()
	for _, at := range []int{0, 4095, 4096, 50_000, 99_999} {
		long[at] = 1
		require.NotEqual(t, a, (&Graph{Job: string(long)}).Fingerprint(), "byte %d", at)
		long[at] = 0
	}
}

// TestDiffRandom compares random graphs. Diff must find a difference if and only if the
// fingerprints differ. The result of lineDiff, applied to the lines of one graph, must give the
// lines of the other graph.
func TestDiffRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := randomGraph(t)
		b := clone(t, a)
		require.Empty(t, Diff(a, b))
		i := rapid.IntRange(0, len(b.Nodes)-1).Draw(t, "node")
		b.Nodes[i].Func += "x"
		require.Contains(t, Diff(a, b), fmt.Sprintf("first differ at node %d %s", i, label(&b.Nodes[i])))
		b = randomGraph(t)
		require.Equal(t, a.Fingerprint() == b.Fingerprint(), Diff(a, b) == "")
		require.NotEmpty(t, Diff(a, &Graph{}))
		require.NotEmpty(t, Diff(&Graph{}, a))
		applied := map[string]int{}
		for _, l := range diffLines(a) {
			applied[l.text]++
		}
		for _, c := range lineDiff(diffLines(a), diffLines(b)) {
			if c[0] == '-' {
				applied[c[2:]]--
			} else {
				applied[c[2:]]++
			}
		}
		for _, l := range diffLines(b) {
			applied[l.text]--
		}
		for line, n := range applied {
			require.Zero(t, n, line)
		}
	})
}

// TestDiffLarge requires that Diff of large graphs with little in common ends soon and returns
// a short text.
func TestDiffLarge(t *testing.T) {
	d := Diff(chainGraph(2*many), branchGraph(2*many))
	require.Contains(t, d, "first differ at the job's name")
	require.Contains(t, d, "more lines")
	require.Less(t, len(d), 20_000)
}
