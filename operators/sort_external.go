package operators

import (
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
)

// rowSorter sorts any number of rows by its keys. Rows with equal keys keep the order in which
// they were added. If rows do not fit in the slot's memory, sorted runs are written to disk and
// merged (external merge sort: Knuth, The Art of Computer Programming 3, 5.4). The order does
// not depend on the memory.
//
// Only one goroutine may use it. It calls add any number of times and then each, and may repeat
// this sequence. Finally it must call close.
type rowSorter struct {
	context *engine.Context
	schema  *arrow.Schema
	keys    []batch.SortKey
	limits  sortLimits

	rows     []arrow.Record // held rows, retained, not sorted yet
	count    int64
	bytes    int64 // number of bytes of rows
	reserved int64
	runs     *runFile // sorted runs on disk, in the order in which their rows were added; nil if there are none
	order    []int32
}

// sortLimits determines when a sorter writes to disk, and how it reads runs.
type sortLimits struct {
	// free is the number of bytes that the sorter may hold even if other operators have used up
	// the slot's memory. Without it, a sorter in the same slot as a full exchange would write a
	// run for every batch.
	free int64
	// run is the largest number of bytes that are sorted in memory as one run. It is bounded
	// because Arrow's offsets of text have 31 bits.
	run int64
	// fan is the number of runs that are merged at once.
	fan int
	// block is the target size in bytes of the batches of a run. A merge holds about fan·block
	// bytes, which is at most half of the slot's memory, or free if that is more.
	block int64
}

// sortLimitsWithin returns the limits of a sorter in a slot with the given bytes of memory.
func sortLimitsWithin(memory int64) sortLimits {
	const fan, free = 16, 64 << 10
	return sortLimits{free: free, run: 1 << 30, fan: fan, block: max(min(64<<10, memory/(2*fan)), free/fan)}
}

// newRowSorter returns a sorter of rows of the schema. The types of the key columns must have
// an order.
func newRowSorter(c *engine.Context, schema *arrow.Schema, keys []batch.SortKey) *rowSorter {
	return &rowSorter{context: c, schema: schema, keys: keys, limits: sortLimitsWithin(c.Memory.Limit())}
}

// empty reports whether the sorter has no rows.
func (s *rowSorter) empty() bool { return s.count == 0 && s.runs == nil }

// add adds borrowed rows.
func (s *rowSorter) add(rows arrow.Record) error {
	if rows.NumRows() == 0 {
		return nil
	}
	size := batch.Size(rows)
	if !s.admit(size, rows.NumRows()) && len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
		s.admit(size, rows.NumRows())
	}
	// A single batch is always held, as it is already in memory.
	rows.Retain()
	s.rows = append(s.rows, rows)
	s.count += rows.NumRows()
	s.bytes += size
	return nil
}

// admit reserves memory for further rows, which take size bytes. It returns false if they do
// not fit or the run would become too large.
func (s *rowSorter) admit(size, rows int64) bool {
	const maxRows = 1 << 30
	total := s.bytes + size
	if len(s.rows) > 0 && (total > s.limits.run || s.count+rows > maxRows) {
		return false
	}
	// The need comprises the rows, their copy in one batch, and the permutation of rows.
	need := 2*total + 24*(s.count+rows) - s.limits.free - s.reserved
	if need <= 0 {
		return true
	}
	if !s.context.Memory.TryReserve(need) {
		return false
	}
	s.reserved += need
	return true
}

// spill sorts the held rows and writes them to disk as a run.
func (s *rowSorter) spill() error {
	if s.runs == nil {
		s.runs = &runFile{context: s.context, schema: s.schema}
	}
	w, err := s.runs.begin()
	if err != nil {
		return err
	}
	s.context.Count("rows spilled", s.count)
	perBlock := int(max(s.limits.block*s.count/max(s.bytes, 1), 1))
	if err := s.sorted(min(perBlock, s.context.BatchRows), w.write); err != nil {
		return err
	}
	return w.end()
}

// sorted calls f with the held rows in sorted order, in batches of at most n rows. Then it
// releases the held rows.
func (s *rowSorter) sorted(n int, f func(rows arrow.Record) error) error {
	defer s.drop()
	if err := s.context.Err(); err != nil {
		return err
	}
	all := s.rows[0]
	if len(s.rows) > 1 {
		var err error
		if all, err = batch.Concat(s.context.Allocator, s.rows); err != nil {
			return err
		}
		for i, r := range s.rows {
			r.Release()
			s.rows[i] = nil
		}
		s.rows = append(s.rows[:0], all)
	}
	var err error
	if s.order, err = batch.SortIndices(all, s.keys, s.order); err != nil {
		return err
	}
	for order := s.order; len(order) > 0; {
		k := min(n, len(order))
		if err := passRows(s.context, all, order[:k], f); err != nil {
			return err
		}
		order = order[k:]
	}
	return nil
}

// passRows calls f with one batch that has the rows of all at the given indices.
func passRows(c *engine.Context, all arrow.Record, indices []int32, f func(rows arrow.Record) error) error {
	var part arrow.Record
	var err error
	if batch.Consecutive(indices) {
		part, err = batch.Slice(all, int(indices[0]), int(indices[0])+len(indices))
	} else {
		part, err = batch.Take(c.Allocator, all, indices)
	}
	if err != nil {
		return err
	}
	defer part.Release()
	return f(part)
}

