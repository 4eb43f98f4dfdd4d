package comqueue

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// staged holds the batches of a shard that is being read, before they become a frame. It
// accounts for the batches, because the exchange stops doing so when they have been read. Up to
// heapLimit bytes may be on the heap even if the budget has no room, so small shards never go to
// a file here. Further batches are on the heap while the budget has room. When it has none, the
// batches on the heap are copied to a file.
type staged struct {
	task        *engine.Context
	files       *mapped.Files // not shared, so that release frees the disk space
	title       string        // for errors
	heapLimit   int64         // bytes on the heap that are always allowed
	heapBatches []arrow.Record
	heapBytes   int64   // bytes of heapBatches
	pieces      []piece // rows in files, which precede the rows in heapBatches
	noFiles     bool    // files cannot be mapped

	taken int64 // bytes that are taken from the slot's memory
}

// piece is a part of a shard in a file. Its offsets are on the heap.
type piece struct {
	rows   arrow.Record
	region *mapped.Region
}

const minStaged = 64 << 10 // bytes of a shard that may always be on the heap

// newStaged returns a staged that may always use an eighth of the slot's memory, or minStaged
// bytes if that is more.
func newStaged(c *engine.Context, what string) *staged {
	return &staged{task: c, files: mapped.NewFiles(c.Disk, c.SpillDir), title: what, heapLimit: max(c.Memory.Limit()/8, minStaged)}
}

// add takes ownership of a batch.
func (s *staged) add(rows arrow.Record) error {
	n, reserved := batch.Size(rows), false
	defer func() {
		if !reserved {
			s.task.Memory.Take(n)
		}
		s.heapBatches = append(s.heapBatches, rows)
		s.heapBytes, s.taken = s.heapBytes+n, s.taken+n
	}()
	if s.heapBytes+n <= s.heapLimit || s.noFiles {
		return nil
	}
	refusal := s.task.Memory.Reserve(n)
	if reserved = refusal == nil; reserved {
		return nil
	}
	return s.toDisk(refusal)
}

// toDisk copies the batches on the heap to a file. refusal is the error with which the budget
// refused to reserve memory.
func (s *staged) toDisk(refusal error) error {
	if len(s.heapBatches) == 0 {
		return nil
	}
	offsets := &counted{Allocator: s.task.Allocator}
	record, region, err := holdRows(s.files, s.title, s.heapBytes, offsets, s.heapBatches)
	if errors.Is(err, mapped.ErrUnsupported) {
		s.noFiles = true // if memory does not suffice, making the frame will fail
		return nil
	}
	if err != nil {
		return noRoomError(s.task, refusal, err)
	}
	s.dropHeap()
	s.task.Memory.Take(offsets.bytes)
	s.task.Memory.Release(s.heapBytes)
	s.taken += offsets.bytes - s.heapBytes
	s.heapBytes = 0
	s.pieces = append(s.pieces, piece{record, region})
	prepareDiskRows(s.task)
	return nil
}

// end is called after the last batch. A frame will copy the batches. If the budget has no room
// for that copy, end copies the batches on the heap to a file.
func (s *staged) end() error {
	if s.heapBytes <= s.heapLimit || len(s.heapBatches)+len(s.pieces) < 2 || s.noFiles {
		return nil
	}
	refusal := s.task.Memory.Reserve(s.heapBytes)
	if refusal != nil {
		return s.toDisk(refusal)
	}
	s.task.Memory.Release(s.heapBytes)
	return nil
}

// batches returns all added batches in order. The caller borrows them.
func (s *staged) batches() []arrow.Record {
	if len(s.pieces) == 0 {
		return s.heapBatches
	}
	all := make([]arrow.Record, 0, len(s.pieces)+len(s.heapBatches))
	for _, p := range s.pieces {
		all = append(all, p.rows)
	}
	return append(all, s.heapBatches...)
}

// releaseReserved releases the bytes that are taken from the slot's memory, and returns their number.
func (s *staged) releaseReserved() int64 {
	n := s.taken
	s.task.Memory.Release(n)
	s.taken = 0
	return n
}

// guard calls f, which reads the pieces, and then verifies the pieces. If a piece is damaged,
// guard reports the damage in place of an error or panic of f, because the damage may have
// caused it.
func (s *staged) guard(f func() error) (err error) {
	returned := false
	defer func() {
		for _, p := range s.pieces {
			if damage := p.region.Verify(); damage != nil {
				if !returned {
					_ = recover()
				}
				err = fmt.Errorf("%s, kept beyond the memory budget: %w", s.title, damage)
				return
			}
		}
	}()
	err = f()
	returned = true
	return err
}

func (s *staged) dropHeap() {
	for _, rows := range s.heapBatches {
		rows.Release()
	}
	clear(s.heapBatches)
	s.heapBatches = s.heapBatches[:0]
}

// release releases everything.
func (s *staged) release() {
	s.dropHeap()
	for _, p := range s.pieces {
		p.rows.Release()
	}
	s.pieces = nil
	s.files.Close()
	s.releaseReserved()
}
