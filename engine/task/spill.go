package task

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// spillFile is the file to which an inbox appends blocks of rows. The location, the checksum
// and the number of rows of each block are kept in memory. One goroutine writes blocks, and
// another goroutine reads them after they were flushed. The file is made at the first write.
type spillFile struct {
	path   string
	disk   disk.FS
	mem    memory.Allocator
	total  *atomic.Int64 // bytes written by the run
	logger hclog.Logger

	opened atomic.Pointer[openSpill] // nil before the first write and after close

	// Only the writer's goroutine uses these.
	blocks *disk.Blocks
	writer *batch.BlockWriter

	// Only the reader's goroutine uses these.
	reader  *batch.BlockReader
	scratch []byte
}

// openSpill is the open file, which the reader and the writer share.
type openSpill struct {
	file   disk.File
	schema *arrow.Schema
}

// write appends rows lo to hi-1 of rec as one block.
func (s *spillFile) write(rec arrow.Record, lo, hi int) (disk.Block, error) {
	if s.writer == nil {
		if err := s.create(rec.Schema()); err != nil {
			return disk.Block{}, s.explain(err)
		}
	}
	rows, err := batch.Slice(rec, lo, hi)
	if err != nil {
		return disk.Block{}, s.explain(err)
	}
	defer rows.Release()
	if err := s.writer.Write(s.blocks, rows); err != nil {
		return disk.Block{}, s.explain(err)
	}
	at := s.blocks.End()
	s.total.Add(int64(at.Length))
	return at, nil
}

// create makes the file.
func (s *spillFile) create(schema *arrow.Schema) error {
	writer, err := batch.NewBlockWriter(schema, s.mem)
	if err != nil {
		return err
	}
	f, err := s.disk.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	s.logger.Info("the memory budget is used up: spilling rows to disk", "file", s.path)
	s.writer, s.blocks = writer, disk.NewBlocks(f)
	s.opened.Store(&openSpill{f, schema})
	return nil
}

// flush makes the written blocks readable.
func (s *spillFile) flush() error {
	if err := s.blocks.Flush(); err != nil {
		return s.explain(err)
	}
	return nil
}

// read returns the rows of block b, owned by the caller. rows is the number of rows in it.
func (s *spillFile) read(b disk.Block, rows int) (_ arrow.Record, err error) {
	open := s.opened.Load()
	if open == nil {
		return nil, errStopped
	}
	if s.scratch, err = disk.ReadBlock(open.file, b, s.scratch); err != nil {
		return nil, fmt.Errorf("read spilled rows back: %w", err)
	}
	if s.reader == nil {
		if s.reader, err = batch.NewBlockReader(open.schema, s.mem); err != nil {
			return nil, fmt.Errorf("read spilled rows back from %s: %w", s.path, err)
		}
	}
	rec, err := s.reader.Read(s.scratch, int64(rows))
	if err != nil {
		return nil, fmt.Errorf("read spilled rows back from %s, byte %d: %w", s.path, b.Offset, err)
	}
	return rec, nil
}

// explain adds to err what the file is for and what to do.
func (s *spillFile) explain(err error) error {
	return fmt.Errorf("spill rows beyond the memory budget to %s, after %s written by this run: %w; free disk space, choose another spill directory or raise the memory budget",
		s.path, humanize.Bytes(s.total.Load()), err)
}

// close removes the file.
func (s *spillFile) close() error {
	open := s.opened.Swap(nil)
	if open == nil {
		return nil
	}
	return errors.Join(open.file.Close(), disk.RemoveIfThere(s.disk, s.path))
}
