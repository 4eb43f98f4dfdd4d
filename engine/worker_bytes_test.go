package engine_test

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// damagedRows matches a failure that names both workers, the operator with its line, and its
// vertex.
var damagedRows = regexp.MustCompile(`worker \d .* (sent|that what) worker \d .*damaged in transit: .* for edge \d+, the rows that .*\.go:\d+\), vertex \d+, takes from `)

// TestBytesDamagedBetweenWorkers runs a job that exchanges rows and has a queue on three
// workers. A middlebox between them makes one fault. The test requires that the job has the
// right result or fails. If bytes of a frame were damaged, the job must fail for that reason,
// whatever happens next, and name the operator of the rows.
func TestBytesDamagedBetweenWorkers(t *testing.T) {
	job := engine.Define("damaged", func(b *engine.Builder, _ struct{}) error {
		rows := operators.Generate(b, 300, makeReading)
		engine.Collect(operators.PartitionByHash(rows, "key"), "rows")
		points := operators.Map(operators.Generate(b, 60, func(draws sharding.Random, i int64) []float64 { return []float64{draws.Float64()} }),
			func(v []float64) point { return point{v} })
		engine.Collect(kmeans.Train(operators.Rebalance(points), kmeans.Params{VectorCol: "at", K: 2, MaxIter: 2}), "model")
		return nil
	})
	local, err := engine.Run(t.Context(), job, struct{}{}, engine.Shards(16), engine.Parallelism(3))
	require.NoError(t, err)
	defer local.Release()
	want := engine.ResultText(local)

	n := 40
	if testsize.Soak {
		n = 10_000
	}
	const greetings = 200 // size of the handshake in bytes; if it is damaged, the worker tries to connect again
	var mu sync.Mutex
	var running sync.WaitGroup
	turns := make(chan struct{}, 4)
	struck, failed, damaged, messages := 0, 0, 0, 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for seed := range uint64(n) {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			f := middlebox.Draw(seed, 6, 12_000)
			f.At += greetings
			box := middlebox.New(f)
			defer box.Close()
			got := engine.RunThrough(t, box, job, struct{}{}, []int{1, 1, 1})
			mu.Lock()
			defer mu.Unlock()
			if got.Result != nil {
				if text := engine.ResultText(got.Result); text != want {
					t.Errorf("seed %d, %v: another result:\n%s", seed, f, text)
				}
				got.Result.Release()
			}
			if !box.Struck() {
				return
			}
			struck++
			if got.Result != nil {
				return
			}
			failed++
			for _, failure := range got.Failures {
				if failure != nil && failure.Kind == wire.ClusterFailure && strings.Contains(failure.Message, "damaged in transit") {
					damaged++
					if strings.Contains(failure.Message, ", a message of ") {
						messages++
						if !damagedRows.MatchString(failure.Message) {
							t.Errorf("seed %d, %v: %s", seed, f, failure.Message)
						}
					}
					return
				}
			}
			// If all messages are lost, including heartbeats, the failure can only report
			// silence.
			silent := f.Kind == middlebox.Lose && slices.ContainsFunc(got.Failures, func(failure *wire.Failure) bool {
				return failure != nil && strings.Contains(failure.Message, " was silent for ")
			})
			if f.Kind != middlebox.Cut && !silent {
				for _, failure := range got.Failures {
					t.Errorf("seed %d, %v: %v", seed, f, failure)
				}
			}
		})
	}
	running.Wait()
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n)*(64<<20), "a damaged length must not make a worker allocate that much memory")
	require.Greater(t, struck, n/5)
	require.Greater(t, damaged, n/8)
	require.Positive(t, messages, "the test must damage rows at least once")
	t.Logf("%d struck, %d failed, %d damaged, %d of them rows", struck, failed, damaged, messages)
}
