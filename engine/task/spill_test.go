package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

const shuffles = `
	a = source rows=3000
	b = map a/hash
	c = union b/rebalance a
	d = tap c/custom`

// TestSpill requires that rows beyond the budget are written to disk and read back in order, and
// that rows in memory stay within the budget.
func TestSpill(t *testing.T) {
	g := parseGraph(16, shuffles)
	want := g.reference()
	for _, budget := range []int64{1, 3000, 20000} {
		for _, p := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d/p%d", budget, p), func(t *testing.T) {
				got := g.run(t, context.Background(), p, Env{MemoryBudget: budget, BatchRows: 64}, hooks{})
				require.NoError(t, got.err)
				require.Equal(t, want, got.taps)
				require.Positive(t, got.report.Spilled)
				require.LessOrEqual(t, got.report.PeakMemory, budget)
			})
		}
	}
	got := g.run(t, context.Background(), 3, Env{MemoryBudget: 1 << 30}, hooks{})
	require.NoError(t, got.err)
	require.Zero(t, got.report.Spilled)
	require.Positive(t, got.report.PeakMemory)
}

// TestSpillCleansUp requires that files are removed after failures and cancellation too.
// testGraph.run checks that the directory is empty.
func TestSpillCleansUp(t *testing.T) {
	env := Env{MemoryBudget: 1, BatchRows: 16}
	text := strings.Replace(shuffles, "union", "user", 1)
	ctx, cancel := context.WithCancel(context.Background())
	var dir string
	op := funcOperator{process: func(c *Context, _, s int, rows arrow.Record, out Output) error {
		files, err := filepath.Glob(filepath.Join(c.SpillDir, "*.arrow"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("nothing was spilled: %v", err)
		}
		dir = c.SpillDir
		return errBoom
	}}
	got := parseGraph(8, text).run(t, ctx, 1, env, with(op))
	require.ErrorIs(t, got.err, errBoom)
	require.NoDirExists(t, dir)

	op.process = func(c *Context, _, s int, rows arrow.Record, out Output) error {
		cancel()
		return out.Emit(s, arrowrows.Batch(rows))
	}
	got = parseGraph(8, text).run(t, ctx, 3, env, with(op))
	require.Equal(t, context.Canceled, got.err)
}

// TestRemovedSpillFiles requires that a run succeeds even if its open files were removed
// before its end.
func TestRemovedSpillFiles(t *testing.T) {
	text := strings.Replace(shuffles, "union", "user", 1)
	gone := 0
	op := funcOperator{process: func(c *Context, _, s int, rows arrow.Record, out Output) error {
		files, err := filepath.Glob(filepath.Join(c.SpillDir, "*.arrow"))
		for _, f := range files {
			gone++
			err = errors.Join(err, os.Remove(f))
		}
		return errors.Join(err, out.Emit(s, arrowrows.Batch(rows)))
	}}
	got := parseGraph(8, text).run(t, context.Background(), 1, Env{MemoryBudget: 1, BatchRows: 16}, with(op))
	require.NoError(t, got.err)
	require.Positive(t, gone)
}

// TestDiskFull requires that a full disk is reported with advice. It creates links to /dev/full,
// to which every write fails for lack of space, at the paths where inboxes will create files.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("this system has no /dev/full; disk full is tested elsewhere")
		return
	}
	parent := t.TempDir()
	h := hooks{operators: map[string]func() Operator{"user": func() Operator {
		dirs, err := filepath.Glob(filepath.Join(parent, "*"))
		require.NoError(t, err)
		for _, dir := range dirs {
			for e := range 4 {
				_ = os.Symlink("/dev/full", filepath.Join(dir, fmt.Sprintf("edge%d-subtask0.arrow", e)))
			}
		}
		return &funcOperator{}
	}}}
	text := strings.Replace(shuffles, "union", "user", 1)
	got := parseGraph(8, text).run(t, context.Background(), 1, Env{MemoryBudget: 1, SpillDir: parent}, h)
	require.ErrorIs(t, got.err, syscall.ENOSPC)
	require.ErrorContains(t, got.err, "no space left on device; free disk space")
	require.ErrorContains(t, got.err, `(test.txt:`)
}

// fullDisk is a disk without space: files cannot be created, or cannot be written to.
type fullDisk struct {
	disk.FS
	makes bool // whether files can be created
}

