//go:build !race

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// The tests of this file check that the same-bits suite detects faults. The library is built
// with deliberate faults in some lines. An environment variable turns one fault on. With a
// fault turned on, the results at different settings must differ; with all faults turned off,
// they must be the same. The faulty lines are in copies of the source files, which the flag
// -overlay makes the compiler use, so that the library itself has no code for faults. If a line
// that a fault changes is not in the source any more, the test fails, and the fault must be
// rewritten.

// edit replaces a text that occurs exactly once in a file. In the new text, FAULT stands for an
// expression that is true if the fault is turned on.
type edit struct{ file, old, new string }

// fault is a change of the library that makes results depend on the setting.
type fault struct {
	name     string
	edits    []edit
	workload string // workload that detects the fault
	perP     bool   // whether the results of the workload depend on parallelism
	shards   int
	p        []int // parallelisms; the first one is the reference, unless perP is true
	rows     []int // rows per batch; nil means 1024
	rounds   int   // number of rounds; if it is more than one, there are delays, which differ by round
	// other, if not nil, changes the settings for a second run. The results of both runs are
	// compared.
	other func(s *sweep.Sweep)
}

// perSubtask has the edits that make a subtask sum its shards one after another.
var perSubtask = []edit{
	{"comqueue/foreachshard.go", "perShard := func(shard int) error {\n\t\tout := fo.take()", "var whole []T\n\tperShard := func(shard int) error {\n\t\tout := whole\n\t\tif out == nil {\n\t\t\tout = fo.take()\n\t\t}\n\t\tif FAULT && whole == nil {\n\t\t\twhole = out\n\t\t\tfo.folder.Push(shard, out)\n\t\t}"},
	{"comqueue/foreachshard.go", "\t\tfo.folder.Push(shard, out)\n\t\treturn c.takeMisuse(nil)", "\t\tif !FAULT {\n\t\t\tfo.folder.Push(shard, out)\n\t\t}\n\t\treturn c.takeMisuse(nil)"},
	{"comqueue/foreachshard.go", "fo.reset(length)", "fo.reset(length)\n\t\twhole = nil"},
}

