package tree

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestWriter requires that trees that are written one by one give the same text as MarshalJSON,
// for any text before it and any number of expected trees.
func TestWriter(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			e := valid(t, 1, s)
			want, err := json.Marshal(e)
			require.NoError(t, err)
			empty := *e
			empty.Trees = nil
			for _, total := range []int{0, len(e.Trees), 1 << 20} {
				w, err := NewWriter(&empty, total)
				require.NoError(t, err)
				var scratch Tree // overwritten after each Add, to require that Add does not retain it
				for i := range e.Trees {
					from := &e.Trees[i]
					scratch.Nodes, scratch.Sets, scratch.Values = append(scratch.Nodes[:0], from.Nodes...), slices.Clone(from.Sets), slices.Clone(from.Values)
					scratch.Output, scratch.Weight = from.Output, from.Weight
					require.NoError(t, w.Add(&scratch))
				}
				text, err := w.AppendJSON([]byte("before: "))
				require.NoError(t, err)
				require.Equal(t, "before: "+string(want), string(text))
			}
		})
	}
}

// TestWriterLarge requires a correct text if the text before the trees exceeds the memory that
// is reserved for it, and if later trees are larger than earlier trees.
func TestWriterLarge(t *testing.T) {
	e := one()
	trees := e.Trees
	wide := Tree{Nodes: make([]Node, 1, 40_001), Weight: 1}
	for i := range 20_000 {
		wide.Nodes[i].Left, wide.Nodes[i].Right = int32(len(wide.Nodes)), int32(len(wide.Nodes))+1
		wide.Nodes = append(wide.Nodes, Node{Value: 0.1}, Node{Value: 0.3})
	}
	e.Trees = append(slices.Clone(trees), wide, trees[1], wide)
	before := make([]byte, 3*frontRoom)
	want, err := e.AppendJSON(slices.Clone(before))
	require.NoError(t, err)
	all := e.Trees
	e.Trees = nil
	w, err := NewWriter(e, 3)
	require.NoError(t, err)
	for i := range all {
		require.NoError(t, w.Add(&all[i]))
	}
	got, err := w.AppendJSON(before)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// TestWriterGoesOn requires that written trees can be read back one by one. A second Writer to
// which they are added first must then produce the same text as the first Writer would produce.
func TestWriterGoesOn(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			e := valid(t, 2, s)
			want, err := json.Marshal(e)
			require.NoError(t, err)
			empty := *e
			empty.Trees = nil
			for kept := 0; kept <= len(e.Trees); kept += testsize.Raced(1, 7) {
				first, err := NewWriter(&empty, len(e.Trees))
				require.NoError(t, err)
				for i := range e.Trees[:kept] {
					require.NoError(t, first.Add(&e.Trees[i]))
				}
				list := first.AppendTrees(nil)
				w, err := NewWriter(&empty, len(e.Trees))
				require.NoError(t, err)
				require.NoError(t, EachTree(list, w.Add))
				require.Equal(t, first.Size(), w.Size())
				for i := range e.Trees[kept:] {
					require.NoError(t, w.Add(&e.Trees[kept+i]))
				}
				text, err := w.AppendJSON(nil)
				require.NoError(t, err)
				require.Equal(t, string(want), string(text))
			}
		})
	}
}

// FuzzEachTree requires that any text gives an error, or trees that a Writer accepts or refuses
// without a panic.
func FuzzEachTree(f *testing.F) {
	e := one()
	trees := e.Trees
	e.Trees = nil
	w, err := NewWriter(e, len(trees))
	require.NoError(f, err)
	for i := range trees {
		require.NoError(f, w.Add(&trees[i]))
	}
	f.Add(w.AppendTrees(nil))
	for _, text := range []string{"", "[]", "{}", "[1]", "[{}]", "[[", `[{"feature":[],"left":[],"threshold":[],"value":[]}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := NewWriter(e, 2)
		require.NoError(t, err)
		if EachTree(text, w.Add) != nil {
			return
		}
		again, err := NewWriter(e, 2)
		require.NoError(t, err)
		list := w.AppendTrees(nil)
		require.NoError(t, EachTree(list, again.Add))
		require.Equal(t, string(list), string(again.AppendTrees(nil)))
	})
}

func TestWriterRefuses(t *testing.T) {
	e := one()
	_, err := NewWriter(e, 2)
	require.ErrorContains(t, err, "has trees already")
	trees := e.Trees
	e.Trees, e.Base = nil, e.Base[:1]
	_, err = NewWriter(e, 2)
	require.ErrorContains(t, err, "2 outputs but a base for 1")
	e.Base = []float64{0, 0}
	w, err := NewWriter(e, 2)
	require.NoError(t, err)
	require.NoError(t, w.Add(&trees[0]))
	require.ErrorContains(t, w.Add(&Tree{Weight: 1}), "tree 1: it has no nodes")
	require.NoError(t, w.Add(&trees[1]))
	text, err := w.AppendJSON(nil)
	require.NoError(t, err)
	var back Ensemble
	require.NoError(t, json.Unmarshal(text, &back))
	require.Len(t, back.Trees, 2)
}

// TestWriterTakesMemoryOnce requires that adding the second tree allocates the memory for all
// expected trees, and little more.
func TestWriterTakesMemoryOnce(t *testing.T) {
	e := one()
	trees := e.Trees
	e.Trees = nil
	w, err := NewWriter(e, 20_000)
	require.NoError(t, err)
	taken := 0
	for i := range 20_000 {
		require.NoError(t, w.Add(&trees[0]))
		if i == 1 {
			taken = cap(w.text)
		}
	}
	require.Equal(t, taken, cap(w.text))
	require.Less(t, float64(taken), 1.1*float64(len(w.text))+2*frontRoom)
	before := &w.text[0]
	text, err := w.AppendJSON([]byte("before"))
	require.NoError(t, err)
	require.Same(t, before, &text[0])
}
