package operators

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// mergeRuns calls f with the rows of several sorted runs in sorted order, in batches of at most
// n rows, which f borrows. Rows with equal keys are ordered by run, and then by their order in
// the run.
func mergeRuns(c *engine.Context, file *runFile, runs []sortedRun, keys []batch.SortKey, n int, f func(rows arrow.Record) error) error {
	m := &merger{context: c, keys: keys, cursors: make([]mergeCursor, len(runs)), limit: n, emit: f}
	defer m.release()
	for i, run := range runs {
		reader, err := file.open(run)
		if err != nil {
			return err
		}
		m.cursors[i] = mergeCursor{reader: reader, compare: make([]*batch.Comparer, len(runs))}
		if err := m.load(i); err != nil {
			return err
		}
	}
	return m.run()
}

// merger merges runs with a heap of their next rows.
type merger struct {
	context *engine.Context
	keys    []batch.SortKey
	cursors []mergeCursor
	heap    []int // indices of cursors that have rows; the first has the smallest next row
	limit   int
	emit    func(rows arrow.Record) error

	// picked has, for each row of the next batch to emit, the index of the row's cursor. The
	// rows of a cursor in this batch are its rows [first, row).
	picked []int32
	order  []int32
	parts  []arrow.Record
}

// mergeCursor is the position of the merge in one run.
type mergeCursor struct {
	reader  *runReader
	rows    arrow.Record // current batch of the run, owned; nil after the last row
	first   int          // index in rows of the first row that has not been emitted
	row     int          // index in rows of the next row to compare
	at      int32        // while a batch is assembled: the position of the cursor's next row in parts
	compare []*batch.Comparer
}

// load reads the next batch of run i. All rows of the previous batch must have been emitted.
func (m *merger) load(i int) error {
	k := &m.cursors[i]
	if k.rows != nil {
		k.rows.Release()
		k.rows = nil
	}
	rows, err := k.reader.next()
	if err == io.EOF { // not errors.Is: a wrapped io.EOF means truncated data
		return nil
	}
	if err != nil {
		return err
	}
	k.rows, k.first, k.row = rows, 0, 0
	clear(k.compare)
	for j := range m.cursors {
		if c := m.cursors[j].compare; c != nil {
			c[i] = nil
		}
	}
	return nil
}

// run merges all rows.
func (m *merger) run() error {
	for i := range m.cursors {
		if m.cursors[i].rows != nil {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		if err := m.sink(i); err != nil {
			return err
		}
	}
	for len(m.heap) > 0 {
		i := m.heap[0]
		k := &m.cursors[i]
		m.picked = append(m.picked, int32(i))
		k.row++
		end := k.row == int(k.rows.NumRows())
		if end || len(m.picked) >= m.limit {
			if err := m.flush(); err != nil {
				return err
			}
		}
		if end {
			if err := m.load(i); err != nil {
				return err
			}
			if k.rows == nil {
				last := len(m.heap) - 1
				m.heap[0] = m.heap[last]
				m.heap = m.heap[:last]
			}
		}
		if err := m.sink(0); err != nil {
			return err
		}
	}
	return nil
}

// sink restores the heap property: it moves the cursor at position at of the heap down as far
// as necessary.
func (m *merger) sink(at int) error {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(m.heap); child++ {
			less, err := m.less(m.heap[child], m.heap[least])
			if err != nil {
				return err
			}
			if less {
				least = child
			}
		}
		if least == at {
			return nil
		}
		m.heap[at], m.heap[least] = m.heap[least], m.heap[at]
		at = least
	}
}

// less reports whether the next row of run i precedes the next row of run j.
func (m *merger) less(i, j int) (bool, error) {
	a, b := &m.cursors[i], &m.cursors[j]
	c := a.compare[j]
	if c == nil {
		var err error
		if c, err = batch.NewComparer(a.rows, b.rows, m.keys); err != nil {
			return false, err
		}
		a.compare[j] = c
	}
	order := c.Compare(a.row, b.row)
	return order < 0 || order == 0 && i < j, nil
}

// flush emits the picked rows.
func (m *merger) flush() error {
	if len(m.picked) == 0 {
		return nil
	}
	if err := m.context.Err(); err != nil {
		return err
	}
	defer func() {
		for i, part := range m.parts {
			part.Release()
			m.parts[i] = nil
		}
		m.parts, m.picked = m.parts[:0], m.picked[:0]
	}()
	at := int32(0)
	for i := range m.cursors {
		k := &m.cursors[i]
		if k.rows == nil || k.first == k.row {
			continue
		}
		part, err := batch.Slice(k.rows, k.first, k.row)
		if err != nil {
			return err
		}
		m.parts = append(m.parts, part)
		k.at = at
		at += int32(k.row - k.first)
		k.first = k.row
	}
	if len(m.parts) == 1 {
		return m.emit(m.parts[0])
	}
	all, err := batch.Concat(m.context.Allocator, m.parts)
	if err != nil {
		return err
	}
	defer all.Release()
	m.order = m.order[:0]
	for _, i := range m.picked {
		k := &m.cursors[i]
		m.order = append(m.order, k.at)
		k.at++
	}
	return passRows(m.context, all, m.order, m.emit)
}

// release releases the batches that the cursors hold.
func (m *merger) release() {
	for i := range m.cursors {
		k := &m.cursors[i]
		if k.rows != nil {
			k.rows.Release()
			k.rows = nil
		}
	}
}
