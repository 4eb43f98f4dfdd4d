package arrowbridge

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// Record returns a batch as a record, or nil for the zero Batch. The record is the same object
// as the batch: the owner of the batch owns the record, and they have one reference count.
func Record(b engine.Batch) arrow.Record { return arrowrows.Record(b) }

// Batch returns a record as a batch; it is the inverse of Record. For a nil record it returns
// the zero Batch. If the record has columns of types that rows cannot have, the operator that
// gets the batch reports them.
func Batch(rec arrow.Record) engine.Batch { return arrowrows.Batch(rec) }

// Schema returns a schema as an Arrow schema, or nil for the zero Schema.
func Schema(s engine.Schema) *arrow.Schema { return arrowrows.Arrow(s) }

// SchemaOf returns an Arrow schema as a schema; it is the inverse of Schema. For a nil schema
// it returns the zero Schema. Metadata of the Arrow schema is ignored. If the schema has types
// that rows cannot have, the operators that use it report them.
func SchemaOf(schema *arrow.Schema) engine.Schema { return arrowrows.Schema(schema) }

// FromRecords returns a dataset of the rows of records, as operators.FromBatches does for
// batches.
func FromRecords(b *engine.Builder, recs []arrow.Record) *engine.Dataset {
	return operators.FromBatches(b, arrowrows.Batches(recs))
}

// Records returns the rows that a run collected under a name, as records. The records are
// borrowed from the result, like the batches of Result.Batches.
func Records(r *engine.Result, name string) ([]arrow.Record, error) {
	batches, err := r.Batches(name)
	if err != nil {
		return nil, fmt.Errorf("arrowbridge: %w", err)
	}
	return arrowrows.Records(batches), nil
}
