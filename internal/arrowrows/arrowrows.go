// Package arrowrows turns batches and schemas of package engine/columnar into Arrow's and back,
// for code of this module, which works on Arrow records. Nothing is copied and no reference is
// counted: who owns a batch before owns it afterwards. Structs of this module become batches and
// back by SchemaOf, Emit and Rows, which copy.
package arrowrows

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Record returns a batch as a record, nil for none.
func Record(b columnar.Batch) arrow.Record { return batch.Handle(b).Record() }

// Batch returns a record, which may be nil, as a batch.
func Batch(rec arrow.Record) columnar.Batch { return columnar.Batch(batch.HandleOf(rec)) }

// Records returns batches as records.
func Records(batches []columnar.Batch) []arrow.Record {
	recs := make([]arrow.Record, len(batches))
	for i, b := range batches {
		recs[i] = Record(b)
	}
	return recs
}

// Batches returns records as batches.
func Batches(recs []arrow.Record) []columnar.Batch {
	batches := make([]columnar.Batch, len(recs))
	for i, rec := range recs {
		batches[i] = Batch(rec)
	}
	return batches
}

// Arrow returns a schema as one of Arrow, nil for none.
func Arrow(s columnar.Schema) *arrow.Schema { return batch.SchemaHandle(s).Schema() }

// Schema returns a schema of Arrow, which may be nil, as one.
func Schema(schema *arrow.Schema) columnar.Schema {
	return columnar.Schema(batch.HandleOfSchema(schema))
}

// Columns returns fields as columns. One without a type has none as text either.
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

// Values returns arrays as values of columns, and Arrays these as arrays.
func Values(arrays []arrow.Array) []columnar.Values {
	values := make([]columnar.Values, len(arrays))
	for i, arr := range arrays {
		values[i] = columnar.Values(batch.HandleOfArray(arr))
	}
	return values
}

// Arrays returns values of columns as arrays, nil for none.
func Arrays(values []columnar.Values) []arrow.Array {
	arrays := make([]arrow.Array, len(values))
	for i, v := range values {
		arrays[i] = batch.ArrayHandle(v).Array()
	}
	return arrays
}
