package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/textfile"
)

// multipleOutputs is a job with several outputs of every kind, a result and a table.
type multipleOutputs struct {
	dir     string
	outputs int
	replace bool
	rows    int
	first   int         // number of the first output; outputs with lower numbers are left out
	last    engine.Sink // a sink that commits after all outputs have become visible; may be nil
}

// name returns the name of output i. Every second output is a directory.
func (j *multipleOutputs) name(i int) string { return fmt.Sprintf("out-%d", i) }

var togetherFormats = []FileFormat{
	{Op: "WriteCSV", Extension: "csv", Rows: func(w io.Writer) RowWriter { return recordWriter{textfile.NewWriter(w, textfile.Form{Delimiter: ','})} }},
	{Op: "WriteArrow", Extension: "arrow", File: newArrowFile},
}

func (j *multipleOutputs) run(d outputDisk) error {
	exists := engine.Fail
	if j.replace {
		exists = engine.Replace
	}
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		rows := FromSlice(b, lineRows(j.rows))
		for i := j.first; i < j.outputs; i++ {
			writeFilesOn(rows, filepath.Join(j.dir, j.name(i)), i%2 == 1, togetherFormats[i/2%2], d)
		}
		engine.Collect(rows, "rows")
		Print(rows, PrintOptions{Writer: io.Discard})
		if j.last != nil {
			b.Add(engine.Spec{Op: "Last", Inputs: []engine.Port{{From: rows}}, Operator: func() engine.Operator { return noopOperator{} }, Sink: j.last})
		}
		return nil
	}), struct{}{}, engine.Shards(2), engine.Parallelism(2), engine.IfExists(exists))
	result.Release()
	return err
}

// want returns the files that a run of the job writes.
func (j *multipleOutputs) want(t *testing.T) map[string]string {
	fresh := *j
	fresh.dir, fresh.replace = t.TempDir(), false
	require.NoError(t, fresh.run(&testDisk{}))
	return treeChecksums(t, fresh.dir)
}

// makeOld creates old outputs, which a run of the job replaces, and returns their tree.
func (j *multipleOutputs) makeOld(t *testing.T) map[string]string {
	if !j.replace {
		return map[string]string{}
	}
	old := *j
	old.rows, old.replace = 3, false
	require.NoError(t, old.run(&testDisk{}))
	return treeChecksums(t, j.dir)
}

// treeChecksums returns the same as tree, but with checksums in place of files that are not
// text.
func treeChecksums(t *testing.T, dir string) map[string]string {
	files := tree(t, dir)
	for name, content := range files {
		if strings.HasPrefix(content, "ARROW1") {
			files[name] = fmt.Sprintf("arrow %08x", checksum.CRC32C(0, []byte(content)))
		}
	}
	return files
}

// cutOff is a job that a test interrupts at a call of the disk and then runs again.
type cutOff struct {
	multipleOutputs
	stride int // the test interrupts the job at every stride-th call; in soak tests at every call
	on     func(*testDisk) outputDisk
}

var cutOffs = []cutOff{
	{multipleOutputs{outputs: 1}, 1, plainDisk},
	{multipleOutputs{outputs: 2}, 3, plainDisk},
	{multipleOutputs{outputs: 1, replace: true}, 2, plainDisk},
	{multipleOutputs{outputs: 4, replace: true}, 11, plainDisk},
	{multipleOutputs{outputs: 4, replace: true}, 13, unexchanged},
	{multipleOutputs{outputs: 2, replace: true}, 7, plain},
	{multipleOutputs{outputs: 40, replace: true}, 311, plainDisk},
}

func (c *cutOff) String() string { return fmt.Sprintf("%d outputs, replace %v", c.outputs, c.replace) }

// TestOutputsTogether interrupts a run at each call of the disk. The next run of the job must
// find either all outputs of the previous run or none, and must leave its own outputs and no
// other files.
func TestOutputsTogether(t *testing.T) {
	for k, c := range cutOffs {
		t.Run(fmt.Sprintf("%d: %s", k, &c), func(t *testing.T) {
			c.rows = 7
			first := c.want(t)
			c.rows = 5
			second := c.want(t)
			finished, undone := 0, 0
			for at := 1; ; at += strideOf(c.stride) {
				c.dir = t.TempDir()
				before := c.makeOld(t)
				d := crashesAt(at)
				c.rows = 7
				err := c.run(c.on(d))
				if d.last == "" {
					require.NoError(t, err)
					require.Equal(t, first, treeChecksums(t, c.dir))
					break
				}
				// The next run must refuse outputs that exist.
				next := c.multipleOutputs
				next.rows, next.replace = 5, false
				err = next.run(&testDisk{})
				got := treeChecksums(t, c.dir)
				switch {
				case err == nil:
					undone++
					require.False(t, c.replace, "call %d, %s", at, d.last)
					require.Equal(t, second, got, "call %d, %s", at, d.last)
				case maps.Equal(got, first):
					finished++
					require.ErrorContains(t, err, "exists", "call %d, %s", at, d.last)
				default:
					undone++
					require.ErrorContains(t, err, "exists", "call %d, %s", at, d.last)
					// Begin is not called for the outputs after the first one that exists.
					require.Equal(t, before, visible(got), "call %d, %s", at, d.last)
				}
				next.replace = true
				require.NoError(t, next.run(&testDisk{}))
				require.Equal(t, second, treeChecksums(t, c.dir), "call %d, %s", at, d.last)
			}
			require.NotZero(t, undone)
			require.NotZero(t, finished)
		})
	}
}

