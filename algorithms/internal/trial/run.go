package trial

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// Try runs the job that build defines. It checks that broadcast objects are not modified, and
// uses 8 shards unless the options say otherwise. The caller must release the result. If Arrow
// memory is still allocated at the end of the test, the test fails.
func Try(t testing.TB, build func(b *engine.Builder), options ...engine.Option) (*engine.Result, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	job := engine.Define("trial", func(b *engine.Builder, _ struct{}) error {
		build(b)
		return nil
	})
	options = append([]engine.Option{engine.Allocator(mem), engine.Shards(8), engine.CheckBroadcasts(true)}, options...)
	return engine.Run(context.Background(), job, struct{}{}, options...)
}

// Run does what Try does, for a job that must succeed. The result is released at the end of the
// test.
func Run(t testing.TB, build func(b *engine.Builder), options ...engine.Option) *engine.Result {
	t.Helper()
	r, err := Try(t, build, options...)
	require.NoError(t, err)
	t.Cleanup(r.Release)
	return r
}

// Fails requires that the job fails with an error that contains each of the texts, and returns
// the error.
func Fails(t testing.TB, build func(b *engine.Builder), texts ...string) error {
	t.Helper()
	r, err := Try(t, build)
	if err == nil {
		r.Release()
	}
	require.Error(t, err)
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
	return err
}

// place has the options with which SameBits runs a job: the parallelism, the number of workers,
// and the number of rows of a batch. 0 workers mean that the job runs in a single process.
type place struct{ p, workers, batch int }

// SameBits runs the job that build defines, once for each of places. It requires that all runs
// give the same bits, both in the collected rows and in the values that the given queues
// reported. In all runs except the first, queues drop, between supersteps, all objects except
// those that their keys keep, see engine.CheckState. In further runs, queues are stopped after
// supersteps and resumed at another parallelism.
func SameBits(t *testing.T, build func(b *engine.Builder), queues ...string) {
	t.Helper()
	want, supersteps := "", 0 // of the longest queue
	for i, at := range places {
		r := Run(t, build, engine.Parallelism(at.p), engine.Workers(at.workers), engine.BatchRows(at.batch), engine.CheckState(i > 0))
		text := Print(t, r, queues...)
		if want == "" {
			want = text
		}
		require.Equal(t, want, text, "parallelism %d, %d workers and batches of %d rows must give the same bits", at.p, at.workers, at.batch)
		for _, q := range r.Report.Queues {
			supersteps = max(supersteps, q.Supersteps)
		}
	}
	require.NotEmpty(t, want)
	for _, c := range cuts(supersteps) {
		text := Print(t, Run(t, build, c.options()...), queues...)
		require.Equal(t, want, text, "a run that begins at parallelism %d and resumes after supersteps at the parallelisms %v must give the same bits", c.p, c.at)
	}
}

// Print returns all collected rows, and the values that the given queues reported, as text.
// Values with different bits have different texts.
func Print(t testing.TB, r *engine.Result, queues ...string) string {
	t.Helper()
	var out strings.Builder
	for _, name := range r.Names() {
		recs, err := arrowbridge.Records(r, name)
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s\n", name)
		for _, rec := range recs {
			for i := range int(rec.NumRows()) {
				for c := range int(rec.NumCols()) {
					fmt.Fprintf(&out, "%s\t", batch.FormatValue(rec.Column(c), i))
				}
				out.WriteByte('\n')
			}
		}
	}
	for _, queue := range queues {
		report := r.Queue(queue)
		require.NotNil(t, report, "the job must have a queue %q", queue)
		for _, series := range report.Series {
			fmt.Fprintf(&out, "%s %s %x\n", queue, series.Name, series.Values)
		}
	}
	return out.String()
}