// drop releases the rows held in memory.
func (s *rowSorter) drop() {
	for i, r := range s.rows {
		r.Release()
		s.rows[i] = nil
	}
	s.rows, s.count, s.bytes = s.rows[:0], 0, 0
	if s.reserved > 0 {
		s.context.Memory.Release(s.reserved)
		s.reserved = 0
	}
}

// each calls f with all rows in sorted order, in batches of at most BatchRows rows, which f
// borrows. The sorter is empty afterwards.
func (s *rowSorter) each(f func(rows arrow.Record) error) error {
	if s.runs == nil {
		if len(s.rows) == 0 {
			return nil
		}
		return s.sorted(s.context.BatchRows, f)
	}
	if len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	for len(s.runs.runs) > s.limits.fan {
		if err := s.mergePass(); err != nil {
			return err
		}
	}
	if err := mergeRuns(s.context, s.runs, s.runs.runs, s.keys, s.context.BatchRows, f); err != nil {
		return err
	}
	runs := s.runs
	s.runs = nil
	return runs.close()
}

// mergePass merges each group of fan consecutive runs into one run.
func (s *rowSorter) mergePass() error {
	from := s.runs
	to := &runFile{context: s.context, schema: s.schema}
	s.runs = to
	err := func() error {
		for lo := 0; lo < len(from.runs); lo += s.limits.fan {
			part := from.runs[lo:min(lo+s.limits.fan, len(from.runs))]
			w, err := to.begin()
			if err != nil {
				return err
			}
			if err := mergeRuns(s.context, from, part, s.keys, part[0].perBlock, w.write); err != nil {
				return err
			}
			if err := w.end(); err != nil {
				return err
			}
		}
		return nil
	}()
	if closed := from.close(); err == nil {
		err = closed
	}
	return err
}

// close releases everything.
func (s *rowSorter) close() error {
	s.drop()
	if s.runs == nil {
		return nil
	}
	runs := s.runs
	s.runs = nil
	return runs.close()
}

// runFile is a file of consecutive sorted runs. Each run is a stream of frames, and each frame
// has a batch of rows.
type runFile struct {
	context *engine.Context
	schema  *arrow.Schema
	file    disk.File
	frames  *disk.Frames
	blocks  *batch.BlockWriter
	runs    []sortedRun
}

// sortedRun is the position of a run in its file.
type sortedRun struct {
	disk.Stream
	perBlock int // largest number of rows of a batch
}

// begin starts a run after the existing runs.
func (r *runFile) begin() (*runWriter, error) {
	if r.file == nil {
		blocks, err := batch.NewBlockWriter(r.schema, r.context.Allocator)
		if err != nil {
			return nil, err
		}
		f, err := r.context.Disk.CreateTemp(r.context.SpillDir, "sort-*")
		if err != nil {
			return nil, r.explain(err)
		}
		r.file, r.frames, r.blocks = f, disk.NewFrames(f), blocks
	}
	return &runWriter{of: r}, nil
}

// explain adds to err that the file is used for sorting, and its path and size.
func (r *runFile) explain(err error) error {
	where, size := r.context.SpillDir, int64(0)
	if r.file != nil {
		where, size = r.file.Name(), r.frames.Size()
	}
	return fmt.Errorf("sort rows beyond the memory budget on disk in %s, %d bytes written: %w; free disk space, choose another spill directory or raise the memory budget", where, size, err)
}

// close closes and removes the file.
func (r *runFile) close() error {
	if r.file == nil {
		return nil
	}
	name, err := r.file.Name(), r.file.Close()
	r.file = nil
	if gone := disk.RemoveIfThere(r.context.Disk, name); err == nil {
		err = gone
	}
	return err
}

// runWriter writes one run.
type runWriter struct {
	of       *runFile
	perBlock int
}

// write appends borrowed rows, which must be the next in sorted order.
func (w *runWriter) write(rows arrow.Record) error {
	w.perBlock = max(w.perBlock, int(rows.NumRows()))
	err := w.of.blocks.Write(w.of.frames, rows)
	if err == nil {
		err = w.of.frames.End(rows.NumRows())
	}
	if err != nil {
		return w.of.explain(err)
	}
	return nil
}

// end completes the run, so that it can be read.
func (w *runWriter) end() error {
	run, err := w.of.frames.EndStream()
	if err != nil {
		return w.of.explain(err)
	}
	w.of.runs = append(w.of.runs, sortedRun{run, w.perBlock})
	return nil
}

// runReader reads a run.
type runReader struct {
	frames *disk.FrameReader
	blocks *batch.BlockReader
}

// open returns a reader of a run.
func (r *runFile) open(run sortedRun) (*runReader, error) {
	blocks, err := batch.NewBlockReader(r.schema, r.context.Allocator)
	if err != nil {
		return nil, err
	}
	return &runReader{disk.NewFrameReader(r.file, run.Stream), blocks}, nil
}

// next returns the next rows, which the caller owns, or io.EOF after the last row.
func (r *runReader) next() (arrow.Record, error) {
	block, rows, err := r.frames.Next()
	if err == io.EOF {
		return nil, err
	}
	if err == nil {
		var rec arrow.Record
		if rec, err = r.blocks.Read(block, rows); err == nil {
			return rec, nil
		}
	}
	return nil, fmt.Errorf("read sorted rows back: %w", err)
}
