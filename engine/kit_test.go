package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The operators of the tests are a source of integers and a map over them.

var numberSchema = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)

// number is a row of numberSchema.
type number struct {
	Value int64 `column:"n"`
}

// numbers adds a source of 0..n-1, divided evenly among the shards.
func numbers(b *Builder, n int) *Dataset {
	return b.Add(Spec{
		Op:     "Numbers",
		Attrs:  []Attr{{Key: "n", Value: fmt.Sprint(n)}},
		Schema: arrowrows.Schema(numberSchema),
		Source: func() Source { return numberSource{n} },
	})
}

type numberSource struct{ n int }

func (numberSource) Open(*Context) error { return nil }
func (numberSource) Close() error        { return nil }

func (s numberSource) ReadShard(c *Context, shard int, out Output) error {
	r := sharding.Split(s.n, c.Shards, shard)
	for lo := r.Lo; lo < r.Hi; lo += c.BatchRows {
		if err := context.Cause(c); err != nil {
			return err
		}
		hi := min(lo+c.BatchRows, r.Hi)
		rows := numberBatch(c.Allocator, hi-lo, func(i int) int64 { return int64(lo + i) })
		err := out.Emit(shard, arrowrows.Batch(rows))
		rows.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// numberBatch returns an owned batch of n numbers.
func numberBatch(mem memory.Allocator, n int, value func(i int) int64) arrow.Record {
	b := array.NewInt64Builder(mem)
	defer b.Release()
	for i := range n {
		b.Append(value(i))
	}
	col := b.NewArray()
	defer col.Release()
	return array.NewRecord(numberSchema, []arrow.Array{col}, int64(n))
}

// dropped adds a sink operator that ignores its rows.
func dropped(d *Dataset) {
	d.Builder().Add(Spec{Op: "Drop", Inputs: []Port{{From: d}}, Operator: func() Operator { return swallower{} }})
}

// transform adds an operator that applies f to each number and accumulates its input under
// "seen".
func transform(d *Dataset, name string, f func(c *Context, n int64) (int64, error)) *Dataset {
	return d.Builder().Add(Spec{
		Op:       "Transform",
		Name:     name,
		Schema:   arrowrows.Schema(numberSchema),
		Inputs:   []Port{{From: d}},
		Func:     f,
		Operator: func() Operator { return transformer{f} },
	})
}

type transformer struct {
	f func(c *Context, n int64) (int64, error)
}

func (transformer) Open(*Context) error                  { return nil }
func (transformer) EndShard(*Context, int, Output) error { return nil }
func (transformer) Finish(*Context, Output) error        { return nil }
func (transformer) Close() error                         { return nil }

func (o transformer) Process(c *Context, _, shard int, in Batch, out Output) error {
	column := arrowrows.Record(in).Column(0).(*array.Int64)
	var failed error
	made := numberBatch(c.Allocator, column.Len(), func(i int) int64 {
		v, err := o.f(c, column.Value(i))
		if err != nil && failed == nil {
			failed = err
		}
		return v
	})
	defer made.Release()
	if failed != nil {
		return failed
	}
	c.Accumulate("seen", shard, float64(in.Len()))
	return out.Emit(shard, arrowrows.Batch(made))
}

func square(_ *Context, n int64) (int64, error) { return n * n, nil }

// squaresArgs are the arguments of the job squares.
type squaresArgs struct {
	N    int    `help:"How many numbers." default:"10"`
	Fail string `help:"Fail with this message."`
}

// squares collects the squares of 0..N-1 as "squares".
var squares = Define("squares", func(b *Builder, a squaresArgs) error {
	f := square
	if a.Fail != "" {
		f = func(*Context, int64) (int64, error) { return 0, fmt.Errorf("%s", a.Fail) }
	}
	Collect(transform(numbers(b, a.N), "square", f), "squares")
	return nil
})

// checkedAllocator returns an option whose allocator fails the test if a batch is not released.
func checkedAllocator(t testing.TB) Option {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return Allocator(mem)
}

// buildFails runs the job's function and returns the message of its misuses.
func buildFails(t *testing.T, build func(b *Builder) error) string {
	t.Helper()
	_, err := BuildGraph(Anonymous(build), struct{}{})
	require.Error(t, err)
	return err.Error()
}

// here returns the position of the caller's line, plus the given number of lines.
func here(moved int) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line+moved)
}

func requireLines(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got))
}

// recordsOf returns collected rows as records.
func recordsOf(r *Result, name string) ([]arrow.Record, error) {
	batches, err := r.Batches(name)
	return arrowrows.Records(batches), err
}
