package builtin

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// A model stores what flags specified about the format of its training files. Files to which
// the model is applied are read in the same way, unless flags specify something else.

func (a InputArgs) zeroBased() bool { return a.ZeroBased != nil && *a.ZeroBased }

// reading returns the format details of the training files that a model stores.
func (a TrainArgs) reading() (r model.Reading) {
	switch a.form(a.Input) {
	case csvForm:
		for _, n := range a.Null {
			if n != "" && !slices.Contains(r.Nulls, n) {
				r.Nulls = append(r.Nulls, n)
			}
		}
	case libsvmForm:
		r.ZeroBased = a.zeroBased()
	}
	return r
}

// remembered returns the flags for the files at a path, completed by the format details r that
// a model stores. It also returns a note that names the added setting, or "" if nothing was
// added.
func (a InputArgs) remembered(path string, r model.Reading) (InputArgs, string) {
	switch form := a.form(path); {
	case form == csvForm && len(a.Null) == 0 && len(r.Nulls) > 0:
		a.Null = r.Nulls
		return a, fmt.Sprintf("--null is %s, as in the training of the model", strings.Join(r.Nulls, ","))
	case form == libsvmForm && a.ZeroBased == nil && r.ZeroBased:
		a.ZeroBased = &r.ZeroBased
		return a, "indices count from 0, as in the training of the model: --zero-based=false has them count from 1"
	}
	return a, ""
}

// rememberedNotes returns the note of remembered as a list, which is empty if there is no note.
func (a InputArgs) rememberedNotes(path string, r model.Reading) []string {
	if _, note := a.remembered(path, r); note != "" {
		return []string{note}
	}
	return nil
}

// remembering stores the format details r of the training files in the trained models.
func remembering(trained *engine.Dataset, r model.Reading) *engine.Dataset {
	if trained.Poisoned() || len(r.Nulls) == 0 && !r.ZeroBased {
		return trained
	}
	at := arrowrows.Arrow(trained.Schema()).FieldIndices(model.Column)[0]
	return operators.MapBatch(trained, trained.Schema(), func(c *engine.Context, in engine.Batch) (engine.Batch, error) {
		rec := arrowrows.Record(in)
		made := array.NewStringBuilder(c.Allocator)
		defer made.Release()
		models := rec.Column(at).(*array.String)
		for i := range models.Len() {
			text := models.Value(i)
			file, err := model.WithReading(unsafe.Slice(unsafe.StringData(text), len(text)), r)
			if err != nil {
				return engine.Batch{}, err
			}
			made.BinaryBuilder.Append(file)
		}
		column := made.NewArray()
		defer column.Release()
		return arrowrows.Batch(array.NewRecord(rec.Schema(), slices.Replace(slices.Clone(rec.Columns()), at, at+1, column), rec.NumRows())), nil
	})
}
