package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A suite that compares bytes is worth as much as the faults it notices. Here the
// engine is built with one line made wrong at a time, and the comparison has to
// fail; with the lines as they are, the same settings agree. The wrong lines are in
// copies that the compiler is shown in place of the source, so that the engine
// itself knows nothing of faults. A line that is no longer found fails the test: the
// fault then has to be told anew.

// edit replaces a text that occurs once in a file.
type edit struct{ file, old, new string }

// fault is a way to compute something that depends on more than it may.
type fault struct {
	name     string
	edits    []edit
	workload string // that notices
	perP     bool   // whether the workload depends on parallelism
	shards   int
	p        []int // parallelisms, of which the first is the reference unless perP
	rows     []int // rows per batch; nil means 1024
	rounds   int   // more than one: with delays that differ by round
	// fused says that the fault shows where the compiler may fuse a product with an
	// addition: in a build for processors that have the instruction.
	fused bool
}

var faults = []fault{
	{
		name: "shards are merged from right to left", workload: "sums", shards: 8, p: []int{1, 2},
		edits: []edit{{"shared/fold.go", "if (a>>level+1)<<level > limit {", "if level >= 0 {"}},
	},
	{
		name: "forests are merged from right to left", workload: "sums", shards: 8, p: []int{1, 3, 5},
		edits: []edit{{"shared/fold.go", "meet(s.lo[s.depth-2], s.lo[s.depth-1]) < meet(s.lo[s.depth-1], lo)", "lo < 0"}},
	},
	{
		name: "shards are summed one after the other into one buffer of the subtask", workload: "sums", shards: 8, p: []int{1, 2},
		edits: []edit{
			{"comqueue/foreachshard.go", "perShard := func(shard int) error {\n\t\tout := fo.take()", "var whole []T\n\tperShard := func(shard int) error {\n\t\tout := whole\n\t\tif out == nil {\n\t\t\tout = fo.take()\n\t\t\twhole = out\n\t\t\tfo.folder.Push(shard, out)\n\t\t}"},
			{"comqueue/foreachshard.go", "\t\t\treturn err\n\t\t}\n\t\tfo.folder.Push(shard, out)\n", "\t\t\treturn err\n\t\t}\n"},
			{"comqueue/foreachshard.go", "fo.reset(length)", "fo.reset(length)\n\t\twhole = nil"},
		},
	},
	{
		name: "reported values are summed as they come", workload: "sums", shards: 8, p: []int{1, 2},
		edits: []edit{{"comqueue/report.go", "s.folder.Push(shard, value)", "if e := s.folder.Forest(); len(e) > 0 {\n\t\te[0].Value = f.merge(e[0].Value, value)\n\t\treturn nil\n\t}\n\ts.folder.Reset(r.ranges[subtask])\n\ts.folder.Push(shard, value)"}},
	},
	{
		name: "accumulators are summed per subtask", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"engine/task/accumulate.go", "\ti := shard - s.within.Lo\n", "\ti := 0\n"}},
	},
	{
		name: "rows are handed on as they arrive", workload: "operators", shards: 8, p: []int{1, 3, 8}, rows: []int{7}, rounds: 3,
		edits: []edit{
			{"engine/task/inbox.go", "\tif q[i].source != q[j].source {\n", "\tif false {\n"},
			{"engine/task/inbox.go", "len(in.sorted) > 0 && in.sorted[0].source <= until", "len(in.sorted) > 0"},
		},
	},
	{
		name: "a boundary between shards of rows lies one row further where there are two subtasks", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"operators/generate.go", "lo, hi := cut(s.n, c.Shards, shard)", "lo, hi := cut(s.n, c.Shards, shard)\n\tif shard == 4 && c.Parallelism > 1 {\n\t\tlo++\n\t}\n\tif shard == 3 && c.Parallelism > 1 {\n\t\thi++\n\t}"}},
	},
	{
		name: "a boundary between shards of a file lies one row further where there are two subtasks", workload: "iris", shards: 8, p: []int{1, 2},
		edits: []edit{
			{"internal/textfile/cut.go", "hi, lo := bits.Mul64(uint64(i), uint64(p.Bytes()))", "if i == 4 && p.shift {\n\t\treturn p.Bytes()/2 + 25\n\t}\n\thi, lo := bits.Mul64(uint64(i), uint64(p.Bytes()))"},
			{"internal/textfile/base.go", "s.plan, err = newPlan(t, s.cfg.Shards)\n", "s.plan, err = newPlan(t, s.cfg.Shards)\n\t\ts.plan.shift = s.cfg.Workers > 1\n"},
			{"internal/textfile/cut.go", "\tshards int\n}", "\tshards int\n\tshift  bool\n}"},
		},
	},
	{
		name: "subtasks share the buffers of a queue as they arrive", workload: "ranks", perP: true, shards: 8, p: []int{3, 8}, rows: []int{1024}, rounds: 12,
		edits: []edit{{"collective/allreduce.go", "s, err = g.plans.wholeSchedule(g)", "s, err = g.plans.wholeSchedule(g)\n\t\tfor i := range s.leaves {\n\t\t\ts.leaves[i].rank = (c.index + 1 + i) % g.n\n\t\t}"}},
	},
	{
		name: "rows are hashed into subtasks", workload: "operators", shards: 8, p: []int{1, 2},
		edits: []edit{{"engine/task/output.go", "return hashPlacement(p.Shards, e.Keys)", "return hashPlacement(p.Shards/p.Parallelism, e.Keys)"}},
	},
	{
		name: "draws begin anew with every batch", workload: "operators", shards: 8, p: []int{1}, rows: []int{1024, 7},
		edits: []edit{{"operators/sample.go", "if o.index.batch(rows.NumRows()) == 0 {", "if o.index.batch(rows.NumRows()) >= 0 {"}},
	},
	{
		name: "products are not rounded before they are added", workload: "wide", shards: 8, p: []int{1}, fused: true,
		edits: []edit{{"internal/kernel/centroid.go", "inertia += float64(v * v)", "inertia += v * v"}},
	},
}

