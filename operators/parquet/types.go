package parquet

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	pq "github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// columnsKey and arrowKey are keys of a file's metadata. writtenBy is the name of the writing
// program that this package stores in files.
const (
	columnsKey = "superstep.columns" // the types of columns, in JSON, as this package writes them
	arrowKey   = "ARROW:schema"      // the Arrow schema of the rows, in base64
	writtenBy  = "superstep"
)

// typeMetadata has the metadata of a file that describe the types of its columns.
type typeMetadata struct {
	ours    bool          // this package has written the file
	columns string        // value of columnsKey
	origin  *arrow.Schema // schema in arrowKey, nil if there is no readable schema
	pandas  string        // value of operators.PandasKey
}

func readTypeMetadata(meta *metadata.FileMetaData) typeMetadata {
	kv := meta.KeyValueMetadata()
	find := func(key string) string {
		if v := kv.FindValue(key); v != nil {
			return *v
		}
		return ""
	}
	return typeMetadata{
		ours:    meta.GetCreatedBy() == writtenBy,
		columns: find(columnsKey),
		origin:  decodeSchema(find(arrowKey), meta.Schema.Root().NumFields()),
		pandas:  find(operators.PandasKey),
	}
}

// decodeSchema decodes an Arrow schema in base64. It returns nil if the schema cannot be read
// or does not have the given number of columns.
func decodeSchema(text string, columns int) *arrow.Schema {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(data) == 0 {
		return nil
	}
	s, err := batch.ReadSchema(bytes.NewReader(data))
	if err != nil || s.NumFields() != columns {
		return nil
	}
	return s
}

// encodeSchema returns an encoded schema from which programs that use Arrow get the zones of
// times, or "" if no column has a zone other than UTC. Except for zones, the encoded schema
// equals the stored schema, so that these programs read the same types as other programs.
func encodeSchema(columns, stored *arrow.Schema) (string, error) {
	zones, fields := false, stored.Fields()
	for i, f := range columns.Fields() {
		if t, ok := f.Type.(*arrow.TimestampType); ok {
			fields[i].Type = &arrow.TimestampType{Unit: fields[i].Type.(*arrow.TimestampType).Unit, TimeZone: t.TimeZone}
			zones = zones || t.TimeZone != "" && t.TimeZone != utc
		}
	}
	if !zones {
		return "", nil
	}
	message, err := batch.SchemaMessage(arrow.NewSchema(fields, nil))
	return base64.StdEncoding.EncodeToString(message), err
}

// restore returns the schema of the rows of a file whose stored columns are fields. A column
// has the type in the metadata of this package if that type fits the stored type. Another
// program may have read a file of this package, changed the rows and kept the metadata. Types
// of times in the metadata are therefore used only if this package has written the file.
func restore(fields []arrow.Field, root *schema.GroupNode, t typeMetadata) *arrow.Schema {
	types := map[string]arrow.DataType{}
	var columns []batch.Column
	if json.Unmarshal([]byte(t.columns), &columns) == nil {
		for _, c := range columns {
			if parsed, err := batch.ParseType(c.Type); err == nil && (t.ours || parsed.ID() != arrow.TIMESTAMP) {
				types[c.Name] = parsed
			}
		}
	}
	for i, f := range fields {
		var origin arrow.DataType
		if t.origin != nil && t.origin.Field(i).Name == f.Name {
			origin = t.origin.Field(i).Type
		}
		fields[i].Type = original(clocked(f.Type, root.Field(i), origin), origin)
		if ours := types[f.Name]; ours != nil && plainName(storedType(ours)) == plainName(f.Type) {
			fields[i].Type = ours
		}
	}
	return arrow.NewSchema(fields, pandasMetadata(t.pandas))
}

func pandasMetadata(text string) *arrow.Metadata {
	if text == "" {
		return nil
	}
	m := arrow.NewMetadata([]string{operators.PandasKey}, []string{text})
	return &m
}

// clocked returns the stored type of a column, but removes the time zone if the column has
// times that are not adjusted to UTC: Arrow's reader gives all times a zone. Times of 96 bits
// do not record whether they are adjusted, so they keep the zone only if origin, their type in
// the Arrow schema, has a zone.
func clocked(stored arrow.DataType, node schema.Node, origin arrow.DataType) arrow.DataType {
	t, ok := stored.(*arrow.TimestampType)
	leaf, is := node.(*schema.PrimitiveNode)
	if !ok || !is {
		return stored
	}
	adjusted := t.TimeZone != ""
	if logical, ok := leaf.LogicalType().(*schema.TimestampLogicalType); ok {
		adjusted = adjusted && logical.IsAdjustedToUTC()
	} else if leaf.PhysicalType() == pq.Types.Int96 {
		had, ok := origin.(*arrow.TimestampType)
		adjusted = ok && had.TimeZone != ""
	}
	if !adjusted {
		return &arrow.TimestampType{Unit: t.Unit}
	}
	return t
}

// original returns origin, the type that a column had in Arrow, if Parquet does not have that
// type: vectors of a fixed length, times with a zone, and durations, which are stored as
// numbers. Otherwise it returns the stored type.
func original(stored, origin arrow.DataType) arrow.DataType {
	switch had := origin.(type) {
	case *arrow.FixedSizeListType:
		if plainName(storedType(had)) == plainName(stored) {
			return had
		}
	case *arrow.DurationType:
		if stored.ID() == arrow.INT64 {
			return had
		}
	case *arrow.TimestampType:
		if t, ok := stored.(*arrow.TimestampType); ok && t.TimeZone != "" && had.TimeZone != "" {
			return &arrow.TimestampType{Unit: t.Unit, TimeZone: had.TimeZone}
		}
	}
	return stored
}

// plainName returns the name of a type without the properties that the Parquet schema does not
// have: time zones and sizes of sparse vectors.
func plainName(t arrow.DataType) string {
	name := batch.TypeName(t)
	if strings.HasPrefix(name, "sparse") {
		return "sparse"
	}
	name, _, zone := strings.Cut(name, ", ")
	if zone && strings.HasPrefix(name, "timestamp") {
		name += "]"
	}
	return name
}
