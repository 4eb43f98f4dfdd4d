package batch_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestTypeNamesRoundTrip(t *testing.T) {
	for _, name := range append([]string{"timestamp[ms]", "timestamp[us, Europe/Berlin]", "sparse[2147483647]"}, allTypes...) {
		dt, err := batch.ParseType(name)
		require.NoError(t, err, name)
		require.Equal(t, name, batch.TypeName(dt))
		again, err := batch.ParseType(" " + name + " ")
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(dt, again, arrow.CheckMetadata()), name)
	}
	ms, err := batch.ParseType("timestamp[ms,UTC]")
	require.NoError(t, err)
	require.Equal(t, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, ms)
}

func TestParseTypeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "unknown type \"\"",
		"flaot64":            "did you mean float64?",
		"Int64":              "did you mean int64",
		"vector[0]":          "\"0\" is not a number between 1 and 2147483647",
		"vector[-1]":         "is not a number",
		"vector[03]":         "is not a number",
		"vector[]":           "is not a number",
		"vector[3":           "no closing bracket",
		"sparse[3000000000]": "is not a number",
		"timestamp":          "needs a unit",
		"timestamp[min]":     "the unit \"min\" is not one of",
		"timestamp[us,]":     "empty time zone",
		"int64[3]":           "int64 takes no parameter",
	} {
		_, err := batch.ParseType(text)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, "large_utf8", batch.TypeName(arrow.BinaryTypes.LargeString))
	require.Equal(t, "none", batch.TypeName(nil))
}

func TestSparseSizeIsPartOfTheSchema(t *testing.T) {
	five, six := batchtest.Schema(t, "s sparse[5]"), batchtest.Schema(t, "s sparse[6]")
	require.False(t, five.Equal(six))
	require.True(t, five.Equal(batchtest.Schema(t, "s sparse[5]")))
	require.Equal(t, 5, batch.VectorDim(five.Field(0).Type))
}

func TestSchemaAndColumnsRoundTrip(t *testing.T) {
	cols := []batch.Column{{"id", "int64", false}, {"features", "vector[4]", true}, {"at", "timestamp[us, UTC]", false}}
	schema, err := batch.Schema(cols)
	require.NoError(t, err)
	require.Equal(t, cols, batch.Columns(schema))

	_, err = batch.Schema([]batch.Column{{Name: "a", Type: "int64"}, {Name: "a", Type: "utf8"}})
	require.EqualError(t, err, "columns 1 and 2 are both named \"a\"")
	_, err = batch.Schema([]batch.Column{{Type: "int64"}})
	require.EqualError(t, err, "column 1 has no name")
	_, err = batch.Schema([]batch.Column{{Name: "a", Type: "integer"}})
	require.ErrorContains(t, err, "column \"a\": unknown type \"integer\"")
}

func TestNormalizeSchemaDropsWhatHasNoMeaning(t *testing.T) {
	md := arrow.NewMetadata([]string{"origin"}, []string{"a notebook"})
	foreign := arrow.NewSchema([]arrow.Field{
		{Name: "v", Type: arrow.FixedSizeListOfField(3, arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Float64, Nullable: true}), Metadata: md},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32)},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: md},
	}, &md)
	got, err := batch.NormalizeSchema(foreign)
	require.NoError(t, err)
	require.True(t, got.Equal(batchtest.Schema(t, "v vector[3]", "l vector32", "n int64 null")))
	require.False(t, got.HasMetadata())

	_, err = batch.NormalizeSchema(arrow.NewSchema([]arrow.Field{{Name: "d", Type: &arrow.Decimal128Type{Precision: 5, Scale: 2}}}, nil))
	require.EqualError(t, err, "column \"d\": type decimal(5, 2) is not supported; write the column as float64")
}

func TestFindColumn(t *testing.T) {
	schema := batchtest.Schema(t, "sepal_length float64", "species utf8")
	i, err := batch.FindColumn(schema, "species")
	require.NoError(t, err)
	require.Equal(t, 1, i)
	_, err = batch.FindColumn(schema, "specie")
	require.EqualError(t, err, "no column \"specie\"; did you mean \"species\"? (columns: sepal_length float64, species utf8)")
}