// TestOutputsTogetherOnAFailingDisk makes one call of the disk fail. Either the run must fail,
// with no output visible, as the error says, or it must succeed with all outputs visible.
func TestOutputsTogetherOnAFailingDisk(t *testing.T) {
	for k, c := range cutOffs {
		t.Run(fmt.Sprintf("%d: %s", k, &c), func(t *testing.T) {
			c.rows = 7
			after := c.want(t)
			failed, told := 0, 0
			for at := 1; ; at += strideOf(c.stride) {
				c.dir = t.TempDir()
				before := c.makeOld(t)
				d := fails(at)
				err := c.run(c.on(d))
				if d.last == "" {
					require.NoError(t, err)
					break
				}
				if err != nil {
					require.ErrorIs(t, err, errNoSpace)
					failed++
					require.Equal(t, before, visible(treeChecksums(t, c.dir)), "call %d, %s", at, d.last)
					if errors.As(err, new(*task.CommitError)) {
						told++
						require.ErrorContains(t, err, "; none of its outputs is visible", "call %d, %s", at, d.last)
					}
				} else {
					require.Equal(t, after, visible(treeChecksums(t, c.dir)), "call %d, %s", at, d.last)
				}
				c := c.multipleOutputs
				c.replace = true
				require.NoError(t, c.run(&testDisk{}))
				require.Equal(t, after, treeChecksums(t, c.dir), "call %d, %s", at, d.last)
			}
			require.NotZero(t, failed)
			require.NotZero(t, told)
		})
	}
}

// atDecision interrupts a run after its journal has been written and before its first output is
// visible.
func atDecision(t *testing.T, j *multipleOutputs) {
	t.Helper()
	d := crashesAt(0)
	d.order = newDiskOrder()
	for i := range j.outputs {
		d.order.targets[filepath.Join(j.dir, j.name(i))] = true
	}
	d.at, d.what = -1, nil
	d.order.cut = func(name string, paths []string) bool {
		if (name == "renamenew" || name == "rename" || name == "exchange") && d.order.targets[paths[len(paths)-1]] {
			d.dead = true
		}
		return d.dead
	}
	require.ErrorIs(t, j.run(d), errDead)
}

// TestOutputsUndoneTogether makes the move of the last of several outputs fail, in the run
// itself or in a run that finishes an interrupted run. Then it interrupts the process at each
// call of the disk. In the next run the move could succeed, but that run must find all outputs
// or none: a set that was partly undone must never be partly finished.
func TestOutputsUndoneTogether(t *testing.T) {
	for _, c := range []struct {
		goesOn, replace bool
		unnoted         bool // the rewriting of the journal fails too
	}{{false, true, false}, {true, false, false}, {true, true, true}} {
		j := multipleOutputs{outputs: 3, rows: 7, replace: c.replace}
		all := j.want(t)
		undone, finished, refused := 0, 0, 0
		try := func(at int) (ended bool) {
			j.dir = t.TempDir()
			before := visible(j.makeOld(t))
			if c.goesOn {
				atDecision(t, &j)
			}
			last := filepath.Join(j.dir, j.name(j.outputs-1))
			d := crashesAt(at)
			d.order = newDiskOrder()
			refused = 0
			d.order.cut = func(name string, paths []string) bool {
				to := paths[len(paths)-1]
				if to == last && filepath.Base(paths[0]) == wholeFile {
					refused = d.n
					return true
				}
				return c.unnoted && refused > 0 && name == "rename" && filepath.Base(to) == journalFile
			}
			require.ErrorIs(t, j.run(unexchanged(d)), errDead)
			next := multipleOutputs{dir: j.dir, outputs: 1, rows: 5}
			err := next.run(&testDisk{})
			got := visible(treeChecksums(t, j.dir))
			if maps.Equal(got, all) {
				finished++
				require.ErrorContains(t, err, "exists", "call %d, %s", at, d.last)
			} else {
				undone++
				delete(got, "out-0") // the next run may have written this output
				delete(before, "out-0")
				require.Equal(t, before, got, "call %d, %s", at, d.last)
			}
			return d.last == ""
		}
		require.True(t, try(0))
		for at := refused + 1; !try(at); at++ {
		}
		require.NotZero(t, finished)
		require.Equal(t, c.unnoted, undone == 0)
	}
}

