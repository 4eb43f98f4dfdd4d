package operators

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/task"
)

var _ task.ResumeSink = (*fileOutput)(nil)

// resumeCase is an output of three shards, the second of which is empty.
type resumeCase struct {
	name              string
	perShard, replace bool
	swap              func(a, b string) error
	old               bool // there is something to replace
}

var resumeCases = []resumeCase{
	{name: "file"},
	{name: "file, replace", replace: true},
	{name: "file, replace old", replace: true, old: true},
	{name: "directory", perShard: true},
	{name: "directory, replace", perShard: true, replace: true},
	{name: "directory, replace old", perShard: true, replace: true, old: true},
	{name: "directory, replace old without exchange", perShard: true, replace: true, old: true,
		swap: func(string, string) error { return errors.ErrUnsupported }},
}

func (c *resumeCase) output(dir string) *fileOutput {
	return &fileOutput{path: filepath.Join(dir, "out"), perShard: c.perShard, replace: c.replace, format: numberText, shards: 3, swap: c.swap}
}

// trees returns what stands there before and after.
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

// write is what a run does up to its commit.
func (c *resumeCase) write(t *testing.T, o *fileOutput) [][]byte {
	require.NoError(t, o.Begin())
	for shard, text := range []string{"zero\n", "", "two\n"} {
		if c.perShard {
			text = "n\n" + text
		} else if text == "" {
			continue
		}
		require.NoError(t, os.WriteFile(o.shardPath(shard), []byte(text), 0o666))
		o.note(shard, int64(len(text)))
	}
	written, err := o.Written()
	require.NoError(t, err)
	return [][]byte{written}
}

// died is the panic by which a process ends.
type died struct{ step string }

// until runs f, which ends as by the end of its process after the given step, and
// reports whether it came that far. Locks are given up, nothing else is.
func until(o *fileOutput, step int, f func() error) (last string, err error) {
	n := 0
	o.step = func(name string) {
		if n++; n == step {
			panic(died{name})
		}
	}
	defer func() {
		switch d := recover().(type) {
		case nil:
		case died:
			last = d.step
			if o.stage != nil {
				o.stage.lock.Close()
			}
		default:
			panic(d)
		}
	}()
	return "", f()
}

// filesOf is a tree without the names of directories.
func filesOf(all map[string]string) map[string]string {
	files := maps.Clone(all)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "/") })
	return files
}

// visible is a tree without what is hidden.
func visible(all map[string]string) map[string]string {
	shown := maps.Clone(all)
	maps.DeleteFunc(shown, func(name, _ string) bool { return strings.HasPrefix(name, ".") })
	return shown
}

// TestResumeAfterEachStep ends the process that commits after each step, and the one
// that resumes after each of its steps; the third finishes. At any time the old output
// stands, or the new one, or none while it is moved.
func TestResumeAfterEachStep(t *testing.T) {
	for _, c := range resumeCases {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.trees()
			cuts := map[string]bool{}
			for first := 1; ; first++ {
				ended := false
				for second := 1; !ended; second++ {
					dir := writeFiles(t, filesOf(before))
					at := fmt.Sprintf("cut %d, %d", first, second)
					o := c.output(dir)
					written := c.write(t, o)
					cut, err := until(o, first, func() error { return o.CommitParts(written) })
					require.NoError(t, err, at)
					if cut == "" {
						require.NoError(t, o.Settle())
						require.Equal(t, after, tree(t, dir), "not cut")
						require.Subset(t, cuts, map[string]bool{"complete": true, "seal": true, "take the place": true, "write the receipt": true, "remove the staging directory": true})
						return
					}
					cuts[cut] = true
					c.standing(t, dir, cut)
					o = c.output(dir)
					again, err := until(o, second, func() error { return o.Resume(written) })
					require.NoError(t, err, "%s after %s", at, cut)
					ended = again == ""
					c.standing(t, dir, again)
					for range 2 {
						o = c.output(dir)
						require.NoError(t, o.Resume(written), "%s after %s and %s", at, cut, again)
						require.Equal(t, after, visible(tree(t, dir)))
					}
					require.Len(t, tree(t, dir), len(after)+1, "the receipt alone is left")
					require.NoError(t, o.Settle())
					require.Equal(t, after, tree(t, dir))
				}
			}
		})
	}
}

// standing checks that what can be seen is whole.
func (c *resumeCase) standing(t *testing.T, dir, cut string) {
	before, after := c.trees()
	whole := []map[string]string{before, after}
	if cut == "make room" {
		whole = append(whole, map[string]string{})
	}
	require.Contains(t, whole, visible(tree(t, dir)), "after %q", cut)
}

// TestResumeOfWhatIsGone: what cannot be told is an error, whatever stands there.
func TestResumeOfWhatIsGone(t *testing.T) {
	for _, c := range resumeCases {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.trees()
			dir := writeFiles(t, filesOf(before))
			o := c.output(dir)
			written := c.write(t, o)
			require.NoError(t, o.Abort())
			require.ErrorContains(t, c.output(dir).Resume(written), "is not there any more")
			require.Equal(t, before, tree(t, dir))

			// Another run with the output has begun, and ended.
			o = c.output(dir)
			written = c.write(t, o)
			cut, _ := until(o, 1, func() error { return o.CommitParts(written) })
			require.NotEmpty(t, cut)
			next := c.output(dir)
			require.NoError(t, next.CommitParts(c.write(t, next)))
			require.NoError(t, next.Settle())
			require.ErrorContains(t, c.output(dir).Resume(written), "another run with this output has begun since")
			require.Equal(t, after, tree(t, dir))
		})
	}
}

// TestResumeKeepsWhatCameBetween: an output that someone else has made meanwhile is not
// replaced unless that was asked for.
func TestResumeKeepsWhatCameBetween(t *testing.T) {
	c := resumeCase{}
	dir := t.TempDir()
	for step := 1; step <= 4; step++ {
		o := c.output(dir)
		written := c.write(t, o)
		cut, _ := until(o, step, func() error { return o.CommitParts(written) })
		require.Contains(t, []string{"join a part", "complete", "seal"}, cut)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), []byte("mine"), 0o666))
		require.Error(t, c.output(dir).Resume(written))
		require.Equal(t, map[string]string{"out": "mine"}, visible(tree(t, dir)))
		require.NoError(t, os.Remove(filepath.Join(dir, "out")))
		require.NoError(t, c.output(dir).Resume(written), "and it is taken up when there is room")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
	}
}
