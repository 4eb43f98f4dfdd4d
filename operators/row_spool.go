package operators

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// rowSpool keeps rows in their order; they can be read any number of times. The rows are in
// memory or, if they do not fit, all on disk. rowSpool is used for the rows of one key, which
// may be a single row or all rows of a shard.
//
// Only one goroutine may use it. The goroutine calls the method add any number of times, then the
// method each any number of times, and then the method clear.
type rowSpool struct {
	context *engine.Context
	schema  *arrow.Schema
	memory  groupMemory
	most    int // bounds the number of rows in memory; see joinSpec.most

	pieces []rowPiece
	count  int64
	file   *runFile   // nil while rows are in memory
	writer *runWriter // nil after the first call of each
}

// rowPiece is the rows [from, to) of a retained batch.
type rowPiece struct {
	rows     arrow.Record
	from, to int
	print    string // fingerprint of the rows, if the run checks whether they change
}

// content returns a fingerprint of the rows.
func (p rowPiece) content() (string, error) {
	part, err := batch.Slice(p.rows, p.from, p.to)
	if err != nil {
		return "", err
	}
	defer part.Release()
	return contentOf(part)
}

func newRowSpool(c *engine.Context, schema *arrow.Schema, most int) *rowSpool {
	return &rowSpool{context: c, schema: schema, most: most, memory: groupMemory{context: c, free: 64 << 10}}
}

// add adds the rows [from, to) of a borrowed batch. There must be at least one.
func (s *rowSpool) add(rows arrow.Record, from, to int) error {
	s.count += int64(to - from)
	p := rowPiece{rows: rows, from: from, to: to}
	if s.file == nil {
		// A retained batch stays in memory completely, so its whole size counts. The first
		// batch is always kept in memory, as it is in memory already.
		if (s.most == 0 || s.count <= int64(s.most)) && (len(s.pieces) == 0 || s.memory.reserve(batch.Size(rows))) {
			rows.Retain()
			if s.context.ChecksRows() {
				var err error
				if p.print, err = p.content(); err != nil {
					return err
				}
			}
			s.pieces = append(s.pieces, p)
			return nil
		}
		if err := s.spill(); err != nil {
			return err
		}
	}
	return s.write(p)
}

// spill moves the rows to disk.
func (s *rowSpool) spill() (err error) {
	s.file = &runFile{context: s.context, schema: s.schema}
	if s.writer, err = s.file.begin(); err != nil {
		return err
	}
	s.context.Count("rows spilled", s.count)
	for _, p := range s.pieces {
		if err := s.write(p); err != nil {
			return err
		}
	}
	s.drop()
	return nil
}

func (s *rowSpool) write(p rowPiece) error {
	part, err := batch.Slice(p.rows, p.from, p.to)
	if err != nil {
		return err
	}
	defer part.Release()
	return s.writer.write(part)
}

// each calls f with the rows in order, until f returns false. Each call passes the rows [from,
// to) of a batch, which f borrows.
func (s *rowSpool) each(f func(rows arrow.Record, from, to int) (more bool, err error)) error {
	if s.file == nil {
		for _, p := range s.pieces {
			if more, err := f(p.rows, p.from, p.to); err != nil || !more {
				return err
			}
		}
		return nil
	}
	if s.writer != nil {
		if err := s.writer.end(); err != nil {
			return err
		}
		s.writer = nil
	}
	reader, err := s.file.open(s.file.runs[0])
	if err != nil {
		return err
	}
	for {
		rows, err := reader.next()
		if err == io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
			return nil
		}
		if err != nil {
			return err
		}
		more, err := f(rows, 0, int(rows.NumRows()))
		rows.Release()
		if err != nil || !more {
			return err
		}
		if err := s.context.Err(); err != nil {
			return err
		}
	}
}

// unchanged reports whether rows in memory are unchanged, in runs that check this. Rows on disk
// need no check, as each decodes them again.
func (s *rowSpool) unchanged() (bool, error) {
	if !s.context.ChecksRows() {
		return true, nil
	}
	for _, p := range s.pieces {
		if now, err := p.content(); err != nil || now != p.print {
			return false, err
		}
	}
	return true, nil
}

// drop releases the rows in memory.
func (s *rowSpool) drop() {
	for i, p := range s.pieces {
		p.rows.Release()
		s.pieces[i] = rowPiece{}
	}
	s.pieces = s.pieces[:0]
	s.memory.release()
}

// clear makes the spool empty.
func (s *rowSpool) clear() error {
	s.drop()
	s.count, s.writer = 0, nil
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.close()
}
