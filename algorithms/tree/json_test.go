package tree

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJSON requires that an ensemble of every shape is the same, bit for bit, after it was
// written and read.
func TestJSON(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			e := valid(t, 1, s)
			text, err := json.Marshal(e)
			require.NoError(t, err)
			var back Ensemble
			require.NoError(t, json.Unmarshal(text, &back))
			sameBits(t, e, &back)
			again, err := json.Marshal(&back)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		})
	}
}

// one returns an ensemble in which every field is set.
func one() *Ensemble {
	return &Ensemble{
		Features: []string{"age", "<port> \"é\""}, Categories: [][]string{nil, {"C", "Q", "S"}}, Seen: [][]int32{{0, 7}, nil},
		Outputs: 2, Base: []float64{0.5, math.Copysign(0, -1)}, Average: true, Single: true,
		Trees: []Tree{{
			Nodes: []Node{
				{Left: 1, Right: 4, Threshold: math.Inf(1), Gain: 0.1, Cover: 5, Count: 5},
				{Feature: 1, Left: 2, Right: 3, Flags: Categorical | SetRight, Set: 1, SetWords: 1, Gain: 1e-300, Cover: 3, Count: 3},
				{Value: 5e-324, Cover: 1, Count: 1}, {Value: math.Copysign(0, -1), Cover: 2, Count: 2},
				{Value: math.MaxFloat64, Cover: 2, Count: 2},
			},
			Sets: []uint32{7, math.MaxUint32}, Output: 1, Weight: 0.3,
		}, {
			Nodes: []Node{{}}, Values: []float64{0.25, 0.75}, Weight: 1,
		}},
	}
}

// oneJSON is the JSON text of the result of one, with spaces added.
const oneJSON = `{"features": ["age", "\u003cport\u003e \"é\""], "categories": [{"feature": 1, "names": ["C", "Q", "S"]}], "seen": [{"feature": 0, "codes": [0, 7]}],
 "outputs": 2, "base": [0.5, -0], "average": true, "single": true, "trees": [
  {"feature": [0, 1, 0, 0, 0], "left": [1, 2, 0, 0, 0], "right": [4, 3, 0, 0, 0], "threshold": ["inf", 0, 0, 0, 0],
   "value": [0, 0, 5e-324, -0, 1.7976931348623157e+308], "flags": [0, 6, 0, 0, 0], "gain": [0.1, 1e-300, 0, 0, 0],
   "cover": [5, 3, 1, 2, 2], "count": [5, 3, 1, 2, 2], "set": [0, 1, 0, 0, 0], "setWords": [0, 1, 0, 0, 0],
   "sets": [7, 4294967295], "output": 1, "weight": 0.3},
  {"feature": [0], "left": [0], "threshold": [0], "value": [0], "values": [0.25, 0.75]}]}`

func TestJSONText(t *testing.T) {
	text, err := json.Marshal(one())
	require.NoError(t, err)
	require.JSONEq(t, oneJSON, string(text))
	var read Ensemble
	require.NoError(t, json.Unmarshal([]byte(oneJSON), &read))
	sameBits(t, one(), &read)
}

