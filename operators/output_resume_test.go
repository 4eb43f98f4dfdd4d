package operators

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/checksum"
)

// resumeCase describes an output of three shards, of which the second is empty.
type resumeCase struct {
	name              string
	perShard, replace bool
	old               bool // an old output exists, which the new output replaces
	on                func(*testDisk) outputDisk
}

func plainDisk(d *testDisk) outputDisk   { return d }
func unexchanged(d *testDisk) outputDisk { return noExchange{d} }
func plain(d *testDisk) outputDisk {
	d.plain = true
	return d
}

var resumeCases = []resumeCase{
	{"file", false, false, false, plainDisk},
	{"file, replace", false, true, false, plainDisk},
	{"file, replace old", false, true, true, plainDisk},
	{"file, replace old without exchange", false, true, true, unexchanged},
	{"file, replace old without exchange and link", false, true, true, plain},
	{"directory", true, false, false, plainDisk},
	{"directory, replace", true, true, false, plainDisk},
	{"directory, replace old", true, true, true, plainDisk},
	{"directory, replace old without exchange", true, true, true, unexchanged},
}

func (c *resumeCase) output(dir string, d *testDisk) *fileOutput {
	return &fileOutput{path: filepath.Join(dir, "out"), perShard: c.perShard, replace: c.replace, format: numberText, shards: 3, disk: c.on(d)}
}

// commitParts commits the output of a run that has only this output. The commit is recorded.
func commitParts(o *fileOutput, written [][]byte) error {
	err := o.Complete(engine.Completion{Written: written, Recorded: true})
	if err == nil {
		err = o.Place()
	}
	if err != nil {
		return errors.Join(err, o.TakeBack())
	}
	o.Finish()
	return nil
}

// resume does what a process does to finish the commit of another process.
func resume(o *fileOutput, written [][]byte) error {
	err := o.Complete(engine.Completion{Written: written, Recorded: true, Resumed: true})
	if err == nil {
		err = o.Place()
	}
	if err != nil {
		return errors.Join(err, o.TakeBack(), o.Leave())
	}
	o.Finish()
	return nil
}

// trees returns the expected files before and after the commit.
func (c *resumeCase) trees() (before, after map[string]string) {
	before = map[string]string{}
	if !c.perShard {
		if c.old {
			before["out"] = "n\nold\n"
		}
		return before, map[string]string{"out": "n\nzero\ntwo\n"}
	}
	if c.old {
		before = map[string]string{"out/": "", "out/part-00000.txt": "n\nolde\n", "out/part-00001.txt": "n\n", "out/part-00002.txt": "n\nold\n"}
	}
	return before, map[string]string{"out/": "", "out/part-00000.txt": "n\nzero\n", "out/part-00001.txt": "n\n", "out/part-00002.txt": "n\ntwo\n"}
}

// write performs everything that a run does before its commit, and returns the result of
// Written.
func (c *resumeCase) write(t *testing.T, o *fileOutput) [][]byte {
	require.NoError(t, o.Begin())
	return c.writeShards(t, o)
}

// writeShards writes the files of all shards of an output that has begun.
func (c *resumeCase) writeShards(t *testing.T, o *fileOutput) [][]byte {
	for shard, text := range []string{"zero\n", "", "two\n"} {
		if c.perShard {
			text = "n\n" + text
		} else if text == "" {
			continue
		}
		require.NoError(t, os.WriteFile(o.shardPath(shard), []byte(text), 0o666))
		o.note(partFile{Shard: shard, Size: int64(len(text)), Sum: checksum.CRC32C(0, []byte(text))})
	}
	written, err := o.Written()
	require.NoError(t, err)
	return [][]byte{written}
}

// crash simulates the end of an output's process: it only releases the lock.
func crash(o *fileOutput) {
	if o.stage != nil {
		_ = o.stage.lock.Abandon()
	}
}

// filesOf returns a tree without its directories, whose names end in a slash.
func filesOf(all map[string]string) map[string]string {
	files := maps.Clone(all)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "/") })
	return files
}

// visible returns a tree without hidden files.
func visible(all map[string]string) map[string]string {
	shown := maps.Clone(all)
	maps.DeleteFunc(shown, func(name, _ string) bool { return strings.HasPrefix(name, ".") })
	return shown
}

// TestResumeAfterEachStep ends the committing process at each call of the disk, and the
// resuming process at each of its calls. A third process must finish the commit. At any time
// the old output or the new output must be visible; neither may be visible only while the
// output is moved in two steps.
func TestResumeAfterEachStep(t *testing.T) {
	for _, c := range resumeCases {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.trees()
			for first := 1; ; first++ {
				ended := false
				for second := 1 + first%secondCuts; !ended; second += secondCuts {
					dir := writeFiles(t, filesOf(before))
					disk := crashesAt(0)
					o := c.output(dir, disk)
					written := c.write(t, o)
					disk.at = disk.n + first
					err := commitParts(o, written)
					if disk.last == "" {
						require.NoError(t, err)
						disk.at = 0
						require.NoError(t, o.Settle())
						require.Equal(t, after, tree(t, dir), "a commit without an interruption")
						return
					}
					crash(o)
					c.standing(t, dir, disk.last)
					again := crashesAt(second)
					o = c.output(dir, again)
					err = resume(o, written)
					if ended = again.last == ""; ended {
						require.NoError(t, err, "after %s", disk.last)
					}
					crash(o)
					c.standing(t, dir, again.last)
					for range 2 {
						o = c.output(dir, crashesAt(0))
						require.NoError(t, resume(o, written), "after %s and %s", disk.last, again.last)
						require.Equal(t, after, visible(tree(t, dir)))
					}
					require.Len(t, tree(t, dir), len(after)+1, "only the output and its receipt may remain")
					require.NoError(t, o.Settle())
					require.Equal(t, after, tree(t, dir))
				}
			}
		})
	}
}

