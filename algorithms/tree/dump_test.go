package tree

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const oneText = `tree 0, output 1, weight 0.3
0: age < +Inf, missing right, gain 0.1, cover 5, count 5
  1: <port> "é" not in {C, Q, S, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, missing right, gain 1e-300, cover 3, count 3
    2: leaf 5e-324, cover 1, count 1
    3: leaf -0, cover 2, count 2
  4: leaf 1.7976931348623157e+308, cover 2, count 2
tree 1
0: leaf 0.25 0.75, cover 0
`

// small returns a small ensemble for tests of drawings.
func small() *Ensemble {
	return &Ensemble{
		Features: []string{"age & more", "port"}, Categories: [][]string{nil, {"C", "Q", "S"}}, Outputs: 1, Base: []float64{0},
		Trees: []Tree{{
			Nodes: []Node{
				{Left: 1, Right: 2, Threshold: 31.5, Flags: DefaultLeft, Gain: 0.125, Cover: 9, Count: 5},
				{Feature: 1, Left: 3, Right: 4, Flags: Categorical, SetWords: 1, Gain: 3, Cover: 4},
				{Left: 5, Right: 6, Threshold: -1, Flags: NaNIsZero, Gain: 2, Cover: 5},
				{Value: 1.5, Cover: 1}, {Value: -0.25, Cover: 3}, {Cover: 2}, {Value: 12345.678, Cover: 3},
			},
			Sets: []uint32{5}, Weight: 1,
		}},
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, one().Validate())
	require.NoError(t, one().WriteText(&b))
	require.Equal(t, oneText, b.String())
	odd := small()
	odd.Trees[0].Nodes[0].Flags |= ZeroMissing
	b.Reset()
	require.NoError(t, odd.WriteText(&b))
	require.Equal(t, `tree 0
0: age & more < 31.5, missing left and zero, gain 0.125, cover 9, count 5
  1: port in {C, S}, missing right, gain 3, cover 4
    3: leaf 1.5, cover 1
    4: leaf -0.25, cover 3
  2: age & more < -1, missing is zero, gain 2, cover 5
    5: leaf 0, cover 2
    6: leaf 12345.678, cover 3
`, b.String())
}

func TestDump(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, small().WriteDump(&b))
	require.JSONEq(t, `[{"tree": 0, "output": 0, "weight": 1, "root":
	 {"node": 0, "feature": "age & more", "less": 31.5, "missing": "left", "gain": 0.125, "cover": 9, "count": 5,
	  "left": {"node": 1, "feature": "port", "in": ["C", "S"], "missing": "right", "gain": 3, "cover": 4,
	   "left": {"node": 3, "leaf": [1.5], "cover": 1}, "right": {"node": 4, "leaf": [-0.25], "cover": 3}},
	  "right": {"node": 2, "feature": "age & more", "less": -1, "missing": "is zero", "gain": 2, "cover": 5,
	   "left": {"node": 5, "leaf": [0], "cover": 2}, "right": {"node": 6, "leaf": [12345.678], "cover": 3}}}}]`, b.String())
	for name, s := range shapes {
		b.Reset()
		require.NoError(t, valid(t, 1, s).WriteDump(&b))
		require.True(t, json.Valid(b.Bytes()), name)
	}
}

func TestDot(t *testing.T) {
	var b bytes.Buffer
	e := small()
	e.Features[1] = `a"b\`
	require.NoError(t, e.WriteDot(&b, 0))
	require.Equal(t, `digraph tree0 {
  node [shape=box];
  0 [label="age & more < 31.5"];
  0 -> 1 [label="yes", penwidth=2];
  0 -> 2 [label="no", style=dashed];
  1 [label="a\"b\\ in {C, S}"];
  1 -> 3 [label="yes"];
  1 -> 4 [label="no", style=dashed, penwidth=2];
  3 [label="1.5", style=rounded];
  4 [label="-0.25", style=rounded];
  2 [label="age & more < -1"];
  2 -> 5 [label="yes"];
  2 -> 6 [label="no", style=dashed];
  5 [label="0", style=rounded];
  6 [label="1.235e+04", style=rounded];
}
`, b.String())
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, small().WriteSVG(&b, 0, DrawOptions{}))
	want, err := os.ReadFile("testdata/one.svg")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())

	// Special characters in names must be escaped.
	e := small()
	e.Features[0] = "<&\x00\xff>"
	b.Reset()
	require.NoError(t, e.WriteSVG(&b, 0, DrawOptions{}))
	texts := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok && strings.HasPrefix(string(text), "<&\ufffd\ufffd> < ") {
			texts++
		}
	}
	require.Equal(t, 2, texts)
}

// TestBoxes requires that the boxes of a level do not overlap, and that each parent is above
// the middle of its children.
func TestBoxes(t *testing.T) {
	for name, s := range shapes {
		e := valid(t, 3, s)
		d, err := e.drawing(0, DrawOptions{Depth: 7})
		require.NoError(t, err, name)
		ends := map[int]int{}
		for i := range d.boxes { // boxes are stored depth first, so the boxes of a level are in the order from left to right
			b := &d.boxes[i]
			if end, ok := ends[b.y]; ok {
				require.GreaterOrEqual(t, b.x-b.w/2, end+boxGap, name)
			}
			ends[b.y] = b.x + b.w/2
			require.GreaterOrEqual(t, b.x-b.w/2, margin)
			require.LessOrEqual(t, b.x+b.w/2, d.w-margin)
			require.LessOrEqual(t, b.y+b.h, d.h-margin)
			if b.left > 0 {
				require.Equal(t, 2*b.x, d.boxes[b.left].x+d.boxes[b.right].x)
				require.Less(t, b.y+b.h, d.boxes[b.left].y)
			}
		}
	}
}

func TestDrawingRefuses(t *testing.T) {
	e := valid(t, 1, shapes["deep"])
	require.ErrorContains(t, chain(1000).WriteSVG(io.Discard, 0, DrawOptions{}), "more than 2000 boxes to draw: set DrawOptions.Depth")
	require.ErrorContains(t, e.WriteSVG(io.Discard, 9, DrawOptions{}), "no tree 9 among 4")
	require.ErrorContains(t, e.WriteSVG(io.Discard, -1, DrawOptions{}), "no tree -1 among 4")
	require.NoError(t, e.WriteSVG(io.Discard, 0, DrawOptions{Depth: 6}))
}

// chain returns a tree of the given depth in which every right child is split.
func chain(depth int) *Ensemble {
	t := Tree{Weight: 1}
	for i := range depth {
		t.Nodes = append(t.Nodes, Node{Left: int32(2*i + 1), Right: int32(2*i + 2), Cover: float64(depth + 1 - i), Threshold: float64(i)}, Node{Value: float64(i), Cover: 1})
	}
	t.Nodes = append(t.Nodes, Node{Value: float64(depth), Cover: 1})
	return &Ensemble{Features: []string{"x"}, Outputs: 1, Base: []float64{0}, Trees: []Tree{t}}
}
