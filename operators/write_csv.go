package operators

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// CSVWriteOptions says how delimited text is written. The zero value is
// comma-separated text with a header, in which a missing value is an empty cell.
type CSVWriteOptions struct {
	// NoHeader leaves out the line of column names.
	NoHeader bool
	// Delimiter separates cells; 0 means a comma.
	Delimiter byte
	// Null is the spelling of a missing value. Text that is spelled so is quoted,
	// which tells it apart. In the other columns quotes tell nothing apart, so a
	// spelling that could be a value of one that may have missing values is an
	// error: "NaN" or "-1" for floats, "NULL" for bytes, since it is base64.
	Null string
	// PerShard writes one file per shard, each with a header, into a directory at
	// the path: part-00000.csv and so on, those of empty shards too.
	PerShard bool
}

// WriteCSV writes the rows of d, in their order, as delimited text to the file at
// path, by the rules of WriteFiles. The bytes are the same at every parallelism.
//
// Lines end in "\n". Floats are written as the shortest decimal that reads back
// to the same bits, times in RFC 3339, bytes in base64, vectors as [1 2.5 3] and
// sparse ones as [0:1 7:2.5]. Cells are quoted where they must be: text that
// contains delimiters, quotes, newlines or outer blanks, that is empty, or that
// equals Null. ReadCSV reads the same values back when it is given the types,
// except that within text "\r\n" becomes "\n", that empty bytes are missing
// unless Null says how missing ones look, and that in the only column of a file
// missing text is empty text, likewise.
func WriteCSV(d *engine.Dataset, path string, o CSVWriteOptions) {
	const op = "WriteCSV"
	b := builderOf(op, d)
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	err := o.check()
	if err == nil && usable(d) && d.Schema().NumFields() == 0 {
		err = errors.New("the dataset has no columns")
	}
	if err == nil && usable(d) {
		err = o.checkNull(d.Schema())
	}
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return
	}
	f := FileFormat{
		Op:        op,
		Extension: "csv",
		Rows:      func(w io.Writer) RowWriter { return &csvRows{w: w, o: o} },
	}
	if o.Delimiter != ',' {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "delimiter", Value: fmt.Sprintf("%q", o.Delimiter)})
	}
	if o.Null != "" {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "null", Value: fmt.Sprintf("%q", o.Null)})
	}
	if o.NoHeader {
		f.Attrs = append(f.Attrs, engine.Attr{Key: "header", Value: "false"})
	} else if usable(d) {
		head := o.header(d.Schema())
		f.Head = func(w io.Writer) error {
			_, err := w.Write(head)
			return err
		}
	}
	WriteFiles(d, path, o.PerShard, f)
}

func (o CSVWriteOptions) check() error {
	if c := o.Delimiter; c == '"' || c == '\n' || c == '\r' || c >= 0x80 {
		return fmt.Errorf("%q cannot be the delimiter", c)
	}
	if strings.ContainsAny(o.Null, "\"\r\n"+string(rune(o.Delimiter))) || strings.Trim(o.Null, " \t") != o.Null {
		return fmt.Errorf("the spelling %q of a missing value would have to be quoted, and then it would be text", o.Null)
	}
	return nil
}

// checkNull refuses a spelling of a missing value that is also a value of a
// column that may have both and in which quotes make no difference. The empty
// one is let pass: of all values only empty bytes are spelled so.
func (o CSVWriteOptions) checkNull(schema *arrow.Schema) error {
	if o.Null == "" {
		return nil
	}
	values, err := batch.NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return err
	}
	defer values.Release()
	for i, f := range schema.Fields() {
		if !f.Nullable || f.Type.ID() == arrow.STRING || batch.ParseInto(values.Field(i), []byte(o.Null)) != nil {
			continue
		}
		return fmt.Errorf("the spelling %q of a missing value is also a value of column %q, which is %s and may have missing values: "+
			"choose one that is no value, or the empty one", o.Null, f.Name, batch.TypeName(f.Type))
	}
	return nil
}

// header returns the line of column names.
func (o CSVWriteOptions) header(schema *arrow.Schema) []byte {
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

// mustQuote tells whether a cell is read back as it is only in quotes. The first
// cell of a line must not look like a comment or a byte order mark either.
func (o CSVWriteOptions) mustQuote(cell []byte, first bool) bool {
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

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// quote puts the text from an offset on into quotes.
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

// csvRows writes rows as lines.
type csvRows struct {
	w    io.Writer
	o    CSVWriteOptions
	text []byte
	cols []csvColumn
}

// csvColumn writes the cells of a column.
type csvColumn struct {
	batch.Printer
	null bool // the column has nulls in this batch
	scan bool // cells may have to be quoted
}

// lineBuffer is how much text is gathered before it is handed on.
const lineBuffer = 64 << 10

func (w *csvRows) Write(rows arrow.Record) error {
	w.cols = w.cols[:0]
	for _, col := range rows.Columns() {
		w.cols = append(w.cols, csvColumn{Printer: batch.NewPrinter(col), null: col.NullN() > 0, scan: w.o.mayQuote(col.DataType())})
	}
	for i := range int(rows.NumRows()) {
		w.row(i)
		if len(w.text) >= lineBuffer {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.flush()
}

// mayQuote tells whether values of a type can have to be quoted. Of those that
// are no text, the letters and signs that numbers and times are written with may
// have been chosen as the delimiter or the spelling of a missing value.
func (o CSVWriteOptions) mayQuote(t arrow.DataType) bool {
	common := o.Null == "" && strings.IndexByte(",;|\t", o.Delimiter) >= 0
	return !common || t.ID() == arrow.STRING || t.ID() == arrow.BINARY
}

func (w *csvRows) row(i int) {
	for c := range w.cols {
		col := &w.cols[c]
		if c > 0 {
			w.text = append(w.text, w.o.Delimiter)
		}
		if col.null && col.Null(i) {
			if w.text = append(w.text, w.o.Null...); w.o.Null == "" && len(w.cols) == 1 {
				w.text = append(w.text, '"', '"') // an empty line would be no row
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

func (w *csvRows) flush() error {
	_, err := w.w.Write(w.text)
	w.text = w.text[:0]
	return err
}

func (w *csvRows) Close() error { return nil }
