package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Form is the format in which delimited text is written. Lines end in "\n". Cells are quoted if
// reading would otherwise give another value.
type Form struct {
	Delimiter byte
	// Null is the spelling of missing values. Text that is equal to Null is quoted.
	Null string
}

// Header returns the line with the column names.
func (o Form) Header(schema *arrow.Schema) []byte {
	var line []byte
	for i, f := range schema.Fields() {
		if i > 0 {
			line = append(line, o.Delimiter)
		}
		at := len(line)
		line = append(line, f.Name...)
		if o.mustQuote(line[at:], i == 0) {
			line = quote(line, at)
		}
	}
	return append(line, '\n')
}

// mustQuote reports whether a cell must be quoted so that reading gives the same text. The
// first cell of a line must be quoted, too, if it looks like a comment or a byte order mark.
func (o Form) mustQuote(cell []byte, first bool) bool {
	if len(cell) == 0 || string(cell) == o.Null {
		return true
	}
	if first && (cell[0] == '#' || cell[0] == '\xef') {
		return true
	}
	if isBlank(cell[0]) || isBlank(cell[len(cell)-1]) {
		return true
	}
	for _, c := range cell {
		if c == o.Delimiter || c == '"' || c == '\n' || c == '\r' {
			return true
		}
	}
	return false
}

// quote puts the text that begins at offset from of line in quotes, and returns the new line.
func quote(line []byte, from int) []byte {
	inner := bytes.Count(line[from:], []byte{'"'})
	n := len(line)
	for range inner + 2 {
		line = append(line, '"')
	}
	to := len(line) - 1
	for i := n - 1; i >= from; i-- {
		to--
		line[to] = line[i]
		if line[i] == '"' {
			to--
			line[to] = '"'
		}
	}
	line[from] = '"'
	return line
}

// Writer writes rows as delimited lines.
type Writer struct {
	w    io.Writer
	o    Form
	text []byte
	cols []writtenColumn
}

// writtenColumn appends the cells of a column.
type writtenColumn struct {
	batch.Printer
	null bool // whether the column has nulls in the current batch
	scan bool // whether cells may need quotes
}

// lineBuffer is the number of bytes of text that are collected before they are written.
const lineBuffer = 64 << 10

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer, o Form) *Writer { return &Writer{w: w, o: o} }

// Write writes the rows of a batch, which is borrowed. If a text has a byte of 0, the error is
// a *ZeroError.
func (w *Writer) Write(rows arrow.Record) error {
	w.cols = w.cols[:0]
	for _, col := range rows.Columns() {
		w.cols = append(w.cols, writtenColumn{Printer: batch.NewPrinter(col), null: col.NullN() > 0, scan: w.o.mayQuote(col.DataType())})
	}
	for i := range int(rows.NumRows()) {
		w.row(i)
		if len(w.text) >= lineBuffer {
			if err := w.flush(rows); err != nil {
				return err
			}
		}
	}
	return w.flush(rows)
}

// mayQuote reports whether values of a type may need quotes. Values that are not text need
// quotes if they contain the delimiter, or if they are equal to the spelling of missing values.
func (o Form) mayQuote(t arrow.DataType) bool {
	common := o.Null == "" && strings.IndexByte(",;|\t", o.Delimiter) >= 0
	return !common || t.ID() == arrow.STRING || t.ID() == arrow.BINARY
}

func (w *Writer) row(i int) {
	for c := range w.cols {
		col := &w.cols[c]
		if c > 0 {
			w.text = append(w.text, w.o.Delimiter)
		}
		if col.null && col.Null(i) {
			if w.text = append(w.text, w.o.Null...); w.o.Null == "" && len(w.cols) == 1 {
				w.text = append(w.text, '"', '"') // an empty line would not be read as a row
			}
			continue
		}
		at := len(w.text)
		w.text = col.Append(w.text, i)
		if col.scan && w.o.mustQuote(w.text[at:], c == 0) {
			w.text = quote(w.text, at)
		}
	}
	w.text = append(w.text, '\n')
}

// flush writes the lines collected so far. rows is the current batch.
func (w *Writer) flush(rows arrow.Record) error {
	if bytes.IndexByte(w.text, 0) >= 0 {
		return w.zeros(rows)
	}
	_, err := w.w.Write(w.text)
	w.text = w.text[:0]
	return err
}

// ZeroError is the error for a text with a byte of 0, which could not be read from a text file.
type ZeroError struct {
	Column string
	Text   string // beginning of the text, in quotes
}

// Error describes the error and says what to do.
func (e *ZeroError) Error() string {
	return fmt.Sprintf("column %q: the text %s has a byte of 0, which no file of text can have: take it out, or write Arrow or Parquet", e.Column, e.Text)
}

// zeros returns a *ZeroError for the first cell with a byte of 0.
func (w *Writer) zeros(rows arrow.Record) error {
	for i := range int(rows.NumRows()) {
		for c := range w.cols {
			if w.cols[c].null && w.cols[c].Null(i) {
				continue
			}
			if text := w.cols[c].Append(nil, i); bytes.IndexByte(text, 0) >= 0 {
				return &ZeroError{Column: rows.ColumnName(c), Text: shorten(text)}
			}
		}
	}
	return errors.New("the spelling of a missing value has a byte of 0, which no file of text can have")
}

// Close does nothing, because every Write writes all its lines.
func (w *Writer) Close() error { return nil }
