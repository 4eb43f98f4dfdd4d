package task

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/batch"
)

// errRowsChanged blames an operator for rows that it had borrowed.
var errRowsChanged = errors.New("the function changed the rows it was given, which other operators read as well: a slice in a row is not a copy, so make one before you change it (slices.Clone)")

// borrowed is the rows that an operator was given, to tell whether they are still as they were.
type borrowed struct {
	rows   []arrow.Record // retained
	prints []uint64
}

// add notes rows before the operator sees them.
func (b *borrowed) add(rows arrow.Record) {
	rows.Retain()
	b.rows, b.prints = append(b.rows, rows), append(b.prints, printOf(rows))
}

// unchanged compares the rows from the given one on with what they were.
func (b *borrowed) unchanged(from int) error {
	for i := from; i < len(b.rows); i++ {
		if printOf(b.rows[i]) != b.prints[i] {
			return errRowsChanged
		}
	}
	return nil
}

// release forgets the rows.
func (b *borrowed) release() {
	for _, rows := range b.rows {
		rows.Release()
	}
	b.rows, b.prints = b.rows[:0], b.prints[:0]
}

// printOf is a fingerprint of what rows hold.
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
