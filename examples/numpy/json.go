package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/operators"
)

// WriteJSON writes the rows of d, in their order, to the file at path. Each row is a line with a
// JSON object, whose members are in the order of the columns. Columns may have the types int64,
// float64, utf8 and vector. Missing numbers and missing text are written as null. NaN and
// infinities are errors, as JSON cannot represent them.
func WriteJSON(d *engine.Dataset, path string) {
	if d.Poisoned() { // d is the result of a failed operator, whose error is reported already
		return
	}
	if d.Schema().Len() == 0 {
		d.Builder().Errorf("WriteJSON: the dataset has no columns")
		return
	}
	for _, c := range d.Schema().Columns() {
		if viewOf(c.Type) == nil {
			d.Builder().Errorf("WriteJSON: column %q is of type %s; want int64, float64, utf8 or vectors", c.Name, c.Type)
			return
		}
	}
	operators.WriteFiles(d, path, false, operators.FileFormat{
		Op:        "WriteJSON",
		Extension: "jsonl",
		Rows:      func(w io.Writer) operators.RowWriter { return &jsonWriter{out: w} },
	})
}

// cells returns the value in row i of one column of one batch.
type cells func(i int) any

// viewOf returns the function that makes cells of a column, or nil if typ is not supported.
func viewOf(typ string) func(rows engine.Batch, column string) (cells, error) {
	switch kind, _, _ := strings.Cut(typ, "["); kind {
	case "int64":
		return nullable(func(v []int64, i int) any { return v[i] })
	case "float64":
		return nullable(func(v []float64, i int) any { return v[i] })
	case "utf8":
		return nullable(func(v columnar.Texts, i int) any { return v.At(i) })
	case "vector":
		if kind == typ {
			return func(rows engine.Batch, column string) (cells, error) {
				v, err := columnar.Get[columnar.Vectors](rows, column)
				return func(i int) any { return append([]float64{}, v.Row(i)...) }, err // a vector without elements must be [] and not null
			}
		}
		return func(rows engine.Batch, column string) (cells, error) {
			v, err := columnar.Get[columnar.Matrix](rows, column)
			return func(i int) any { return v.Row(i) }, err
		}
	}
	return nil
}

// nullable returns the result of viewOf for columns with views V whose values may be missing.
func nullable[V columnar.View](at func(v V, i int) any) func(rows engine.Batch, column string) (cells, error) {
	return func(rows engine.Batch, column string) (cells, error) {
		v, nulls, err := columnar.GetNullable[V](rows, column)
		return func(i int) any {
			if nulls.At(i) {
				return nil
			}
			return at(v, i)
		}, err
	}
}

// jsonWriter writes rows as lines of JSON to out, which is one part of the file.
type jsonWriter struct {
	out  io.Writer
	line []byte
}

func (w *jsonWriter) Close() error { return nil }

func (w *jsonWriter) Write(rows engine.Batch) error {
	columns := rows.Schema().Columns()
	views := make([]cells, len(columns))
	for k, c := range columns {
		var err error
		if views[k], err = viewOf(c.Type)(rows, c.Name); err != nil {
			return err
		}
	}
	for i := range rows.Len() {
		w.line = w.line[:0]
		for k, c := range columns {
			if err := w.member(k, c.Name, views[k](i)); err != nil {
				return fmt.Errorf("column %q: %w", c.Name, err)
			}
		}
		if _, err := w.out.Write(append(w.line, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}

// member appends member k of an object to w.line.
func (w *jsonWriter) member(k int, name string, value any) error {
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	begin := byte(',')
	if k == 0 {
		begin = '{'
	}
	w.line = append(append(append(append(w.line, begin), key...), ':'), text...)
	return nil
}
