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

// Batch is the inverse of Record. rec may be nil. Types that rows cannot have are reported by
// the operator that gets the batch.
func Batch(rec arrow.Record) engine.Batch { return arrowrows.Batch(rec) }

// Schema returns a schema as an Arrow schema, or nil for the zero Schema.
func Schema(s engine.Schema) *arrow.Schema { return arrowrows.Arrow(s) }

// SchemaOf is the inverse of Schema. schema may be nil, and its metadata are ignored. Types
// that rows cannot have are reported by operators that use the schema.
func SchemaOf(schema *arrow.Schema) engine.Schema { return arrowrows.Schema(schema) }

// FromRecords is operators.FromBatches for records.
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