// TestOutputsOfACutOffRun tests what the next run does with a set whose journal was written
// before the run was interrupted.
func TestOutputsOfACutOffRun(t *testing.T) {
	j := multipleOutputs{outputs: 4, rows: 7}
	first := j.want(t)

	// Another job with one of the outputs must finish all of them.
	j.dir = t.TempDir()
	atDecision(t, &j)
	require.Empty(t, visible(treeChecksums(t, j.dir)))
	other := multipleOutputs{dir: j.dir, outputs: 4, first: 3, rows: 2}
	require.ErrorContains(t, other.run(&testDisk{}), "it is that of an earlier run, which was interrupted while it made its outputs visible and has just been finished")
	require.Equal(t, first, treeChecksums(t, j.dir))

	// If another program has written a file to the path of one of the outputs, the file must
	// stay, and no output of the set may be visible.
	j.dir = t.TempDir()
	atDecision(t, &j)
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "out-2"), []byte("mine"), 0o600))
	other.dir = j.dir
	require.NoError(t, other.run(&testDisk{}))
	got := treeChecksums(t, j.dir)
	require.Equal(t, "mine", got["out-2"])
	require.NotContains(t, got, "out-0")
	require.NotContains(t, got, "out-1/")
	require.Contains(t, got, "out-3/")
	for name := range got {
		require.False(t, strings.HasPrefix(name, "."), name)
	}

	// A damaged journal or seal must be reported, and no file may be changed.
	for _, file := range []string{".superstep-out-0/journal", ".superstep-out-3/seal"} {
		j.dir = t.TempDir()
		atDecision(t, &j)
		path := filepath.Join(j.dir, file)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[len(data)/2] ^= 4
		require.NoError(t, os.WriteFile(path, data, 0o600))
		other.dir = j.dir
		before := treeChecksums(t, j.dir)
		delete(before, ".superstep.lock-out-3")
		require.ErrorContains(t, other.run(&testDisk{}), path+", by which an earlier run that was interrupted can be finished or undone, is damaged (its checksum is wrong)")
		require.Equal(t, before, treeChecksums(t, j.dir))
	}

	// The directory of the journal is missing.
	j.dir = t.TempDir()
	apart := filepath.Join(j.dir, "apart")
	require.NoError(t, os.Mkdir(apart, 0o700))
	require.NoError(t, os.Symlink(apart, filepath.Join(j.dir, "link")))
	sealed := seal{Run: "parts-1", Set: "parts-1", Journal: filepath.Join(j.dir, "gone", ".superstep-x")}
	stage := filepath.Join(apart, ".superstep-out-3")
	require.NoError(t, os.Mkdir(stage, 0o700))
	require.NoError(t, writeRecord(osDisk{}, sealCodec, stage, filepath.Join(stage, sealFile), sealed))
	other.dir = apart
	require.ErrorContains(t, other.run(&testDisk{}), filepath.Join(j.dir, "gone")+", where it kept whether they are to be, is not there: bring that directory back")
}

// TestOutputsLast checks after each call of the disk which files would survive a crash of the
// machine. Before any output is visible, all outputs and the journal must be durable. Before
// the journal and the seals are removed, the visible outputs must be durable.
func TestOutputsLast(t *testing.T) {
	for _, c := range cutOffs {
		if c.outputs == 40 {
			continue
		}
		c.dir, c.rows = t.TempDir(), 7
		c.makeOld(t)
		d := crashesAt(0)
		d.order = newDiskOrder()
		for i := range c.outputs {
			d.order.targets[filepath.Join(c.dir, c.name(i))] = true
		}
		require.NoError(t, c.run(c.on(d)))
		require.Empty(t, d.order.wrong)
		require.GreaterOrEqual(t, d.order.seen, c.outputs)
	}
}

// TestOutputNames requires that temporary files of different outputs never have the same name.
func TestOutputNames(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 120)
	hash := strings.TrimPrefix(filepath.Base(stagingDir(long)), ".superstep")
	names := []string{"x", "x.lock", "x.done", "lock-x", "done-x", "kept-x", ".lock-x", "-x", "+x", long, hash, hash[1:], "lock" + hash, "seal", "journal", "whole", "superstep-x"}
	whose := map[string]string{}
	for _, name := range names {
		stage := stagingDir(filepath.Join(dir, name))
		for _, path := range []string{stage, lockPath(stage), receiptPath(stage), siblingPath(stage, "kept"), siblingPath(stage, "kept2")} {
			require.NotContains(t, whose, path, "%s and %s", whose[path], name)
			whose[path] = name
		}
	}
	require.NoError(t, runSink(t, func(b *engine.Builder) {
		rows := FromSlice(b, lineRows(3))
		for i, name := range names {
			WriteCSV(rows, filepath.Join(dir, name), CSVWriteOptions{PerShard: i%2 == 1})
		}
	}))
	got := treeChecksums(t, dir)
	for i, name := range names {
		if i%2 == 1 {
			name += "/"
		}
		require.Contains(t, got, name)
	}
	for name := range got {
		require.False(t, strings.HasPrefix(name, ".superstep"), name)
	}
	misuse := func(words string, paths ...string) {
		t.Helper()
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
			rows := FromSlice(b, lineRows(3))
			for _, path := range paths {
				WriteCSV(rows, path, CSVWriteOptions{PerShard: true})
			}
			return nil
		}, "output_together_test.go:", words)
	}
	misuse(`the output path a/.superstep-x has a name that begins with ".superstep"`, "a/.superstep-x")
	misuse(`has a name that begins with ".superstep"`, "client:.superstep.lock-x")
	misuse("the output path a/b/c is within a/b, the output of the sink added at output_together_test.go:", "a/b", "a/b/c")
	misuse("would lie within the output path a/b; outputs cannot lie within each other", "a/b/c/d", "a/./b")
	misuse("the output path client:a/b is taken by the sink added at", "client:a/b", "client:a/./b")
}

// failingSink is a sink whose Commit calls the function then and fails. Commit is called after
// all outputs have become visible.
type failingSink struct{ then func() }

func (failingSink) Begin() error { return nil }
func (failingSink) Abort() error { return nil }
func (s failingSink) Commit() error {
	s.then()
	return errNoSpace
}

// TestUndoIsNoted makes another sink fail, so that a set of outputs is taken back. Meanwhile it
// interrupts the process or makes a call of the disk fail. If one output has been taken back
// before that, the next run must take back the others.
func TestUndoIsNoted(t *testing.T) {
	j := multipleOutputs{outputs: 4, rows: 7}
	first := j.want(t)
	j.rows = 5
	second := j.want(t)
	for _, dies := range []bool{true, false} {
		undone := 0
		for at := 1; ; at++ {
			if at > 6 { // by this call the journal has been rewritten and the first output has been taken back
				at += strideOf(4) - 1
			}
			j.dir, j.rows = t.TempDir(), 7
			d := &testDisk{order: newDiskOrder()}
			undoing, calls, taken := false, 0, false
			d.order.cut = func(name string, paths []string) bool {
				if !undoing {
					return false
				}
				calls++
				d.dead = dies && calls == at
				taken = taken || name == "rename" && filepath.Base(paths[0]) == "out-0" && calls < at
				return calls == at
			}
			j.last = failingSink{func() { undoing = true }}
			err := j.run(d)
			j.last = nil
			require.ErrorIs(t, err, errNoSpace)
			require.True(t, undoing)
			if calls < at {
				require.Empty(t, treeChecksums(t, j.dir))
				break
			}
			name := fmt.Sprintf("dies %v, call %d", dies, at)
			j.rows = 5
			err = j.run(&testDisk{})
			if err == nil {
				undone++
				require.Equal(t, second, treeChecksums(t, j.dir), name)
				continue
			}
			require.False(t, taken, "%s: %v", name, err)
			require.ErrorContains(t, err, "has just been finished", name)
			require.Equal(t, first, treeChecksums(t, j.dir), name)
		}
		require.Greater(t, undone, 3)
	}
}

// TestOutputsThatDoNotLast makes each sync of the disk fail in turn. The run must fail and no
// output may be visible, as no step may rely on data that a crash may lose.
func TestOutputsThatDoNotLast(t *testing.T) {
	for _, c := range cutOffs {
		if c.outputs == 40 {
			continue
		}
		for at := 1; ; at++ {
			c.dir, c.rows = t.TempDir(), 7
			before := c.makeOld(t)
			calls := 0
			what := ""
			d := &testDisk{order: newDiskOrder()}
			d.order.cut = func(name string, paths []string) bool {
				if name != "sync" && name != "syncdir" {
					return false
				}
				if calls++; calls == at {
					what = name + " " + paths[0]
				}
				return calls == at
			}
			err := c.run(c.on(d))
			if calls < at {
				require.NoError(t, err)
				require.Greater(t, at, 1)
				break
			}
			require.ErrorIs(t, err, errDead, what)
			require.Equal(t, before, visible(treeChecksums(t, c.dir)), what)
		}
	}
}
