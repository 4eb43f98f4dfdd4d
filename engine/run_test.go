package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

func TestRunCollectsInShardOrder(t *testing.T) {
	for _, p := range []int{1, 2, 3, 8} {
		for _, batch := range []int{1, 7, 1024} {
			t.Run(fmt.Sprintf("p=%d batch=%d", p, batch), func(t *testing.T) {
				r, err := Run(t.Context(), squares, squaresArgs{N: 100}, Parallelism(p), Shards(8), BatchRows(batch), checkedAllocator(t))
				require.NoError(t, err)
				defer r.Release()
				rows, err := Rows[number](r, "squares")
				require.NoError(t, err)
				require.Len(t, rows, 100)
				for i, row := range rows {
					require.Equal(t, int64(i*i), row.Value)
				}
				seen, ok := r.Accumulator("seen")
				require.True(t, ok)
				require.Equal(t, 100.0, seen)
				_, ok = r.Accumulator("unseen")
				require.False(t, ok)
				require.Equal(t, p, r.Plan.Parallelism)
				require.Equal(t, r.Graph.Fingerprint(), r.Plan.Fingerprint)
				require.NotEmpty(t, r.Report.Vertices)
			})
		}
	}
}

func TestMoreSubtasksThanRows(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		r, err := Run(t.Context(), squares, squaresArgs{N: n}, Parallelism(8), Shards(16), checkedAllocator(t))
		require.NoError(t, err)
		rows, err := Rows[number](r, "squares")
		require.NoError(t, err)
		require.Equal(t, []number{{0}, {1}, {4}}[:n], rows)
		r.Release()
	}
}

func TestDefaultParallelismFitsTheShards(t *testing.T) {
	p, err := Compile(squares, squaresArgs{}, Shards(1))
	require.NoError(t, err)
	require.Equal(t, 1, p.Parallelism)
	p, err = Compile(squares, squaresArgs{})
	require.NoError(t, err)
	require.Equal(t, DefaultShards, p.Shards)
	require.Zero(t, p.Seed)
}

func TestResultsByName(t *testing.T) {
	r, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		Collect(numbers(b, 5), "numbers")
		Collect(numbers(b, 0), "nothing")
		return nil
	}), struct{}{}, Shards(4), checkedAllocator(t))
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, []string{"numbers", "nothing"}, r.Names())

	recs, err := recordsOf(r, "numbers")
	require.NoError(t, err)
	total := int64(0)
	for _, rec := range recs {
		total += rec.NumRows()
	}
	require.Equal(t, int64(5), total)

	none, err := Rows[number](r, "nothing")
	require.NoError(t, err)
	require.Empty(t, none)
	schema, err := r.Schema("nothing")
	require.NoError(t, err)
	require.True(t, schema.Equal(arrowrows.Schema(numberSchema)))

	_, err = recordsOf(r, "number")
	require.EqualError(t, err, `no result "number" was collected; did you mean "numbers"?`)
	_, err = Rows[number](r, "xyz")
	require.EqualError(t, err, `no result "xyz" was collected (results: nothing, numbers)`)
	_, err = r.Schema("xyz")
	require.Error(t, err)
	_, err = Rows[struct {
		Other string
	}](r, "numbers")
	require.ErrorContains(t, err, `result "numbers": `)
	require.ErrorContains(t, err, `"other"`)

	r.Release() // a second Release does nothing
	_, err = recordsOf(r, "numbers")
	require.EqualError(t, err, `result "numbers": it was released already: call Release when all is read`)
	_, err = Rows[number](r, "numbers")
	require.ErrorContains(t, err, "released already")
	schema, err = r.Schema("numbers")
	require.NoError(t, err)
	require.True(t, schema.Equal(arrowrows.Schema(numberSchema)))
	require.Nil(t, r.Queue("none"))
	require.Nil(t, r.Series("none", "x"))
	(*Result)(nil).Release()
}

// overwritingAllocator is an allocator that overwrites freed memory, so that tests detect later
// reads of it.
type overwritingAllocator struct{ *memory.GoAllocator }

func (overwritingAllocator) Free(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}

func TestRowsShareNothingWithTheResult(t *testing.T) {
	words := arrow.NewSchema([]arrow.Field{{Name: "word", Type: arrow.BinaryTypes.String}}, nil)
	r, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		Collect(b.Add(Spec{
			Op: "Words", Schema: arrowrows.Schema(words), Inputs: []Port{{From: numbers(b, 3)}},
			Operator: func() Operator { return speller{words} },
		}), "words")
		return nil
	}), struct{}{}, Shards(1), Allocator(overwritingAllocator{memory.NewGoAllocator()}))
	require.NoError(t, err)
	type word struct{ Word string }
	rows, err := Rows[word](r, "words")
	require.NoError(t, err)
	r.Release()
	require.Equal(t, []word{{"number 0"}, {"number 1"}, {"number 2"}}, rows)
}

