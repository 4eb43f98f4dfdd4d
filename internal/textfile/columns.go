package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

var (
	errMissing = errors.New("a value is missing in a column that has none")
	errUTF8    = errors.New("it is not valid UTF-8")
)

// cells has the wanted cells of a batch of records, row by row.
type cells struct {
	text  []byte // text to which the offsets of cells refer
	all   []cell // rows × width
	width int
	rows  int
	quote byte
}

// fault is a cell whose value could not be read.
type fault struct {
	row, slot int
	err       error
	complaint complaint // used in place of err if the cell may be in a column that is not read
}

// column reads one cell of every record into an Arrow column.
type column struct {
	name    string
	slot    int // index among the wanted cells of a record
	typ     arrow.DataType
	null    bool // whether values may be missing
	tokens  *nullTokens
	replace bool // whether invalid UTF-8 is replaced by U+FFFD and is not an error
	builder array.Builder
	// spelled has the number of missing cells for each of the usual spellings.
	spelled map[string]int64

	// scratch memory, reused for every batch
	floats []float64
	ints   []int64
	bools  []bool
	valid  []bool
	bytes  []byte
}

func newColumn(b array.Builder, f arrow.Field, slot int, tokens *nullTokens, replace bool) *column {
	return &column{name: f.Name, slot: slot, typ: f.Type, null: f.Nullable, tokens: tokens,
		replace: replace, builder: b}
}

// read appends the column's cells of all rows to its builder. It calls bad for every cell that
// cannot be read; if bad returns false, read returns. After a bad cell the contents of the
// builder must be discarded.
func (c *column) read(in *cells, bad func(fault) bool) {
	c.valid = kernel.Sized(c.valid, in.rows)
	switch b := c.builder.(type) {
	case *array.Float64Builder:
		c.floats = kernel.Sized(c.floats, in.rows)
		parse := parseFloat
		if c.null && c.tokens.typical {
			parse = parseNumber
		}
		b.AppendValues(c.floats, readFixed(c, in, c.floats, parse, bad))
	case *array.Int64Builder:
		c.ints = kernel.Sized(c.ints, in.rows)
		b.AppendValues(c.ints, readFixed(c, in, c.ints, parseInt, bad))
	case *array.BooleanBuilder:
		c.bools = kernel.Sized(c.bools, in.rows)
		b.AppendValues(c.bools, readFixed(c, in, c.bools, parseBool, bad))
	case *array.StringBuilder:
		c.readText(b, in, bad)
	default:
		c.readOther(in, bad)
	}
}

// readFixed parses the cells into out. It returns whether each cell has a value, or nil if no
// cell is missing.
func readFixed[T any](c *column, in *cells, out []T, parse func([]byte) (T, error), bad func(fault) bool) []bool {
	var zero T
	missing := false
	for row, i := 0, c.slot; row < in.rows; row, i = row+1, i+in.width {
		text := in.all[i].text(in, c)
		c.valid[row] = true
		if c.tokens.match(text) {
			out[row], c.valid[row], missing = zero, false, true
			if !c.null && !bad(fault{row: row, slot: c.slot, err: errMissing}) {
				break
			}
			continue
		}
		v, err := parse(text)
		if err != nil {
			if word := c.tokens.usual(text); word != "" {
				out[row], c.valid[row], missing = zero, false, true
				if c.null {
					c.spell(word)
					continue
				}
				err = errMissing
			}
			if !bad(fault{row: row, slot: c.slot, err: err}) {
				break
			}
		}
		out[row] = v
	}
	if !missing {
		return nil
	}
	return c.valid
}

// spell counts a missing cell that has the usual spelling word.
func (c *column) spell(word string) {
	if c.spelled == nil {
		c.spelled = map[string]int64{}
	}
	c.spelled[word]++
}

// text returns the text of the cell. If the cell is escaped, the result is in scratch memory of
// c.
func (k cell) text(in *cells, c *column) []byte {
	b := in.text[k.off:][:k.n&cellLength]
	if k.escaped() {
		c.bytes = unescape(c.bytes[:0], b, in.quote)
		b = c.bytes
	}
	return b
}

// readText is read for a utf8 column. Unless the dialect has QuotedNulls, a quoted cell in such
// a column is text and never a missing value.
func (c *column) readText(b *array.StringBuilder, in *cells, bad func(fault) bool) {
	b.Reserve(in.rows)
	size := 0
	for row, i := 0, c.slot; row < in.rows; row, i = row+1, i+in.width {
		size += in.all[i].size()
	}
	b.ReserveData(size)
	for row, i := 0, c.slot; row < in.rows; row, i = row+1, i+in.width {
		k := in.all[i]
		text := k.text(in, c)
		switch {
		case c.tokens.matchText(text, k.quoted()):
			b.AppendNull()
			if !c.null && !bad(fault{row: row, slot: c.slot, err: errMissing}) {
				return
			}
		case utf8.Valid(text):
			b.BinaryBuilder.Append(text)
		case c.replace:
			b.BinaryBuilder.Append(bytes.ToValidUTF8(text, []byte("\uFFFD")))
		default:
			b.AppendNull()
			if !bad(fault{row: row, slot: c.slot, err: errUTF8}) {
				return
			}
		}
	}
}

// readOther is read for types whose values are parsed one at a time by package batch.
func (c *column) readOther(in *cells, bad func(fault) bool) {
	c.builder.Reserve(in.rows)
	for row, i := 0, c.slot; row < in.rows; row, i = row+1, i+in.width {
		text := in.all[i].text(in, c)
		var err error
		if c.tokens.match(text) {
			batch.AppendNull(c.builder)
			if !c.null {
				err = errMissing
			}
		} else if c.null && c.tokens.usual(text) == notANumber {
			batch.AppendNull(c.builder)
			c.spell(notANumber)
		} else if err = batch.ParseInto(c.builder, text); err != nil {
			// The complaint names the value and the type, so only the reason is kept.
			if reason := errors.Unwrap(err); reason != nil {
				err = reason
			}
			if word := c.tokens.usual(text); word != "" {
				batch.AppendNull(c.builder)
				if err = errMissing; c.null {
					c.spell(word)
					err = nil
				}
			}
		}
		if err != nil && !bad(fault{row: row, slot: c.slot, err: err}) {
			return
		}
	}
}

// shorten returns a value in quotes for a message, cut after about 40 bytes.
func shorten(b []byte) string {
	const most = 40
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(string(b[:most]), ""), len(b))
}
