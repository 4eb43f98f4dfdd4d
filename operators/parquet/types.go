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

// Keys of a file's metadata.
const (
	columnsKey = "superstep.columns" // the types of columns, as this package writes them
	arrowKey   = "ARROW:schema"      // the schema that Arrow had, in base64
	writtenBy  = "superstep"
)

// typeMetadata holds what the metadata of a file say about the types of its columns.
type typeMetadata struct {
	ours    bool          // this package has written the file
	columns string        // under columnsKey
	origin  *arrow.Schema // under arrowKey, nil if it cannot be read
	pandas  string        // metadata of pandas
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

// decodeSchema decodes a schema in base64. It returns nil if it cannot be read or has another
// number of columns.
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

// encodeSchema returns a schema that tells programs with Arrow the zones of times, "" if there
// are none to tell. Otherwise it is the stored schema, so that these programs see the same as
// others.
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

// restore returns the types of a file's columns: those in its metadata if they fit the stored
// types, which it is given. A file of another program may have our types in its metadata, if the program has read
// and changed our rows. Their times are then not trusted.
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

// clocked returns the type of a column, without a zone if its times are not adjusted to UTC;
// Arrow's reader gives all times a zone. Times of 96 bits do not say whether they are adjusted:
// they have a zone if they had one in Arrow.
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

// original returns the type that a column had in Arrow, for types that Parquet does not have:
// vectors of a length, zones of times, and durations, which are stored as numbers.
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

// plainName returns a type's text form without the properties that files do not keep: time
// zones and sizes of sparse vectors.
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
