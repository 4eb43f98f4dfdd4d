package operators

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutAfter interrupts a run after the given number of its outputs have been moved to their
// targets.
func cutAfter(t *testing.T, j *multipleOutputs, placed int, on func(*testDisk) outputDisk) {
	t.Helper()
	d := crashesAt(0)
	d.order = newDiskOrder()
	next := filepath.Join(j.dir, j.name(placed))
	d.order.cut = func(name string, paths []string) bool {
		if (name == "renamenew" || name == "rename" || name == "exchange") && paths[len(paths)-1] == next {
			d.dead = true
		}
		return d.dead
	}
	require.ErrorIs(t, j.run(on(d)), errDead)
}

// alteredRuns has the kinds of disks on which tests interrupt a run of four outputs after two
// of them have been moved to their targets.
var alteredRuns = []struct {
	replace bool
	on      func(*testDisk) outputDisk
	away    bool // an old output is moved away before the new output is moved to the target
	second  bool // a hard link to an old file is made before the new file replaces it
}{{false, plainDisk, false, false}, {true, plainDisk, false, false}, {true, unexchanged, false, true}, {true, plain, true, false}}

// of returns the files of the tree all that belong to the output name.
func of(all map[string]string, name string) map[string]string {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(path, _ string) bool { return path != name && !strings.HasPrefix(path, name+"/") })
	return some
}

// but returns the files of the tree all that do not belong to the output name.
func but(all map[string]string, name string) map[string]string {
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(path, _ string) bool { return path == name || strings.HasPrefix(path, name+"/") })
	return rest
}

// TestOutputsThatAreLost requires that, if another program has removed a staged output, the
// next run returns an error that says so, and takes the set back. If an output is at its target
// and only its staging directory has been removed, there must be no error.
func TestOutputsThatAreLost(t *testing.T) {
	for _, c := range alteredRuns {
		for name, remove := range map[string]func(dir string, i int) string{
			"what was complete": func(dir string, i int) string {
				stage := filepath.Join(dir, fmt.Sprintf(".superstep-out-%d", i))
				if i%2 == 0 {
					return filepath.Join(stage, wholeFile)
				}
				parts, err := findParts(stage, partsDir)
				require.NoError(t, err)
				return parts
			},
			"the hidden directory": func(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf(".superstep-out-%d", i)) },
		} {
			for lost := 2; lost < 4; lost++ {
				j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
				before := j.makeOld(t)
				cutAfter(t, &j, 2, c.on)
				require.NoError(t, os.RemoveAll(remove(j.dir, lost)))
				if _, err := os.Lstat(filepath.Join(j.dir, j.name(lost))); err != nil && name == "the hidden directory" {
					delete(before, j.name(lost)) // the old output had been moved to the removed directory
				}
				at := fmt.Sprintf("replace %v, %s of %d", c.replace, name, lost)
				j.rows = 5
				for first := range 2 { // no file of the set must be left for the second run
					next := multipleOutputs{dir: j.dir, outputs: 1, rows: 5}
					err := next.run(&testDisk{})
					if first == 0 {
						require.ErrorContains(t, err, filepath.Join(j.dir, j.name(lost)), at)
						require.ErrorContains(t, err, "is neither in", at)
						require.NotContains(t, err.Error(), "just been finished", at)
						require.Equal(t, before, treeChecksums(t, j.dir), at)
					} else if c.replace {
						require.ErrorContains(t, err, "exists: ", at)
					} else {
						require.NoError(t, err, at)
					}
				}
				j.replace = true
				require.NoError(t, j.run(&testDisk{}), at)
				require.Equal(t, j.want(t), treeChecksums(t, j.dir), at)
			}
		}
		j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
		j.makeOld(t)
		cutAfter(t, &j, 2, c.on)
		require.NoError(t, os.RemoveAll(filepath.Join(j.dir, ".superstep-out-1")))
		next := multipleOutputs{dir: j.dir, outputs: 1, rows: 5}
		require.ErrorContains(t, next.run(&testDisk{}), "has just been finished")
		require.Equal(t, j.want(t), treeChecksums(t, j.dir))
	}
}

// TestOutputsWithoutTheirJournal requires an error if the journal is missing, but some outputs
// of a set are at their targets and others are staged, which shows that there was a journal.
func TestOutputsWithoutTheirJournal(t *testing.T) {
	for _, c := range alteredRuns {
		for _, gone := range []string{".superstep-out-0/journal", ".superstep-out-0"} {
			for _, i := range []int{0, 1, 3} {
				if gone == ".superstep-out-0" && i != 3 {
					continue // only the output out-0 itself is left of its files, and out-1 is at its target
				}
				j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
				j.makeOld(t)
				cutAfter(t, &j, 2, c.on)
				require.NoError(t, os.RemoveAll(filepath.Join(j.dir, gone)))
				before := treeChecksums(t, j.dir)
				at := fmt.Sprintf("replace %v, %s, %d", c.replace, gone, i)
				next := multipleOutputs{dir: j.dir, outputs: i + 1, first: i, rows: 5, replace: true}
				for range 2 {
					err := next.run(&testDisk{})
					require.ErrorContains(t, err, filepath.Join(j.dir, ".superstep-out-0", journalFile), at)
					require.ErrorContains(t, err, filepath.Join(j.dir, "out-0"), at)
					require.ErrorContains(t, err, filepath.Join(j.dir, ".superstep-out-3"), at)
					delete(before, fmt.Sprintf(".superstep.lock-out-%d", i))
					require.Equal(t, before, treeChecksums(t, j.dir), at)
				}
				// The job must succeed after the user has followed the advice of the error.
				for i := range j.outputs {
					require.NoError(t, os.RemoveAll(filepath.Join(j.dir, fmt.Sprintf(".superstep-out-%d", i))))
				}
				j.replace, j.rows = true, 5
				require.NoError(t, j.run(&testDisk{}), at)
				require.Equal(t, j.want(t), treeChecksums(t, j.dir), at)
			}
		}
		// If all outputs or none of them are at their targets, there must be no error.
		for _, placed := range []int{0, 3} {
			if placed == 0 && c.away {
				continue // the replacement of the first output has begun, so there must be an error
			}
			j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
			before := j.makeOld(t)
			cutAfter(t, &j, placed, c.on)
			require.NoError(t, os.Remove(filepath.Join(j.dir, ".superstep-out-0", journalFile)))
			if placed == 3 {
				require.NoError(t, os.RemoveAll(filepath.Join(j.dir, ".superstep-out-3")))
			}
			next := multipleOutputs{dir: j.dir, outputs: 3, first: 2, rows: 5, replace: true}
			require.NoError(t, next.run(&testDisk{}))
			if placed == 0 {
				require.Equal(t, of(before, "out-1"), of(treeChecksums(t, j.dir), "out-1"))
			}
		}
	}
}

// TestOutputsAlteredByOthers alters the outputs of an interrupted set in several ways, as other
// programs may. It requires that files of other programs are not changed, that old outputs are
// moved back or kept beside their targets, and that later runs do not fail.
func TestOutputsAlteredByOthers(t *testing.T) {
	remove := func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(path)) }
	edit := func(t *testing.T, path string) { // edits the file in place
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "part-00000.csv")
		}
		require.NoError(t, rewrite(path, func(b []byte) []byte { return append(b, "mine"...) }))
	}
	mine := func(t *testing.T, path string) {
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	}
	for _, c := range alteredRuns {
		for name, meddle := range map[string]func(*testing.T, string){"removed": remove, "edited": edit, "theirs": mine} {
			for which := range 2 {
				j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
				before := j.makeOld(t)
				cutAfter(t, &j, 2, c.on)
				out := j.name(which)
				meddle(t, filepath.Join(j.dir, out))
				theirs := of(treeChecksums(t, j.dir), out)
				at := fmt.Sprintf("replace %v, %s %s", c.replace, out, name)
				next := multipleOutputs{dir: j.dir, outputs: 4, first: 3, rows: 5, replace: true}
				err := next.run(&testDisk{})
				require.ErrorContains(t, err, filepath.Join(j.dir, out)+" is neither in "+filepath.Join(j.dir, ".superstep-"+out), at)
				require.ErrorContains(t, err, "run the job again", at)
				got := treeChecksums(t, j.dir)
				kept := filepath.Join(j.dir, ".superstep.kept-"+out)
				if name == "removed" {
					require.Equal(t, before, got, at)
				} else {
					require.Equal(t, theirs, of(got, out), at)
					require.Equal(t, but(before, out), visible(but(got, out)), at)
					require.Len(t, got, len(theirs)+len(but(before, out))+len(of(before, out)), at)
					if c.replace {
						require.ErrorContains(t, err, kept, at)
						require.Len(t, of(got, ".superstep.kept-"+out), len(of(before, out)), at)
						for path, content := range of(before, out) {
							require.Equal(t, content, got[".superstep.kept-"+path], at)
						}
					}
				}
				require.NoError(t, next.run(&testDisk{}), at)
				require.NoError(t, os.RemoveAll(kept))
				if name == "theirs" {
					require.NoError(t, os.RemoveAll(filepath.Join(j.dir, out)))
				}
				j.replace, j.rows = true, 5
				if name != "edited" || which == 0 {
					require.NoError(t, j.run(&testDisk{}), at)
					require.Equal(t, j.want(t), treeChecksums(t, j.dir), at)
				}
			}
		}
		// All outputs have been removed.
		j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
		before := j.makeOld(t)
		cutAfter(t, &j, 2, c.on)
		for i := range j.outputs {
			require.NoError(t, os.RemoveAll(filepath.Join(j.dir, j.name(i))))
		}
		j.rows, j.replace = 5, true
		require.ErrorContains(t, j.run(&testDisk{}), "run the job again")
		want := map[string]string{}
		maps.Copy(want, of(before, "out-0"))
		maps.Copy(want, of(before, "out-1"))
		if c.away || c.second { // the old out-2 had been moved away or linked when the run was interrupted
			maps.Copy(want, of(before, "out-2"))
		}
		require.Equal(t, want, treeChecksums(t, j.dir))
		require.NoError(t, j.run(&testDisk{}))
		require.Equal(t, j.want(t), treeChecksums(t, j.dir))
	}
}