// speller is an operator that emits each number as a text.
type speller struct{ schema *arrow.Schema }

func (speller) Open(*Context) error                  { return nil }
func (speller) EndShard(*Context, int, Output) error { return nil }
func (speller) Finish(*Context, Output) error        { return nil }
func (speller) Close() error                         { return nil }

func (s speller) Process(c *Context, _, shard int, in Batch, out Output) error {
	rows := arrowrows.Record(in)
	b := array.NewStringBuilder(c.Allocator)
	defer b.Release()
	for _, v := range rows.Column(0).(*array.Int64).Int64Values() {
		b.Append(fmt.Sprint("number ", v))
	}
	col := b.NewArray()
	defer col.Release()
	made := array.NewRecord(s.schema, []arrow.Array{col}, rows.NumRows())
	defer made.Release()
	return out.Emit(shard, arrowrows.Batch(made))
}

func TestNothingCollected(t *testing.T) {
	r, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		numbers(b, 5)
		return nil
	}), struct{}{}, checkedAllocator(t))
	require.NoError(t, err)
	defer r.Release()
	_, err = recordsOf(r, "x")
	require.EqualError(t, err, `no result "x" was collected: the job collects none`)
}

func TestRunThatFails(t *testing.T) {
	_, err := Run(t.Context(), squares, squaresArgs{N: 10, Fail: "number 7 is odd"}, Shards(4), Parallelism(1), checkedAllocator(t))
	require.ErrorContains(t, err, `job "squares": operator Transform "square" (kit_test.go:`)
	require.ErrorContains(t, err, "number 7 is odd")
	var failed *task.TaskError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 0, failed.Shard)
}

// unwritable is a sink whose commit fails.
type unwritable struct{ aborted *bool }

func (unwritable) Begin() error  { return nil }
func (unwritable) Commit() error { return errors.New("disk full") }
func (s unwritable) Abort() error {
	*s.aborted = true
	return nil
}

// swallower is an operator that emits nothing.
type swallower struct{ transformer }

func (swallower) Process(*Context, int, int, Batch, Output) error { return nil }

func TestCommitThatFails(t *testing.T) {
	aborted := false
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		d := numbers(b, 10)
		Collect(d, "rows") // this sink commits before the other one fails
		require.Nil(t, b.Add(Spec{Op: "Write", Inputs: []Port{{From: d}}, Operator: func() Operator { return swallower{} }, Sink: unwritable{&aborted}}))
		return nil
	}), struct{}{}, Shards(4), checkedAllocator(t))
	require.ErrorContains(t, err, "disk full")
	require.True(t, aborted)
}

func TestOperatorThatPanics(t *testing.T) {
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		Collect(transform(numbers(b, 10), "", func(_ *Context, n int64) (int64, error) { var zero int64; return n / zero, nil }), "x")
		return nil
	}), struct{}{})
	require.ErrorContains(t, err, "divide by zero")
	require.ErrorContains(t, err, "run_test.go")
}

func TestOperatorsPanicIsThePackagesOwn(t *testing.T) {
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error {
		Collect(transform(numbers(b, 1), "", func(*Context, int64) (int64, error) { panic("p") }), "x")
		return nil
	}), struct{}{})
	var p *PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "p", p.Value)
}

func TestJobFunctionThatEndsItsGoroutine(t *testing.T) {
	_, err := Run(t.Context(), Anonymous(func(*Builder) error { runtime.Goexit(); return nil }), struct{}{})
	require.EqualError(t, err, "job: the job function: the function ended its goroutine (runtime.Goexit, or t.FailNow of a test)")
}