func TestFaultsShow(t *testing.T) {
	for _, f := range faults {
		if f.fused && !fuses() {
			continue // no processor to see it on
		}
		t.Run(f.name, func(t *testing.T) {
			require.Empty(t, f.differences(t, nil), "without the fault")
			require.NotEmpty(t, f.differences(t, f.overlay(t)), "the fault went unnoticed")
		})
	}
}

// differences runs the settings of a fault in a build with the given flags, none
// for the engine as it is, and compares what they give.
func (f fault) differences(t *testing.T, flags []string) []string {
	t.Helper()
	out := t.TempDir()
	var digests []digest
	for i, environ := range [][]string{nil, {"GOAMD64=v3"}} {
		if i > 0 && !f.fused {
			break
		}
		s := sweep{build: fmt.Sprint("build ", i), shards: f.shards, parallelism: f.p, batchRows: f.rows, procs: []int{2}, rounds: f.rounds, environ: environ}
		if s.batchRows == nil {
			s.batchRows = []int{1024}
		}
		if flags == nil {
			s.path = program(t, "./tests/samebits", environ...)
		} else {
			var err error
			s.path, err = buildProgram("./tests/samebits", environ, flags...)
			require.NoError(t, err)
		}
		digests = append(digests, s.run(t, f.workload, out)...)
	}
	return differences(digests, f.perP, out)
}

// overlay writes the faulty copies and returns the flags that build with them.
func (f fault) overlay(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	changed := map[string]string{} // text of each file
	for _, e := range f.edits {
		if _, read := changed[e.file]; !read {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			require.NoError(t, err)
			changed[e.file] = string(text)
		}
		require.Equal(t, 1, strings.Count(changed[e.file], e.old), "%s: the text to change is to be found once: %s", e.file, e.old)
		changed[e.file] = strings.Replace(changed[e.file], e.old, e.new, 1)
	}
	replaced := map[string]string{}
	for file, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(copied, []byte(text), 0o644))
		replaced[filepath.Join(root, file)] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, overlay, 0o644))
	return []string{"-overlay", path}
}
