package batch

import "github.com/apache/arrow/go/v15/arrow"

// The types of package engine/columnar are defined as Handle, SchemaHandle and ArrayHandle.
// Code of this module converts between the two. Users of columnar cannot, as they cannot name a
// type of an internal package. So their API has no Arrow types.
type (
	// Handle holds a batch.
	Handle struct{ record arrow.Record }
	// SchemaHandle holds a schema.
	SchemaHandle struct{ schema *arrow.Schema }
	// ArrayHandle holds a column.
	ArrayHandle struct{ array arrow.Array }
)

// HandleOf returns a handle of a batch, which may be nil. References are not counted.
func HandleOf(rec arrow.Record) Handle { return Handle{rec} }

// Record returns the batch.
func (h Handle) Record() arrow.Record { return h.record }

// HandleOfSchema returns a handle of a schema, which may be nil.
func HandleOfSchema(schema *arrow.Schema) SchemaHandle { return SchemaHandle{schema} }

// Schema returns the schema.
func (h SchemaHandle) Schema() *arrow.Schema { return h.schema }

// HandleOfArray returns a handle of a column. References are not counted.
func HandleOfArray(arr arrow.Array) ArrayHandle { return ArrayHandle{arr} }

// Array returns the column.
func (h ArrayHandle) Array() arrow.Array { return h.array }
