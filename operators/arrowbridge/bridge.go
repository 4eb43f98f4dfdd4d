package arrowbridge

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// Record returns a batch as a record, nil for the zero Batch. The record is the batch itself:
// its owner owns the record, and both share one reference count.
func Record(b engine.Batch) arrow.Record { return arrowrows.Record(b) }

// Batch is the inverse of Record; the record may be nil. The operator that gets the batch
// reports types that rows cannot have.
func Batch(rec arrow.Record) engine.Batch { return arrowrows.Batch(rec) }

// Schema returns a schema as an Arrow schema, nil for the zero Schema.
func Schema(s engine.Schema) *arrow.Schema { return arrowrows.Arrow(s) }

// SchemaOf is the inverse of Schema; the Arrow schema may be nil. Operators that use it refuse
// types that rows cannot have. Metadata are ignored.
func SchemaOf(schema *arrow.Schema) engine.Schema { return arrowrows.Schema(schema) }

// FromRecords is operators.FromBatches for records.
func FromRecords(b *engine.Builder, recs []arrow.Record) *engine.Dataset {
	return operators.FromBatches(b, arrowrows.Batches(recs))
}

// Records returns the rows that a run collected under a name as records, borrowed from the
// result as Result.Batches says.
func Records(r *engine.Result, name string) ([]arrow.Record, error) {
	batches, err := r.Batches(name)
	if err != nil {
		return nil, fmt.Errorf("arrowbridge: %w", err)
	}
	return arrowrows.Records(batches), nil
}