// TestOnProgressThatPanics requires that the run fails if any call of the OnProgress function
// panics or exits its goroutine, and gives that reason.
func TestOnProgressThatPanics(t *testing.T) {
	cause := errors.New("no screen")
	forever := Anonymous(func(b *Builder) error {
		Collect(transform(numbers(b, 1), "", func(c *Context, n int64) (int64, error) {
			<-c.Done()
			return 0, context.Cause(c)
		}), "x")
		return nil
	})
	leave := map[string]func(){"panic": func() { panic(cause) }, "goexit": runtime.Goexit}
	want := map[string]string{"panic": "OnProgress: panic: no screen\n", "goexit": "OnProgress: the function ended its goroutine"}
	for how, end := range leave {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				_, err := Run(t.Context(), forever, struct{}{}, checkedAllocator(t), OnProgress(func(Progress) { calls++; end() }))
				require.ErrorContains(t, err, "job: "+want[how])
				require.Equal(t, 1, calls)
			})
			last := func(p Progress) {
				if p.Done {
					end()
				}
			}
			// The checked allocator requires that the result is released.
			r, err := Run(t.Context(), squares, squaresArgs{N: 10}, checkedAllocator(t), OnProgress(last))
			require.ErrorContains(t, err, `job "squares": `+want[how])
			require.Nil(t, r)
			_, err = Run(t.Context(), squares, squaresArgs{N: 10, Fail: "odd"}, checkedAllocator(t), OnProgress(last))
			require.ErrorContains(t, err, "odd\n"+want[how])
		})
	}
	_, err := Run(t.Context(), squares, squaresArgs{}, OnProgress(func(Progress) { panic(cause) }))
	require.ErrorIs(t, err, cause)
}

func TestRunThatIsCancelled(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Run(ctx, Anonymous(func(b *Builder) error {
		Collect(transform(numbers(b, 1000), "", func(c *Context, n int64) (int64, error) {
			cancel(cause)
			<-c.Done()
			return 0, context.Cause(c)
		}), "x")
		return nil
	}), struct{}{}, checkedAllocator(t))
	require.Error(t, err)
	require.True(t, errors.Is(err, cause) || errors.Is(err, context.Canceled), "%v", err)
}

func TestCollectedRowsBeyondTheBudget(t *testing.T) {
	_, err := Run(t.Context(), squares, squaresArgs{N: 100_000}, Parallelism(1), MemoryBudget(256<<10), checkedAllocator(t))
	require.ErrorContains(t, err, `Collect "squares"`)
	require.ErrorContains(t, err, "more than the memory budget of 256 KiB: collect fewer rows, write them to a file, or raise --memory")
}

func TestSharedBuffersAreCountedOnce(t *testing.T) {
	c, err := newConfig(nil)
	require.NoError(t, err)
	s := newResultStore(1 << 20)
	held := s.add(0, "x", numberSchema, 4)
	rows := numberBatch(c.allocator, 1000, func(i int) int64 { return int64(i) })
	defer rows.Release()
	for i := range 100 {
		part := rows.NewSlice(int64(i), int64(i+1))
		require.NoError(t, held.put(i%4, part))
		part.Release()
	}
	require.GreaterOrEqual(t, s.bytes, int64(8000))
	require.Less(t, s.bytes, int64(16_000))
	size := s.bytes
	s.release()
	require.Zero(t, s.bytes)

	// The size may be exactly the limit.
	require.NoError(t, newResultStore(size).add(0, "x", numberSchema, 1).put(0, rows))
	require.ErrorContains(t, newResultStore(size-1).add(0, "x", numberSchema, 1).put(0, rows), "more than the memory budget")
}

func TestCollectOfAnUnknownNode(t *testing.T) {
	s := newResultStore(0)
	require.EqualError(t, s.Collect(3, 0, arrowrows.Batch(arrow.Record(nil))), "operator 3 collects rows under no name")
}

func TestSameJobConcurrently(t *testing.T) {
	const runs = 4
	errs := make(chan error, runs)
	for range runs {
		go func() {
			r, err := Run(t.Context(), squares, squaresArgs{N: 50}, Shards(8))
			if err == nil {
				var rows []number
				rows, err = Rows[number](r, "squares")
				if err == nil && (len(rows) != 50 || rows[49].Value != 49*49) {
					err = fmt.Errorf("wrong rows: %v", rows)
				}
			}
			r.Release()
			errs <- err
		}()
	}
	for range runs {
		require.NoError(t, <-errs)
	}
}

func TestGraphThatIsWrongAsAWhole(t *testing.T) {
	// The builder does not check names for UTF-8; the validation of the graph does.
	site := ""
	_, err := Run(t.Context(), Define("odd", func(b *Builder, _ struct{}) error {
		d := numbers(b, 1)
		site = here(1)
		b.Add(Spec{Op: "Keep", Schema: arrowrows.Schema(numberSchema), Name: "\xff", Inputs: []Port{{From: d}}, Operator: func() Operator { return transformer{square} }})
		return nil
	}), struct{}{})
	var build *BuildError
	require.ErrorAs(t, err, &build)
	require.Len(t, build.Misuses, 1)
	require.Equal(t, site, build.Misuses[0].Site)
	require.Regexp(t, `^job "odd": `+site+`: Keep.*UTF-8`, err.Error())
	require.Equal(t, 1, strings.Count(err.Error(), site))
}