var faults = []fault{
	{
		name: "shards are merged from right to left", workload: "sums", shards: 8, p: []int{1, 2},
		edits: []edit{{"shared/sharding/fold.go", "if (a>>level+1)<<level > limit {", "if FAULT || (a>>level+1)<<level > limit {"}},
	},
	{
		name: "forests are merged from right to left", workload: "sums", shards: 8, p: []int{1, 3, 5},
		edits: []edit{{"shared/sharding/fold.go", "ancestorLevel(s.lo[s.depth-2], s.lo[s.depth-1]) < ancestorLevel(s.lo[s.depth-1], lo)", "!FAULT && ancestorLevel(s.lo[s.depth-2], s.lo[s.depth-1]) < ancestorLevel(s.lo[s.depth-1], lo)"}},
	},
	{
		name: "shards are summed one after the other into one buffer of the subtask", workload: "sums", shards: 8, p: []int{1, 2},
		edits: perSubtask,
	},
	{
		name: "statistics of classes are summed one after the other into one buffer of the subtask", workload: "bayes", shards: 8, p: []int{1, 3},
		edits: perSubtask,
	},
	{
		name: "rounding errors of likelihoods are carried from one shard into the next", workload: "mixtures", shards: 8, p: []int{1, 8},
		edits: []edit{
			{"algorithms/gmm/em.go", "type fit struct {", "type fit struct {\n\tlost float64"},
			{"algorithms/gmm/em.go", "\t\tout[0] += log\n", "\t\tif FAULT {\n\t\t\tlog += f.lost\n\t\t\tf.lost = log - (out[0] + log - out[0])\n\t\t}\n\t\tout[0] += log\n"},
		},
	},
	{
		name: "rows are drawn anew where there are two subtasks", workload: "classifications", shards: 8, p: []int{1, 2},
		edits: []edit{{"algorithms/optim/stochastic.go", `sharding.NewRandom(s.settings.Seed, "rows of an epoch", shard, s.Epoch)`, "sharding.NewRandom(s.settings.Seed, \"rows of an epoch\", shard, s.Epoch)\n\t\tif FAULT && ctx.NumTask() > 1 {\n\t\t\tr = sharding.NewRandom(s.settings.Seed, \"others\", shard, s.Epoch)\n\t\t}"}},
	},
	{
		name: "reported values are summed as they come", workload: "sums", shards: 8, p: []int{1, 2},
		edits: []edit{{"comqueue/report.go", "s.folder.Push(shard, value)", "if FAULT {\n\t\tif e := s.folder.Forest(); len(e) > 0 {\n\t\t\te[0].Value = f.merge(e[0].Value, value)\n\t\t\treturn nil\n\t\t}\n\t\ts.folder.Reset(r.ranges[subtask])\n\t}\n\ts.folder.Push(shard, value)"}},
	},
	{
		name: "accumulators are summed per subtask", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"engine/task/accumulate.go", "\ti := shard - s.within.Lo\n", "\ti := shard - s.within.Lo\n\tif FAULT {\n\t\ti = 0\n\t}\n"}},
	},
	{
		name: "rows are handed on as they arrive", workload: "operators", shards: 8, p: []int{1, 3, 8}, rows: []int{7}, rounds: 3,
		edits: []edit{
			{"engine/task/inbox.go", "\tif q[i].source != q[j].source {\n", "\tif !FAULT && q[i].source != q[j].source {\n"},
			{"engine/task/inbox.go", "len(in.sorted) > 0 && in.sorted[0].source <= limit", "len(in.sorted) > 0 && (FAULT || in.sorted[0].source <= limit)"},
		},
	},
	{
		name: "a boundary between shards of rows lies one row further where there are two subtasks", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"operators/generate.go", "lo, hi := cut(s.n, c.Shards, shard)", "lo, hi := cut(s.n, c.Shards, shard)\n\tif FAULT && shard == 4 && c.Parallelism > 1 {\n\t\tlo++\n\t}\n\tif FAULT && shard == 3 && c.Parallelism > 1 {\n\t\thi++\n\t}"}},
	},
	{
		name: "a boundary between shards of a file lies one row further where there are two subtasks", workload: "iris", shards: 8, p: []int{1, 2},
		edits: []edit{
			{"internal/textfile/cut.go", "hi, lo := bits.Mul64(uint64(i), uint64(p.Bytes()))", "if FAULT && i == 4 && p.shift {\n\t\treturn p.Bytes()/2 + 25\n\t}\n\thi, lo := bits.Mul64(uint64(i), uint64(p.Bytes()))"},
			{"internal/textfile/base.go", "s.plan, err = newPlan(t, s.cfg.Shards)\n", "s.plan, err = newPlan(t, s.cfg.Shards)\n\t\ts.plan.shift = s.cfg.Workers > 1\n"},
			{"internal/textfile/cut.go", "\tshards int\n}", "\tshards int\n\tshift  bool\n}"},
		},
	},
	{
		name: "subtasks share the buffers of a queue as they arrive", workload: "ranks", perP: true, shards: 8, p: []int{3, 8}, rows: []int{1024}, rounds: 12,
		edits: []edit{{"collective/memory_reduce.go", "s, err = g.plans.wholeSchedule(g)", "s, err = g.plans.wholeSchedule(g)\n\t\tfor i := range s.leaves {\n\t\t\tif FAULT {\n\t\t\t\ts.leaves[i].rank = (c.index + 1 + i) % g.n\n\t\t\t}\n\t\t}"}},
	},
	{
		name: "rows are hashed into subtasks", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"engine/task/output.go", "\t\treturn hashPlacement(p.Shards, e.Keys)", "\t\tif FAULT {\n\t\t\treturn hashPlacement(p.Shards/p.Parallelism, e.Keys)\n\t\t}\n\t\treturn hashPlacement(p.Shards, e.Keys)"}},
	},
	{
		name: "draws begin anew with every batch", workload: "operators", shards: 8, p: []int{1}, rows: []int{1024, 7},
		edits: []edit{{"operators/sample.go", "if o.index.batch(rows.NumRows()) == 0 {", "if o.index.batch(rows.NumRows()) == 0 || FAULT {"}},
	},
	{
		name: "parallelism is part of the seed", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"operators/sample.go", "o.draws = c.Random(o.purpose, shard, 0)", "purpose := o.purpose\n\t\tif FAULT {\n\t\t\tpurpose += strconv.Itoa(c.Parallelism)\n\t\t}\n\t\to.draws = c.Random(purpose, shard, 0)"}},
	},
	{
		name: "rows are put into a shuffle in the order of a map", workload: "operators", shards: 8, p: []int{2, 3},
		edits: []edit{{"engine/task/output.go", "\tfor i, d := range o.dst {\n\t\to.order[o.start[d]] = int32(i)\n", "\tplaced := map[int]int32{}\n\tfor i, d := range o.dst {\n\t\tplaced[i] = d\n\t}\n\tfor i, d := range placed {\n\t\tif FAULT {\n\t\t\to.order[o.start[d]] = int32(i)\n\t\t\to.start[d]++\n\t\t}\n\t}\n\tfor i, d := range o.dst {\n\t\tif FAULT {\n\t\t\tbreak\n\t\t}\n\t\to.order[o.start[d]] = int32(i)\n"}},
	},
	{
		name: "a kernel fuses a product with an addition", workload: "classifications", shards: 8, p: []int{1},
		edits: []edit{
			{"internal/kernel/products.go", "package kernel\n", "package kernel\n\nimport \"math\"\n"},
			{"internal/kernel/products.go", "\t\to += T(k0 * r0[j])\n", "\t\tif FAULT {\n\t\t\to = T(math.FMA(float64(k0), float64(r0[j]), float64(o)))\n\t\t} else {\n\t\t\to += T(k0 * r0[j])\n\t\t}\n"},
		},
		other: func(s *sweep.Sweep) { s.Environ = append(s.Environ, "SUPERSTEP_DEBUG=kernel.asm=off") },
	},
	{
		name: "scratch carries state from one superstep to the next", workload: "iris", shards: 8, p: []int{2},
		edits: []edit{
			{"algorithms/kmeans/lloyd.go", "type lloydWork struct {\n", "type lloydWork struct {\n\tcarried float64\n"},
			{"algorithms/kmeans/lloyd.go", "\tstate.Inertia = sums[len(sums)-1]\n", "\tstate.Inertia = sums[len(sums)-1]\n\tif FAULT {\n\t\tw.carried += state.Inertia\n\t\tstate.Inertia = w.carried\n\t}\n"},
		},
		other: func(s *sweep.Sweep) { s.Forget = true },
	},
}

