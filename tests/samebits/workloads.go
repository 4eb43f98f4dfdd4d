package main

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// workload is a job whose results must have the same bits at every setting.
type workload struct {
	name string // its name in --workload
	// build adds the job's operators.
	build func(b *engine.Builder, e *env) error
	// more, if not nil, returns further pieces of a result, which it gets by decoding the
	// result.
	more func(r *engine.Result) ([]piece, error)
	// memory is the memory budget of the run in bytes; 0 means the default. It can be so small
	// that exchanges spill.
	memory int64
	// ranks says whether the results depend on parallelism. If it is true, queues cannot be
	// continued at other parallelisms.
	ranks bool
	size  size
}

// size says at how many settings tests run a workload without the build tag soak.
type size string

const (
	small  size = "small"  // for fast workloads: many parallelisms, all batch sizes, and delays
	medium size = "medium" // for algorithms, whose operators and queues the small workloads test
	large  size = "large"  // for slow workloads
)

// workloads has all workloads. The results of all but "ranks" have the same bits at every
// parallelism. "ranks" folds whole buffers, one per subtask, and its results have the same bits
// only at the same parallelism.
var workloads = []workload{
	{name: "iris", build: irisClusters, more: modelFiles, size: small},
	{name: "files", build: files, more: modelFiles, size: large},
	{name: "wide", build: wideClusters, more: modelFiles, size: large},
	{name: "operators", build: operatorChain, size: small},
	{name: "sorting", build: sorting, size: large},
	{name: "grouping", build: grouping, size: small},
	{name: "joining", build: joining, size: medium},
	{name: "spill", build: spilling, memory: 256 << 10, size: large},
	{name: "sums", build: shardSums, size: small},
	{name: "ranks", build: rankSums, ranks: true, size: small},
	{name: "draws", build: userDraws, size: medium},

	{name: "clusterings", build: clusterings, more: modelFiles, size: medium},
	{name: "regressions", build: regressions, more: modelFiles, size: medium},
	{name: "classifications", build: classifications, more: modelFiles, size: medium},
	{name: "margins", build: margins, more: modelFiles, size: medium},
	{name: "networks", build: networks, more: modelFiles, size: medium},
	{name: "factors", build: factors, more: modelFiles, size: medium},
	{name: "bayes", build: bayes, more: modelFiles, size: medium},
	{name: "mixtures", build: mixtures, more: modelFiles, size: medium},
	{name: "preparations", build: preparations, more: modelFiles, size: medium},
	{name: "evaluations", build: evaluations, size: medium},
	{name: "selections", build: selections, more: modelFiles, size: medium},
	{name: "boosted", build: boosted, more: modelFiles, size: large},
	{name: "forests", build: forests, more: modelFiles, size: large},
}

// find returns the workload of a name.
func find(name string) (workload, error) {
	i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, fmt.Errorf("no workload %q", name)
	}
	return workloads[i], nil
}

// env has the arguments of the job. Workloads can read them.
type env struct {
	Workload string
	Out      string // directory for output files
	Iris     string // CSV file
	Heart    string // LibSVM file
	Jitter   uint64 // 0 means no delays
}

// job runs one workload.
var job = engine.Define("samebits", func(b *engine.Builder, e env) error {
	w, err := find(e.Workload)
	if err != nil {
		return err
	}
	return w.build(b, &e)
})

// pause waits for a time that depends on Jitter, where and index. In some calls the time is so
// long that all other subtasks can proceed.
func (e *env) pause(where, index int) {
	if e.Jitter == 0 {
		return
	}
	high, low := bits.Mul64(e.Jitter*0x9e3779b97f4a7c15^uint64(where)<<32^uint64(index), 0xd6e8feb86659fd93)
	turns := (high ^ low) % 8
	if turns == 0 {
		turns = 200
	}
	for range turns {
		runtime.Gosched()
	}
}

// reading is a row of generated data.
type reading struct {
	Key    int64
	Value  float64
	Weight float64
	Label  string
}

// rowsPerJob is the number of rows of the smaller workloads. It is large enough that each of
// 128 shards has rows.
const rowsPerJob = 6000

// makeReading draws row i.
func (e *env) makeReading(draws sharding.Random, i int64) reading {
	if i%61 == 0 {
		e.pause(1, int(i))
	}
	return reading{
		Key:    int64(draws.IntN(97)),
		Value:  wide(&draws),
		Weight: draws.Float64(),
		Label:  string(rune('a' + draws.IntN(5))),
	}
}

// wide draws a number of either sign with a magnitude between 1e-8 and 1e16. Every binary order
// of magnitude is equally likely. In sums of such numbers nearly every addition is rounded, so
// that the result depends on the order of the additions.
func wide(draws *sharding.Random) float64 {
	const least, most = -27, 53 // 2^-27 is 0.7e-8, 2^53 is 0.9e16
	v := math.Ldexp(1+draws.Float64(), least+draws.IntN(most-least+1))
	if draws.Uint64()&1 == 0 {
		return -v
	}
	return v
}