func TestJSONRefuses(t *testing.T) {
	for from, to := range map[string][2]string{
		`"outputs": 2`:                   {`"outputs": 2.5`, "outputs: 2.5 is no integer"},
		`"base": [0.5, -0]`:              {`"base": [0.5, 1e999]`, "base: entry 1: 1e999 is out of range"},
		`"average": true`:                {`"average": null`, "average: it is neither true nor false"},
		`"single": true`:                 {`"single": true, "single": true`, `member "single" occurs twice`},
		`"left": [1, 2, 0, 0, 0]`:        {`"left": [1, 2, 0, 0]`, "trees: entry 0: feature has 5 entries, and left has 4"},
		`"left": [1, 2, 0, 0, 0], `:      {"", `trees: entry 0: member "left" is missing`},
		`"right": [4, 3, 0, 0, 0]`:       {`"right": [1, 3, 0, 0, 0]`, "tree 0: node 0: its child 1 has another parent too, or is both of its children"},
		`"right": [4,`:                   {`"right": [5,`, "tree 0: node 0: its child 5 does not follow it among 5 nodes"},
		`"threshold": ["inf"`:            {`"threshold": ["nan"`, `threshold: entry 0: "nan" is no number`},
		`"flags": [0, 6`:                 {`"flags": [0, 256`, "flags: entry 1: 256 is out of range"},
		`"flags": [0,`:                   {`"flags": [64,`, "tree 0: node 0: it has unknown flags 0x40"},
		`"count": [5`:                    {`"count": [-5`, "its count is -5"},
		`"cover": [5`:                    {`"cover": [-5`, "its cover is -5"},
		`"sets": [7, 4294967295]`:        {`"sets": [7]`, "tree 0: node 1: its set is 1 words from word 1 of 1"},
		`"output": 1`:                    {`"output": 2`, "tree 0: it adds to output 2 of 2"},
		`"values": [0.25, 0.75]`:         {`"values": [0.25]`, "tree 1: it has 1 values for 1 nodes and 2 outputs"},
		`{"feature": 1, "names"`:         {`{"feature": 2, "names"`, "categories of feature 2 of 2"},
		`"names": ["C", "Q", "S"]}`:      {`"names": []}, {"feature": 1, "names": []}`, "categories of feature 1, twice"},
		`{"feature": 0, "codes"`:         {`{"feature": 2, "codes"`, "codes that were seen of feature 2 of 2"},
		`[0, 7]}`:                        {`[]}, {"feature": 0, "codes": [1]}`, "codes that were seen of feature 0, twice"},
		`"codes": [0, 7`:                 {`"codes": [7, 7`, "the codes that were seen of feature 0 do not ascend from 0 on: code 1 is 7"},
		`"codes": [0`:                    {`"codes": [-1`, "do not ascend from 0 on: code 0 is -1"},
		`"features": ["age"`:             {`"features": [1`, "features: entry 0: byte 14: a string was expected"},
		`"weight": 0.3`:                  {`"wait": 0.3`, `unknown member "wait"`},
		`"trees": [`:                     {`"trees": 1, "extra": [`, "trees: byte "},
		`"value": [0, 0, 5e-324`:         {`"value": [0, 0, true`, "value: entry 2: byte "},
		`"gain": [0.1, 1e-300, 0, 0, 0]`: {`"gain": "x"`, "a list was expected"},
	} {
		require.Equal(t, 1, strings.Count(oneJSON, from), from)
		e := one()
		err := json.Unmarshal([]byte(strings.Replace(oneJSON, from, to[0], 1)), e)
		require.ErrorContains(t, err, to[1])
		sameBits(t, e, one(), "an error leaves the ensemble as it was")
	}
	var e Ensemble
	for _, text := range []string{"", "null", "[]", "{", oneJSON + "x"} {
		require.Error(t, e.UnmarshalJSON([]byte(text)), text)
	}
	bad := one()
	bad.Features[0] = "\xff"
	_, err := json.Marshal(bad)
	require.ErrorContains(t, err, `"\xff" is not UTF-8`)
	bad.Base = nil
	_, err = json.Marshal(bad)
	require.ErrorContains(t, err, "2 outputs but a base for 0")
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(oneJSON))
	for _, s := range shapes {
		s.trees, s.leaves = min(s.trees, 2), min(s.leaves, 8)
		text, err := json.Marshal(random(1, s))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, back Ensemble
		if e.UnmarshalJSON(text) != nil {
			return
		}
		written, err := e.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, back.UnmarshalJSON(written))
		sameBits(t, &e, &back)
		row := make([]float64, len(e.Features))
		out := make([]float64, e.Outputs)
		e.Scorer().Scores(row, out)
		require.Equal(t, allBits(plainScores(&e, row)), allBits(out))
	})
}