// TestOutputsMadeMeanwhile requires that, if another program replaces an old output before the
// run does, the output of that program stays and the set is taken back.
func TestOutputsMadeMeanwhile(t *testing.T) {
	for _, c := range alteredRuns {
		for _, stood := range []bool{false, true} {
			for _, inPlace := range []bool{false, true} {
				if inPlace && !stood || stood && !c.replace {
					continue
				}
				j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
				before := j.makeOld(t)
				path := filepath.Join(j.dir, "out-2")
				if !stood {
					require.NoError(t, os.RemoveAll(path))
					delete(before, "out-2")
				}
				cutAfter(t, &j, 2, c.on)
				if inPlace {
					require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
				} else {
					require.NoError(t, os.WriteFile(filepath.Join(j.dir, "mine"), []byte("mine"), 0o600))
					require.NoError(t, os.Rename(filepath.Join(j.dir, "mine"), path))
				}
				next := multipleOutputs{dir: j.dir, outputs: 3, first: 2, rows: 5}
				err := next.run(&testDisk{})
				kept := ".superstep.kept-out-2"
				if content, ok := treeChecksums(t, j.dir)[kept]; ok { // the old output, if it had been moved away or linked before
					require.Equal(t, before["out-2"], content)
					require.ErrorContains(t, err, filepath.Join(j.dir, kept))
					require.NoError(t, os.Remove(filepath.Join(j.dir, kept)))
					err = next.run(&testDisk{})
				}
				require.ErrorContains(t, err, "out-2 exists: ")
				before["out-2"] = "mine"
				require.Equal(t, before, treeChecksums(t, j.dir))
			}
		}
	}
}

// TestOutputsReplacedAfterTheirSet interrupts a run while it removes its staging directories,
// when all outputs are at their targets. The next run must remove the remaining staging
// directories, whatever other programs have done to the outputs since.
func TestOutputsReplacedAfterTheirSet(t *testing.T) {
	for _, c := range alteredRuns {
		cut := 0
		j := multipleOutputs{outputs: 4, rows: 7}
		want := j.want(t)
		j.rows = 2
		later := j.want(t)
		for at := 1; ; at += strideOf(5) {
			j := multipleOutputs{outputs: 4, rows: 7, replace: c.replace, dir: t.TempDir()}
			j.makeOld(t)
			d := &testDisk{order: newDiskOrder()}
			removed, stand := 0, false
			d.order.cut = func(name string, paths []string) bool {
				stand = stand || paths[len(paths)-1] == filepath.Join(j.dir, "out-3")
				if stand && name == "removeall" && filepath.Base(paths[0]) == ".superstep-out-3" || removed > 0 {
					removed++
					d.dead = d.dead || removed > at
				}
				return d.dead
			}
			err := j.run(c.on(d))
			if !d.dead {
				require.NoError(t, err)
				break
			}
			cut++
			last := multipleOutputs{dir: j.dir, outputs: 4, first: 3, rows: 2, replace: true}
			require.NoError(t, last.run(&testDisk{}))
			first := multipleOutputs{dir: j.dir, outputs: 1, rows: 5}
			require.ErrorContains(t, first.run(&testDisk{}), "exists")
			got := treeChecksums(t, j.dir)
			require.Equal(t, of(want, "out-0"), of(got, "out-0"))
			require.Equal(t, of(later, "out-3"), of(got, "out-3"))
		}
		require.GreaterOrEqual(t, cut, 3)
	}
}

// TestOutputsAlteredByOthersAndCutOff alters outputs of an interrupted set and also interrupts
// the run that takes the set back, at each call of the disk. The next run must finish taking
// the set back, and no file of other programs may be lost.
func TestOutputsAlteredByOthersAndCutOff(t *testing.T) {
	for _, c := range alteredRuns[1:] {
		for at := 1; ; at += strideOf(3) {
			j := multipleOutputs{outputs: 4, rows: 7, replace: true, dir: t.TempDir()}
			before := j.makeOld(t)
			cutAfter(t, &j, 2, c.on)
			require.NoError(t, os.WriteFile(filepath.Join(j.dir, "out-0"), []byte("mine"), 0o600))
			next := multipleOutputs{dir: j.dir, outputs: 4, first: 3, rows: 5, replace: true}
			d := crashesAt(at)
			require.Error(t, next.run(c.on(d)))
			_ = next.run(c.on(&testDisk{})) // may return an error
			require.NoError(t, next.run(c.on(&testDisk{})), "call %d, %s", at, d.last)
			got := treeChecksums(t, j.dir)
			require.Equal(t, "mine", got["out-0"], "call %d, %s", at, d.last)
			require.Equal(t, before["out-0"], got[".superstep.kept-out-0"], "call %d, %s", at, d.last)
			delete(got, ".superstep.kept-out-0")
			require.Equal(t, but(but(before, "out-0"), "out-3"), but(but(visible(got), "out-0"), "out-3"))
			if d.last == "" {
				require.Equal(t, visible(got), got)
				break
			}
		}
	}
}