// fusing is an edit that allows the compiler to fuse a product with an addition. It has an
// effect only in builds for processors that have a fused multiply-add instruction.
var fusing = edit{"algorithms/prepare/normalizer.go", "\t\tsum += v\n\t\tsquares += float64(v * v)\n\t}\n\tlength", "\t\tsum += v\n\t\tsquares += v * v\n\t}\n\tlength"}

// faultVariable is the environment variable with the number of the fault that is turned on.
const faultVariable = "SAMEBITS_FAULT"

func TestFaultsShow(t *testing.T) {
	faulty, err := faultyProgram(t.TempDir())
	require.NoError(t, err)
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if f.rounds == 0 { // faults with rounds are revealed by delays, so they are not tested in parallel
				t.Parallel()
			}
			if testsize.Soak { // without soak this is skipped, because TestSameBits compares the program without the edits
				require.Empty(t, f.differences(t, faulty, -1), "with the fault turned off, the results must be the same")
			}
			require.Contains(t, strings.Join(f.differences(t, faulty, i), "\n"), " differs: ", "with the fault turned on, a piece must differ")
		})
	}
	t.Run("products are not rounded before they are added", func(t *testing.T) {
		if !testsize.Soak || !fuses() {
			return // without soak the suite compares no build for GOAMD64=v3, or this processor cannot run such a build
		}
		const level = "GOAMD64=v3"
		flags, err := overlay(t.TempDir(), []fault{{edits: []edit{fusing}}})
		require.NoError(t, err)
		path, err := programs.BuildWith("./tests/samebits", []string{level}, flags...)
		require.NoError(t, err)
		out := t.TempDir()
		settings := sweep.Sweep{Shards: 8, Parallelism: []int{1}, BatchRows: []int{1024}, Procs: []int{2}}
		plain, right, wrong := settings, settings, settings
		plain.Build, plain.Path = "plain", programs.Build(t, "./tests/samebits")
		right.Build, right.Path, right.Environ = level, programs.Build(t, "./tests/samebits", level), []string{level}
		wrong.Build, wrong.Path, wrong.Environ = level+" with the fault", path, []string{level}
		digests := plain.Run(t, "preparations", out)
		require.Empty(t, sweep.Differences(slices.Concat(digests, right.Run(t, "preparations", out)), false, out), "without the fault, the results must be the same")
		require.NotEmpty(t, sweep.Differences(slices.Concat(digests, wrong.Run(t, "preparations", out)), false, out), "with the fault, the results must differ")
	})
}

