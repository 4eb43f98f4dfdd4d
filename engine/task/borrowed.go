package task

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// errRowsChanged is the error of an operator that changed rows that it had borrowed.
var errRowsChanged = errors.New("the function changed the rows it was given, which other operators read as well: a slice in a row is not a copy, so make one before you change it (slices.Clone)")

// errRowsReleased is the error of an operator that released a reference that it did not own.
var errRowsReleased = errors.New("the operator released a batch that it had borrowed, which others read as well: call Retain for each Release, and before a batch is given away")

// borrowed holds the rows that an operator was given, to check that it does not change them.
type borrowed struct {
	rows   []arrow.Record // lent to this operator only, with references of their own to the columns
	prints []uint64       // printOf of each record when it was lent
}

// lend records rows and returns a new record of the same columns, with references of its own.
// If the operator releases this record once too often, unchanged detects it, and the columns
// stay valid for other owners.
func (b *borrowed) lend(rows arrow.Record) arrow.Record {
	own := array.NewRecord(rows.Schema(), rows.Columns(), rows.NumRows())
	b.rows, b.prints = append(b.rows, own), append(b.prints, printOf(own))
	return own
}

// unchanged returns an error if any batch of b.rows[from:] has changed since it was lent.
func (b *borrowed) unchanged(from int) error {
	for i := from; i < len(b.rows); i++ {
		if batch.Released(b.rows[i]) {
			return errRowsReleased
		}
		if printOf(b.rows[i]) != b.prints[i] {
			return errRowsChanged
		}
	}
	return nil
}

// release releases the records that were lent, and forgets them.
func (b *borrowed) release() {
	for _, rows := range b.rows {
		if !batch.Released(rows) {
			rows.Release()
		}
	}
	b.rows, b.prints = b.rows[:0], b.prints[:0]
}

// keeping returns a partition function that calls p and fails if p changed the rows.
func (p Partition) keeping() Partition {
	return func(rows columnar.Batch, shard int, first int64, shards int, dst []int32) error {
		before := printOf(arrowrows.Record(rows))
		if err := p(rows, shard, first, shards, dst); err != nil {
			return err
		}
		if printOf(arrowrows.Record(rows)) != before {
			return errRowsChanged
		}
		return nil
	}
}

// printOf returns a fingerprint of the content of rows.
func printOf(rows arrow.Record) uint64 {
	var text []byte
	var sum uint64
	for _, column := range rows.Columns() {
		values := batch.NewPrinter(column)
		for row := range column.Len() {
			text = binary.LittleEndian.AppendUint64(text[:0], uint64(row))
			if !values.Null(row) {
				text = values.Append(append(text, 1), row)
			}
			sum = xxh3.HashSeed(text, sum)
		}
	}
	return sum
}