// standing requires that the visible output is complete, unless the process was interrupted
// while it moved the output in two steps.
func (c *resumeCase) standing(t *testing.T, dir, cut string) {
	before, after := c.trees()
	whole := []map[string]string{before, after}
	if strings.HasPrefix(c.name, "directory") && c.name != "directory, replace old" || strings.HasSuffix(c.name, "link") {
		whole = append(whole, map[string]string{})
	}
	require.Contains(t, whole, visible(tree(t, dir)), "after %q", cut)
}

// TestResumeOfWhatIsGone requires that resuming fails if the state of the commit is unknown,
// whatever is at the path of the output.
func TestResumeOfWhatIsGone(t *testing.T) {
	for _, c := range resumeCases {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.trees()
			dir := writeFiles(t, filesOf(before))
			output := func() *fileOutput { return c.output(dir, crashesAt(0)) }
			o := output()
			written := c.write(t, o)
			require.NoError(t, o.Abort())
			require.ErrorContains(t, resume(output(), written), "no longer exists")
			require.Equal(t, before, tree(t, dir))

			// In the following case, another run with the same output has begun and ended.
			disk := crashesAt(0)
			o = c.output(dir, disk)
			written = c.write(t, o)
			disk.at = disk.n + 2
			require.Error(t, commitParts(o, written))
			crash(o)
			next := output()
			require.NoError(t, commitParts(next, c.write(t, next)))
			require.NoError(t, next.Settle())
			require.ErrorContains(t, resume(output(), written), "another run with this output has begun since")
			require.Equal(t, after, tree(t, dir))
		})
	}
}

// TestResumeKeepsWhatCameBetween requires that a resumed commit does not replace a file that
// another program has written to the path in the meantime.
func TestResumeKeepsWhatCameBetween(t *testing.T) {
	c := resumeCases[0]
	dir := t.TempDir()
	for step := 1; ; step++ {
		disk := crashesAt(0)
		o := c.output(dir, disk)
		written := c.write(t, o)
		disk.at = disk.n + step
		require.Error(t, commitParts(o, written))
		crash(o)
		if _, err := os.Lstat(filepath.Join(dir, "out")); err == nil {
			require.Contains(t, disk.last, "syncdir") // the interruption must come after the output has become visible
			return
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), []byte("mine"), 0o666))
		require.Error(t, resume(c.output(dir, crashesAt(0)), written))
		require.Equal(t, map[string]string{"out": "mine"}, visible(tree(t, dir)))
		require.NoError(t, os.Remove(filepath.Join(dir, "out")))
		require.NoError(t, resume(c.output(dir, crashesAt(0)), written), "resuming must succeed after the other program's file has been removed")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
	}
}

// TestResumeFindsDamagedParts requires that, if a part is damaged after the committing worker
// has ended, the resuming worker finds the damage and makes no output visible. A second attempt
// must fail in the same way.
func TestResumeFindsDamagedParts(t *testing.T) {
	for what, damage := range map[string]func(path string) error{
		"the CRC-32C of its": func(path string) error {
			return rewrite(path, func(b []byte) []byte { b[len(b)-2] ^= 1; return b })
		},
		" has 1 bytes instead of ": func(path string) error { return os.Truncate(path, 1) },
		" bytes instead of ":       func(path string) error { return rewrite(path, func(b []byte) []byte { return append(b, '\n') }) },
		" is not there":            os.Remove,
	} {
		for _, c := range resumeCases {
			before, _ := c.trees()
			dir := writeFiles(t, filesOf(before))
			disk := crashesAt(0)
			o := c.output(dir, disk)
			written := c.write(t, o)
			disk.at = disk.n + 1
			require.ErrorIs(t, commitParts(o, written), errDead, c.name)
			crash(o)
			part := o.shardPath(2)
			require.NoError(t, damage(part))
			for range 2 {
				err := resume(c.output(dir, &testDisk{}), written)
				require.ErrorContains(t, err, "shard 2, w", c.name)
				require.ErrorContains(t, err, " to "+part, c.name)
				require.ErrorContains(t, err, what, c.name)
				require.Equal(t, before, visible(tree(t, dir)), c.name)
			}
		}
	}
}

// TestResumableOutputsThatDoNotLast makes each sync of the disk fail in turn, and requires that
// the commit then fails.
func TestResumableOutputsThatDoNotLast(t *testing.T) {
	for _, c := range resumeCases {
		before, _ := c.trees()
		for at := 1; ; at++ {
			dir := writeFiles(t, filesOf(before))
			disk := &testDisk{order: newDiskOrder()}
			o := c.output(dir, disk)
			written := c.write(t, o)
			calls, what := 0, ""
			disk.order.cut = func(name string, paths []string) bool {
				if name != "sync" && name != "syncdir" {
					return false
				}
				if calls++; calls == at {
					what = name + " " + paths[0]
				}
				return calls == at
			}
			err := commitParts(o, written)
			if calls < at {
				require.NoError(t, err, c.name)
				require.Greater(t, at, 3)
				break
			}
			require.ErrorIs(t, err, errDead, "%s, %s", c.name, what)
			require.Equal(t, before, visible(tree(t, dir)), "%s, %s", c.name, what)
			crash(o)
		}
	}
}