// faultyProgram builds samebits with the edits of all faults and returns its path.
func faultyProgram(dir string) (string, error) {
	flags, err := overlay(dir, faults)
	if err != nil {
		return "", err
	}
	return programs.BuildWith("./tests/samebits", nil, flags...)
}

// differences runs the program at path at the settings of fault f, and returns the differences
// between the results. on is the number of the fault that is turned on; see faultVariable.
func (f fault) differences(t *testing.T, path string, on int) []string {
	t.Helper()
	out := t.TempDir()
	s := sweep.Sweep{
		Build: fmt.Sprint("fault ", on), Path: path, Environ: []string{fmt.Sprintf("%s=%d", faultVariable, on)},
		Shards: f.shards, Parallelism: f.p, BatchRows: f.rows, Procs: []int{2}, Rounds: f.rounds,
	}
	if s.BatchRows == nil {
		s.BatchRows = []int{1024}
	}
	digests := s.Run(t, f.workload, out)
	if f.other != nil {
		f.other(&s)
		s.Build += ", other settings" // Differences tells runs apart by their text
		digests = append(digests, s.Run(t, f.workload, out)...)
	}
	return sweep.Differences(digests, f.perP, out)
}

var packageClause = regexp.MustCompile(`(?m)^package (\w+)$`)

// overlay writes the faulty copies of source files and returns the flags of go build that use
// them. An edit that several faults share is made once, and each of these faults turns it on.
// Each package with faults gets an additional file with the variable that says which fault is
// turned on.
func overlay(dir string, faults []fault) ([]string, error) {
	root := programs.Root()
	changed := map[string]string{} // path of a file, relative to the root -> changed text of the file
	done := map[edit][]string{}    // edit -> conditions under which it is turned on
	var edits []edit
	for i, f := range faults {
		for _, e := range f.edits {
			if done[e] == nil {
				edits = append(edits, e)
			}
			done[e] = append(done[e], fmt.Sprintf("deliberateFault == \"%d\"", i))
		}
	}
	for _, e := range edits {
		if _, read := changed[e.file]; !read {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			changed[e.file] = string(text)
		}
		if n := strings.Count(changed[e.file], e.old); n != 1 {
			return nil, fmt.Errorf("%s: the text to change occurs %d times, want 1: %s", e.file, n, e.old)
		}
		on := "(" + strings.Join(done[e], " || ") + ")"
		changed[e.file] = strings.Replace(changed[e.file], e.old, strings.ReplaceAll(e.new, "FAULT", on), 1)
		clause := packageClause.FindStringSubmatch(changed[e.file])
		changed[filepath.Join(filepath.Dir(e.file), "deliberate_fault.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar deliberateFault = os.Getenv(%q)\n", clause[1], faultVariable)
	}
	replaced := map[string]string{}
	for file, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			return nil, err
		}
		replaced[filepath.Join(root, file)] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return []string{"-overlay", path}, os.WriteFile(path, list, 0o644)
}
