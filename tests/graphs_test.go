package tests

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// This file tests random graphs of operators over small random tables. At every setting the
// rows of a graph must equal the rows of a reference that processes one row after another. All
// datasets have the columns of cell, so that any operator can follow any other operator.

// cell is a row of all datasets.
type cell struct {
	Key   int64
	Value float64
	Text  *string
}

// step adds one dataset, which an operator makes from earlier datasets.
type step struct {
	op   int   // index in graphOps
	in   []int // indices of earlier datasets, one for each input of the operator
	arg  int
	rows []cell // rows of a source

	purpose *string // purpose of the step's random draws, which the engine derives from the position in the graph
}

func (s step) String() string {
	return fmt.Sprintf("%s%v arg %d, %d rows", graphOps[s.op].name, s.in, s.arg, len(s.rows))
}

// graphOp is an operator in two versions: build adds the operator of the engine, and reference
// computes the expected rows.
type graphOp struct {
	name   string
	inputs int
	build  func(b *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset
	// reference returns the rows of the operator's output by shard.
	reference func(s step, in [][][]cell) [][]cell
}

const graphShards, graphSeed = 8, 99

// differentSettings has the parallelisms and batch sizes at which a random graph runs.
var differentSettings = []struct{ p, rows int }{{1, 1024}, {2, 7}, {3, 1}, {8, 2}}

func TestRandomGraphs(t *testing.T) {
	used := map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt)
		var reference [][][]cell
		for _, at := range differentSettings {
			ran := runSteps(t, steps, at.p, at.rows)
			if reference == nil { // computed after the first run, because the reference needs the purposes of the draws
				reference = make([][][]cell, len(steps))
				for i, s := range steps {
					used[graphOps[s.op].name] = true
					reference[i] = graphOps[s.op].reference(s, pick(reference, s.in))
				}
			}
			for i, got := range ran {
				if want := cellLines(reference[i]); want != got {
					rt.Fatalf("p=%d rows=%d: dataset %d of\n%v\nis\n%s\nwant\n%s", at.p, at.rows, i, steps, got, want)
				}
			}
		}
	})
	for _, op := range graphOps {
		require.True(t, used[op.name], "the random graphs must contain the operator %s", op.name)
	}
}

// drawSteps returns a random list of steps: one or two tables and the operators that use them.
func drawSteps(rt *rapid.T) []step {
	texts := []*string{nil, ptr(""), ptr("a"), ptr("bc")}
	row := rapid.Custom(func(rt *rapid.T) cell {
		exponent := rapid.IntRange(-27, 53).Draw(rt, "exponent")
		return cell{
			Key:   rapid.Int64Range(-6, 6).Draw(rt, "key"),
			Value: math.Ldexp(rapid.Float64Range(-2, 2).Draw(rt, "fraction"), exponent),
			Text:  rapid.SampledFrom(texts).Draw(rt, "text"),
		}
	})
	var steps []step
	for range rapid.IntRange(1, 2).Draw(rt, "tables") {
		steps = append(steps, step{rows: rapid.SliceOfN(row, 0, 40).Draw(rt, "rows")})
	}
	for range rapid.IntRange(1, 7).Draw(rt, "steps") {
		s := step{op: rapid.IntRange(1, len(graphOps)-1).Draw(rt, "op"), arg: rapid.IntRange(0, 9).Draw(rt, "arg"), purpose: new(string)}
		for range graphOps[s.op].inputs {
			s.in = append(s.in, rapid.IntRange(0, len(steps)-1).Draw(rt, "input"))
		}
		steps = append(steps, s)
	}
	return steps
}

func ptr[T any](v T) *T { return &v }

// pick returns the elements with the given indices.
func pick[T any](all []T, which []int) []T {
	var picked []T
	for _, i := range which {
		picked = append(picked, all[i])
	}
	return picked
}

// located is a cell, as text, with the number of its shard.
type located struct {
	Shard int64
	Cell  string
}

// runSteps runs the steps as a job and returns the rows of every dataset as text.
func runSteps(t *testing.T, steps []step, p, batchRows int) []string {
	job := engine.Define("graph", func(b *engine.Builder, _ struct{}) error {
		var made []*engine.Dataset
		for i, s := range steps {
			d := graphOps[s.op].build(b, s, pick(made, s.in))
			made = append(made, d)
			where := operators.MapPartition(d, func(s *operators.Shard[cell], emit func(located)) error {
				for c := range s.Rows() {
					emit(located{int64(s.Index), c.String()})
				}
				return nil
			})
			engine.Collect(where, fmt.Sprint(i))
		}
		return nil
	})
	mem := batchtest.Allocator(t)
	result, err := engine.Run(t.Context(), job, struct{}{}, engine.Parallelism(p), engine.BatchRows(batchRows),
		engine.Shards(graphShards), engine.Seed(graphSeed), engine.Allocator(mem), engine.SpillDir(t.TempDir()))
	require.NoError(t, err)
	defer result.Release()
	texts := make([]string, len(steps))
	for i := range steps {
		rows, err := engine.Rows[located](result, fmt.Sprint(i))
		require.NoError(t, err)
		var text strings.Builder
		for _, r := range rows {
			fmt.Fprintf(&text, "%d: %s\n", r.Shard, r.Cell)
		}
		texts[i] = text.String()
	}
	return texts
}

// String returns the cell as text. Cells with different bits have different texts.
func (c cell) String() string {
	text := "null"
	if c.Text != nil {
		text = fmt.Sprintf("%q", *c.Text)
	}
	return fmt.Sprintf("%d %016x %v %s", c.Key, math.Float64bits(c.Value), c.Value, text)
}

// cellLines returns rows as text in the format of runSteps.
func cellLines(shards [][]cell) string {
	var text strings.Builder
	for shard, rows := range shards {
		for _, c := range rows {
			fmt.Fprintf(&text, "%d: %s\n", shard, c)
		}
	}
	return text.String()
}

// perRow is the reference of operators that replace each row by rows in the same shard. f
// returns these rows; its parameter index is the number of the row in its shard.
func perRow(d [][]cell, f func(shard, index int, c cell) []cell) [][]cell {
	out := make([][]cell, graphShards)
	for shard, rows := range d {
		for i, c := range rows {
			out[shard] = append(out[shard], f(shard, i, c)...)
		}
	}
	return out
}

// exchanged is the reference of operators that send each row to the shard that place returns.
// Rows arrive in the order of their source shards. Rows of the same source shard arrive in the
// order that they have in that shard.
func exchanged(d [][]cell, place func(shard, index int, c cell) int) [][]cell {
	out := make([][]cell, graphShards)
	for shard, rows := range d {
		for i, c := range rows {
			to := place(shard, i, c)
			out[to] = append(out[to], c)
		}
	}
	return out
}

// treeFold folds the values of shards recursively: it folds each half of values, and then
// merges the two results. A shard without a value has nil in values.
func treeFold[T any](values []*T, f func(left, right T) T) *T {
	if len(values) == 1 {
		return values[0]
	}
	left, right := treeFold(values[:len(values)/2], f), treeFold(values[len(values)/2:], f)
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	}
	return ptr(f(*left, *right))
}

// drawnAt returns the random draw of the row with the given index in a shard.
func drawnAt(purpose string, shard, index int) float64 {
	return sharding.NewRandom(graphSeed, purpose, shard, 0).Float64At(uint64(index))
}
