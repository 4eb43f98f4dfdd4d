package comqueue

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/superstep-ml/superstep/shared"
)

// Snapshotter must be implemented by an instance of a stage added by AddNew if results depend
// on fields that the instance has set in an earlier superstep. Snapshots are kept with the
// objects of the queue, and restored on the subtask with the same number. A queue with a
// Snapshotter cannot continue at another parallelism. State under keys of package shared does
// not have that limitation.
type Snapshotter interface {
	Compute
	// AppendSnapshot appends the state of the instance, as it is between supersteps. The same state
	// always gives the same bytes, also in an instance that was just restored.
	AppendSnapshot(dst []byte) ([]byte, error)
	// Restore sets the state of a new instance from a snapshot. It does not keep src. When an instance
	// has its first snapshot, the queue checks that a new instance restored from it has the same one.
	Restore(src []byte) error
}

// hasFields reports whether an instance has memory of its own: whether its type, or the type that it
// points to, has a size. What a function captures cannot be seen, so a function has none.
func hasFields(c Compute) bool {
	t := reflect.TypeOf(c)
	if t == nil { // the factory returned nil, which is an error when the queue opens
		return false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() != reflect.Func && t.Size() > 0
}

// instance is the compute function of a stage on one subtask.
type instance struct {
	stage    computeStage
	compute  Compute
	verified bool // a snapshot was restored, as a check
}

// renew makes a new instance.
func (i *instance) renew() error {
	if i.compute = i.stage.factory(); i.compute == nil {
		return fmt.Errorf("the factory %s returned nil", i.stage.name)
	}
	return nil
}

// snapshot returns the state of the instance, nil if it has no snapshot.
func (i *instance) snapshot() ([]byte, error) {
	s, ok := i.compute.(Snapshotter)
	if !ok {
		return nil, nil
	}
	snapshot, err := s.AppendSnapshot([]byte{})
	if err != nil {
		return nil, fmt.Errorf("snapshot of stage %s: %w", i.stage.name, err)
	}
	if !i.verified {
		i.verified = true
		if err := i.verify(snapshot); err != nil {
			return nil, err
		}
	}
	return snapshot, nil
}

// verify returns an error if a new instance that is restored from a snapshot does not have the same
// snapshot. A panic is such an error too, as the check itself must not fail a run that need not be saved.
func (i *instance) verify(snapshot []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("stage %s does not restore its snapshot: panic: %v", i.stage.name, p)
		}
	}()
	other := instance{stage: i.stage}
	if err := other.renew(); err != nil {
		return err
	}
	if err := other.restore(bytes.Clone(snapshot)); err != nil {
		return err
	}
	again, err := other.compute.(Snapshotter).AppendSnapshot([]byte{})
	switch {
	case err != nil:
		return fmt.Errorf("snapshot of stage %s, restored: %w", i.stage.name, err)
	case !bytes.Equal(again, snapshot):
		return fmt.Errorf("stage %s does not restore its snapshot: a new instance that is restored from it has another one (%d bytes, and %d before); Restore must set all that AppendSnapshot appends", i.stage.name, len(again), len(snapshot))
	}
	return nil
}

// restore sets the state of a new instance from a snapshot, which is nil if the previous
// instance had none.
func (i *instance) restore(snapshot []byte) error {
	if snapshot == nil {
		return nil
	}
	s, ok := i.compute.(Snapshotter)
	if !ok {
		return fmt.Errorf("the factory %s returned a %T, which has no snapshot, and one that has before", i.stage.name, i.compute)
	}
	if err := s.Restore(snapshot); err != nil {
		return fmt.Errorf("stage %s, restored: %w", i.stage.name, err)
	}
	return nil
}

// bufferHolder holds buffers across supersteps. forget drops them.
type bufferHolder interface{ forget() }

// forget drops the objects, instances and buffers of the subtask that a new subtask, joining
// now, would not have. It keeps the rows, encodes and decodes the kept objects, and makes new
// instances from their snapshots.
func (b *body) forget() error {
	saved, err := b.encoded(shared.KindReplicated, shared.KindPerShard)
	if err != nil {
		return err
	}
	snapshots := make([][]byte, len(b.instances))
	for i, instance := range b.instances {
		if snapshots[i], err = instance.snapshot(); err != nil {
			return err
		}
	}
	// Blocks are verified before they are dropped. Init makes them again.
	if err := b.verify(b.blocks.onDisk); err != nil {
		return err
	}
	b.context.objects.Forget(b.queue.isInput)
	b.blocks.close(b.context.task)
	if err := b.context.objects.Restore(saved); err != nil {
		return err
	}
	for _, f := range b.forests {
		f.forget()
	}
	for i, instance := range b.instances {
		if err := instance.renew(); err != nil {
			return err
		}
		if err := instance.restore(snapshots[i]); err != nil {
			return err
		}
	}
	return b.open(false)
}

// isInput reports whether a dataset of the queue has this name.
func (q *IterativeComQueue) isInput(name string) bool {
	for _, in := range q.inputs {
		if in.name() == name {
			return true
		}
	}
	return false
}
