package operators

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/filelock"
)

// attempt returns the output in a process of an attempt of a job on a cluster.
func (c *resumeCase) attempt(dir, job string, number int) *fileOutput {
	o := c.output(dir, &testDisk{})
	o.owner = filelock.Owner{Job: job, Attempt: number}
	return o
}

// TestAttemptsThatOverlap runs the next attempt of a job while processes of the attempt before still
// write to the same output: its worker 0, and another worker, which joins early or late. They end
// at any step of the next attempt, by removing what they wrote or by a kill. The output must be that
// of the next attempt, and nothing else may be left when all have ended.
func TestAttemptsThatOverlap(t *testing.T) {
	steps := []string{"begun", "written", "complete", "placed", "finished"}
	for _, c := range resumeCases {
		for _, end := range steps {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, former attempt ends when the next has %s, killed %v", c.name, end, killed), func(t *testing.T) {
					testOverlap(t, &c, end, killed)
				})
			}
		}
	}
}

func testOverlap(t *testing.T, c *resumeCase, end string, killed bool) {
	before, after := c.trees()
	dir := writeFiles(t, filesOf(before))
	former, member, late := c.attempt(dir, "job", 1), c.attempt(dir, "job", 1), c.attempt(dir, "job", 1)
	c.write(t, former)
	require.NoError(t, member.Join())

	next, joined, other := c.attempt(dir, "job", 2), c.attempt(dir, "job", 2), c.attempt(dir, "another-job", 7)
	require.NoError(t, next.Begin())
	require.NoError(t, joined.Join())
	require.Equal(t, next.parts, joined.parts)
	reach := func(step string) {
		_, err := osDisk{}.Create(member.shardPath(1))
		require.Error(t, err, "%s: a worker of the former attempt must not find the directory of its files", step)
		require.Error(t, late.Join(), "%s: a worker of the former attempt that begins late must not find the files of the next", step)
		require.ErrorIs(t, c.attempt(dir, "job", 1).Begin(), filelock.ErrTaken, step)
		require.ErrorContains(t, other.Begin(), "is writing it just now", "%s: another job must not write the output", step)
		if step != end {
			return
		}
		require.NoError(t, member.Leave())
		if killed {
			crash(former)
		} else {
			require.NoError(t, former.Abort())
		}
		require.ErrorContains(t, other.Begin(), "is writing it just now", "%s: the end of the former attempt must not unlock the output", step)
	}
	reach("begun")
	written := c.writeShards(t, next)
	reach("written")
	require.NoError(t, next.Complete(engine.Completion{Written: written, Recorded: true}))
	reach("complete")
	require.NoError(t, next.Place())
	reach("placed")
	next.Finish()
	require.NoError(t, next.Settle())
	if end == "finished" {
		require.NoError(t, member.Leave())
		if killed {
			crash(former)
		} else {
			require.NoError(t, former.Abort())
		}
	}
	require.Equal(t, after, tree(t, dir))
}

// TestResumedCommitAfterOverlap requires that the process that finishes the commit of an attempt is
// not held up by a process of an attempt before, and waits for one of the attempt that committed.
func TestResumedCommitAfterOverlap(t *testing.T) {
	for _, c := range resumeCases {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.trees()
			dir := writeFiles(t, filesOf(before))
			former, next, resumed := c.attempt(dir, "job", 1), c.attempt(dir, "job", 2), c.attempt(dir, "job", 3)
			c.write(t, former)
			written := c.write(t, next)
			require.NoError(t, next.Complete(engine.Completion{Written: written, Recorded: true}))
			_, err := lockStaging(stagingDir(next.target), resumed.owner, false)
			require.ErrorIs(t, err, errLocked, "the lock of a process that commits must not be taken over")
			crash(next)
			require.NoError(t, resume(resumed, written))
			require.NoError(t, former.Abort())
			require.NoError(t, resumed.Settle())
			require.Equal(t, after, tree(t, dir))
		})
	}
}
