package operators

import (
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
)

// A source counts the whole numbers beyond 2^53 that float64 cannot represent, in a counter for
// each column. CellsRounded is the prefix of the names of these counters. The rest of a name
// says where a subtask found the first such number; see RoundedCells.
const CellsRounded = "whole numbers beyond 2^53: "

// RoundedCells says that a column has whole numbers that float64 cannot represent, and
// describes one of them. Path is the number's file, Value is its text, and Line is its line
// number or, if Row is set, its row number, counted from 1.
type RoundedCells struct {
	Column, Path string
	Row          bool // Line is a row number
	Line         int64
	Value        string
}

// Place returns the file and line, or row, of the number.
func (r RoundedCells) Place() string {
	if r.Row {
		return fmt.Sprintf("%s, row %d", r.Path, r.Line)
	}
	return fmt.Sprintf("%s:%d", r.Path, r.Line)
}

// counter returns the name of the counter for these numbers.
func (r RoundedCells) counter() string {
	return fmt.Sprintf(roundedForm, r.Column, r.Path, unitOf(r.Row), r.Line, r.Value)
}

const roundedForm = CellsRounded + "column %q, at %q, %s %d, %q"

func unitOf(row bool) string {
	if row {
		return "row"
	}
	return "line"
}

// ParseRounded parses the name of a counter that begins with CellsRounded. For other names ok
// is false.
func ParseRounded(counter string) (r RoundedCells, ok bool) {
	var unit string
	_, err := fmt.Sscanf(counter, roundedForm, &r.Column, &r.Path, &unit, &r.Line, &r.Value)
	r.Row = unit == unitOf(true)
	return r, err == nil
}

// roundedColumns maps names of columns to the names of a subtask's counters.
type roundedColumns map[string]string

// count counts the whole numbers in rows that float64 cannot represent, in the counters of
// their columns. path is the file of the rows, and first the index of the first row in it.
func (r *roundedColumns) count(c *engine.Context, rows arrow.Record, path string, first int64) {
	for i, column := range rows.Columns() {
		n, at, text := beyondFloat(column)
		if n == 0 {
			continue
		}
		name := rows.ColumnName(i)
		if *r == nil {
			*r = roundedColumns{}
		}
		if (*r)[name] == "" {
			(*r)[name] = RoundedCells{name, path, true, first + int64(at) + 1, text}.counter()
		}
		c.Count((*r)[name], n)
	}
}

// beyondFloat counts the whole numbers of a column that float64 cannot represent. It also
// returns the index of the first such number and its quoted text.
func beyondFloat(column arrow.Array) (n int64, at int, text string) {
	switch column := column.(type) {
	case *array.Int64:
		for i, v := range column.Int64Values() {
			// The conversion of 2^63 to int64 would depend on the processor.
			if (v > 1<<53 || v < -1<<53) && !(float64(v) < 1<<63 && int64(float64(v)) == v) && column.IsValid(i) {
				if n++; n == 1 {
					at, text = i, strconv.Quote(strconv.FormatInt(v, 10))
				}
			}
		}
	case *array.Uint64:
		for i, v := range column.Uint64Values() {
			if v > 1<<53 && !(float64(v) < math.MaxUint64 && uint64(float64(v)) == v) && column.IsValid(i) {
				if n++; n == 1 {
					at, text = i, strconv.Quote(strconv.FormatUint(v, 10))
				}
			}
		}
	}
	return n, at, text
}
