package arrowbridge

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// Record returns a batch as a record, nil for none. Both are the same: who owns the batch owns
// the record, and references to either count.
func Record(b engine.Batch) arrow.Record { return arrowrows.Record(b) }

// Batch returns a record, which may be nil, as a batch, as Record does the other way. The
// operator that is given the batch says what is wrong with types that rows cannot have.
func Batch(rec arrow.Record) engine.Batch { return arrowrows.Batch(rec) }

// Schema returns a schema as one of Arrow, nil for none.
func Schema(s engine.Schema) *arrow.Schema { return arrowrows.Arrow(s) }

// SchemaOf returns a schema of Arrow, which may be nil, as one of rows. Where it is used, types
// that rows cannot have are refused; metadata count for nothing.
func SchemaOf(schema *arrow.Schema) engine.Schema { return arrowrows.Schema(schema) }

// FromRecords is operators.FromBatches of records.
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
