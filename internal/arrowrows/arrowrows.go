// Package arrowrows converts batches and schemas of package engine/columnar to Arrow records
// and schemas and back, for code of this module that works on Arrow. These conversions copy
// nothing and change no reference count, so a batch has the same owner as before. SchemaOf,
// Emit and Rows convert structs of this module to batches and back; Emit and Rows copy the
// values.
package arrowrows

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Record returns b as an Arrow record, nil if b is the zero Batch.
func Record(b columnar.Batch) arrow.Record { return batch.Handle(b).Record() }

// Batch returns rec as a batch. rec may be nil.
func Batch(rec arrow.Record) columnar.Batch { return columnar.Batch(batch.HandleOf(rec)) }

// Records applies Record to every batch.
func Records(batches []columnar.Batch) []arrow.Record {
	recs := make([]arrow.Record, len(batches))
	for i, b := range batches {
		recs[i] = Record(b)
	}
	return recs
}

// Batches applies Batch to every record.
func Batches(recs []arrow.Record) []columnar.Batch {
	batches := make([]columnar.Batch, len(recs))
	for i, rec := range recs {
		batches[i] = Batch(rec)
	}
	return batches
}

// Arrow returns s as an Arrow schema, nil if s is the zero Schema.
func Arrow(s columnar.Schema) *arrow.Schema { return batch.SchemaHandle(s).Schema() }

// Schema returns an Arrow schema as a columnar.Schema. schema may be nil.
func Schema(schema *arrow.Schema) columnar.Schema {
	return columnar.Schema(batch.HandleOfSchema(schema))
}

// Columns returns Arrow fields as columns. The Type of a column is empty if its field has no type.
func Columns(fields []arrow.Field) []columnar.Column {
	columns := make([]columnar.Column, len(fields))
	for i, f := range fields {
		columns[i] = columnar.Column{Name: f.Name, Nullable: f.Nullable}
		if f.Type != nil {
			columns[i].Type = batch.TypeName(f.Type)
		}
	}
	return columns
}

// Values returns Arrow arrays as values of columns. Arrays is its inverse.
func Values(arrays []arrow.Array) []columnar.Values {
	values := make([]columnar.Values, len(arrays))
	for i, arr := range arrays {
		values[i] = columnar.Values(batch.HandleOfArray(arr))
	}
	return values
}

// Arrays returns values of columns as Arrow arrays. For the zero Values, the array is nil.
func Arrays(values []columnar.Values) []arrow.Array {
	arrays := make([]arrow.Array, len(values))
	for i, v := range values {
		arrays[i] = batch.ArrayHandle(v).Array()
	}
	return arrays
}
