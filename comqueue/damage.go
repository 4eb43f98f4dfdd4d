package comqueue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
)

// verifyRows verifies that the files of the subtask still hold what was written to them.
func (b *body) verifyRows() error {
	if err := b.verify(b.rowsOnDisk); err != nil {
		return err
	}
	return b.verify(b.blocks.onDisk)
}

func (b *body) verify(all []*onDisk) error {
	for _, held := range all {
		b.context.shard.Store(int32(held.shard))
		if err := held.verify(); err != nil {
			return err
		}
	}
	b.context.shard.Store(-1)
	return nil
}

// verify returns an error if the file does not hold what was written to it.
func (d *onDisk) verify() error {
	if err := d.region.Verify(); err != nil {
		return fmt.Errorf("%s, kept beyond the memory budget: %w; or a function changed rows that it had borrowed, which --check finds for rows in memory", d.title, err)
	}
	return nil
}

// damage is the result of verifying the files of a process's subtasks after a failure.
type damage struct {
	verifying sync.Mutex // held while all files are verified, and while files are added or released
	known     bool
	err       error // nil if all files hold what was written to them
	shard     int32 // shard of the damaged file
}

// findDamage verifies the files of all subtasks in this process, as a function may fail because
// of the rows of another subtask. It begins with the files of this subtask. If several subtasks
// fail, the first that calls findDamage verifies for all. It returns nil if the run ends
// meanwhile, as the error of the run is already known then.
func (b *body) findDamage() error {
	d := &b.gang.damage
	d.verifying.Lock()
	defer d.verifying.Unlock()
	if !d.known {
		d.err, d.known = b.verifyAll()
		d.shard = b.context.shard.Load()
	}
	b.context.shard.Store(d.shard)
	return d.err
}

// verifyAll verifies the files of all subtasks in this process until it finds a damaged file.
// It returns done as false if the run ends first.
func (b *body) verifyAll() (damaged error, done bool) {
	all := slices.Concat(b.rowsOnDisk, b.blocks.onDisk)
	for _, other := range b.bodies {
		if other != b {
			all = slices.Concat(all, other.rowsOnDisk, other.blocks.onDisk)
		}
	}
	for i := range all {
		if b.context.Context().Err() != nil {
			return nil, false
		}
		if err := b.verify(all[i : i+1]); err != nil {
			return err, true
		}
	}
	return nil, true
}

// guard calls f. If f fails or panics, guard verifies all files before it returns, as damage by
// the disk may be the cause of any failure.
func (b *body) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if returned && err == nil || b.context.Context().Err() != nil {
			return
		}
		shard := b.context.shard.Load()
		damage := b.findDamage()
		if damage == nil {
			b.context.shard.Store(shard)
			return
		}
		if !returned {
			panic(damage) // replaces the current panic
		}
		var found *disk.DamagedError
		if errors.As(err, &found) { // f itself found damage, perhaps of another file
			b.context.shard.Store(shard)
			return
		}
		err = withCause(damage, err)
	}()
	err = f()
	returned = true
	return err
}

// withCause returns the error of a function that failed, or should have failed, because of cause.
// The text of the returned error contains the text of cause once.
func withCause(cause, err error) error {
	if err == nil {
		return cause
	}
	if strings.Contains(fmt.Sprint(err), cause.Error()) { // Sprint, as Error may panic
		return failureBecause{err, cause}
	}
	return fmt.Errorf("%w; the function failed with: %v", cause, err)
}

// failureBecause is an error whose text already has the text of its cause.
type failureBecause struct {
	error
	cause error
}

// Unwrap makes errors.Is and errors.As find the cause too.
func (f failureBecause) Unwrap() []error { return []error{f.error, f.cause} }

// guarded makes the functions of stages run within guard.
func (b *body) guarded(stages []engine.Stage) []engine.Stage {
	for i := range stages {
		s := &stages[i]
		if run := s.Run; run != nil {
			s.Run = func() error { return b.guard(run) }
		}
		if s.Repeat != nil {
			s.Repeat.Stages = b.guarded(s.Repeat.Stages)
		}
	}
	return stages
}