func (d fullDisk) OpenFile(path string, flag int, perm os.FileMode) (disk.File, error) {
	if !d.makes {
		return nil, syscall.ENOSPC
	}
	f, err := d.FS.OpenFile(path, flag, perm)
	return fullFile{f}, err
}

type fullFile struct{ disk.File }

func (fullFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullDiskIsReportedAtOnce requires that a full disk is reported when the first message
// arrives whose rows cannot be written, even if it is the only message and its rows are never
// read.
func TestFullDiskIsReportedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text  int // bytes of a row; a row larger than the file's buffer is written immediately
		makes bool
	}{"few bytes": {10, true}, "many bytes": {1 << 20, true}, "no file": {10, false}} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			e := newEnds(sharding.Range{Lo: 0, Hi: 1}, false, nil)
			in := newInbox(sharding.Range{Lo: 0, Hi: 1}, e)
			var errs []error
			in.fail = func(shard int, err error) {
				require.Equal(t, 0, shard)
				errs = append(errs, err)
			}
			in.budget = NewBudget("", 1, nil)
			in.spill = &spillFile{path: filepath.Join(t.TempDir(), "rows"), disk: fullDisk{disk.OS(), c.makes}, mem: mem, total: new(atomic.Int64), logger: hclog.NewNullLogger()}
			in.Receive(transport.Message{Rows: makeRows(mem, []row{{0, strings.Repeat("x", c.text)}}), Last: true, Sent: 1, SentRows: 1})
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], syscall.ENOSPC)
			require.ErrorContains(t, errs[0], "spill rows beyond the memory budget to "+in.spill.path)
			require.Zero(t, e.firstUnsettled(0), "the source shard must not be settled, as its rows are not stored")
			require.True(t, in.filed[0].empty())
			require.NoError(t, in.close())
		})
	}
}

// TestSweep requires that a run removes the directory of a killed process, but not the directory
// of a running one.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	living, err := newScratch(parent)
	require.NoError(t, err)

	child := proctest.Command(os.Args[0], "-test.run=^TestHoldScratch$")
	child.Env = append(os.Environ(), "HOLD_SCRATCH="+parent)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dead := strings.TrimSpace(line)
	require.DirExists(t, dead)

	sweep(parent)
	require.DirExists(t, dead, "the directory must stay while its process lives")
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	in.Close()

	got := parseGraph(8, pipeline).run(t, context.Background(), 1, Env{SpillDir: t.TempDir()}, with(funcOperator{}))
	require.NoError(t, got.err)
	next, err := newScratch(parent)
	require.NoError(t, err)
	require.NoDirExists(t, dead)
	require.NoFileExists(t, dead+lockSuffix)
	require.DirExists(t, living.dir)
	require.NoError(t, next.remove())
	require.NoError(t, living.remove())
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestSweepLeavesOthers requires that a sweep does not remove files that no run has created,
// whatever their names.
func TestSweepLeavesOthers(t *testing.T) {
	parent := t.TempDir()
	at := func(name string) string { return filepath.Join(parent, name) }
	require.NoError(t, os.WriteFile(at("superstep-mine.lock"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("superstep-1234.lock"), []byte("lock of something else\n\n"), 0o600))
	require.NoError(t, os.Symlink(at("notes"), at("superstep-77.lock")))
	require.NoError(t, os.WriteFile(at("notes"), []byte(lockMark), 0o600))
	require.NoError(t, os.Mkdir(at("superstep-5.lock"), 0o700))
	for _, dir := range []string{"superstep-mine", "superstep-1234", "superstep-77", "superstep-5"} {
		require.NoError(t, os.MkdirAll(at(dir+"/below"), 0o700))
	}
	list := func() (names []string) {
		require.NoError(t, filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
			names = append(names, path)
			return err
		}))
		return names
	}
	before := list()
	s, err := newScratch(parent)
	require.NoError(t, err)
	require.NoError(t, s.remove())
	require.Equal(t, before, list())
}

// TestHoldScratch is run by the process that TestSweep starts and kills. It makes a scratch
// directory and waits.
func TestHoldScratch(t *testing.T) {
	parent := os.Getenv("HOLD_SCRATCH")
	if parent == "" {
		return
	}
	s, err := newScratch(parent)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "rows"), []byte("x"), 0o600))
	fmt.Println(s.dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
}

// TestSpillDir requires that newScratch reports a directory that cannot be created, with advice.
func TestSpillDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := newScratch(filepath.Join(file, "below"))
	require.ErrorContains(t, err, "choose another spill directory")
}
