//go:build linux

package comqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// TestDamageIsFoundOnce requires that, if several subtasks fail, the first of them verifies the
// files of all subtasks and the other subtasks use its result. A subtask whose run has ended in
// the meantime leaves no result.
func TestDamageIsFoundOnce(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	files := mapped.NewFiles(disk.OS(), t.TempDir())
	defer files.Close()
	block, region, err := files.HoldBytes([]int{100}, func(int, []byte) error { return nil })
	require.NoError(t, err)
	defer region.Release()
	gangOf := func(ctx context.Context) *gang {
		g := &gang{}
		for subtask := range 3 {
			b := &body{gang: g, subtask: subtask}
			b.context.task = &engine.Context{Context: ctx}
			g.bodies = append(g.bodies, b)
		}
		g.bodies[2].rowsOnDisk = []*onDisk{{title: "rows", shard: 7, region: region}}
		return g
	}
	failure := errors.New("the loss is not a number")
	fails := func(b *body) error { return b.guard(func() error { return failure }) }

	sound, damaged, ended := gangOf(t.Context()), gangOf(t.Context()), gangOf(ctx)
	require.Equal(t, failure, fails(sound.bodies[0]))
	block[3] ^= 1
	require.Equal(t, failure, fails(sound.bodies[1]), "the files must not be verified again")
	require.ErrorContains(t, fails(damaged.bodies[1]), "rows, kept beyond the memory budget: the file ")
	require.Equal(t, 7, damaged.bodies[1].context.currentShard())
	block[3] ^= 1
	require.ErrorContains(t, fails(damaged.bodies[0]), "rows, kept beyond the memory budget: the file ")
	require.Equal(t, 7, damaged.bodies[0].context.currentShard())

	// If the function's error already contains the damage, the damage must be reported only
	// once, with the shard in which the function failed.
	for _, format := range []string{"emit: %w", "emit: %v"} {
		b := gangOf(t.Context()).bodies[1]
		block[3] ^= 1
		told := b.guard(func() error {
			b.context.shard.Store(3)
			return fmt.Errorf(format, (&onDisk{title: "rows", region: region}).verify())
		})
		require.Equal(t, 1, strings.Count(told.Error(), "is damaged"), told)
		block[3] ^= 1
		if format == "emit: %w" {
			require.Equal(t, 3, b.context.currentShard())
		}
	}

	// Without damage, the error names the shard in which the function failed.
	b := gangOf(t.Context()).bodies[1]
	require.Equal(t, failure, b.guard(func() error {
		b.context.shard.Store(3)
		return failure
	}))
	require.Equal(t, 3, b.context.currentShard())

	// Damage of blocks of other subtasks is found too, and the errors of the function itself
	// are kept.
	block[3] ^= 1
	g := gangOf(t.Context())
	g.bodies[2].rowsOnDisk, g.bodies[2].blocks.onDisk = nil, g.bodies[2].rowsOnDisk
	var found *disk.DamagedError
	err = fails(g.bodies[0])
	require.ErrorAs(t, err, &found)
	require.ErrorContains(t, err, failure.Error())
	err = g.bodies[1].guard(func() error { return fmt.Errorf("%w; and then: %v", failure, g.damage.err) })
	require.ErrorIs(t, err, failure)
	require.ErrorAs(t, err, &found)
	require.Equal(t, 1, strings.Count(err.Error(), "is damaged"))
	err = g.bodies[1].guard(func() error { var none *brokenError; return none })
	require.ErrorAs(t, err, &found)
	block[3] ^= 1

	end()
	block[3] ^= 1
	require.Equal(t, failure, fails(ended.bodies[0]))
	require.NoError(t, ended.bodies[0].findDamage())
	require.False(t, ended.damage.known)
}

// brokenError is an error whose nil pointer panics.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }
