package bins_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

var good = columnsRecord([]string{"x", "word", "code", "real", "y", "w", "v"},
	[]float64{1, 2}, []string{"a", "b"}, []int64{0, 1}, []float64{0.5, 1.5}, []float64{0, 1}, []float64{1, 1}, [][]float64{{1, 2}, {3, 4}})

func TestColumnsThatCannotBe(t *testing.T) {
	x := []string{"x"}
	for text, c := range map[string]struct {
		columns bins.Columns
		label   bins.LabelKind
		options bins.Options
	}{
		"at most 300 bins are asked for; it must be 2 to 255":                  {columns: bins.Columns{Features: x}, options: bins.Options{MaxBins: 300}},
		"at most 1 bins are asked for":                                         {columns: bins.Columns{Features: x}, options: bins.Options{MaxBins: 1}},
		"both a vector column, \"v\", and feature columns":                     {columns: bins.Columns{Vector: "v", Features: x}},
		"column \"x\" is named both as feature and as feature":                 {columns: bins.Columns{Features: []string{"x", "x"}}},
		"column \"y\" is named both as label and as weight":                    {columns: bins.Columns{Features: x, Label: "y", Weight: "y"}, label: bins.NumberLabel},
		"a column has an empty name":                                           {columns: bins.Columns{Features: []string{""}}},
		"CategoricalCols has \"code\", which FeatureCols has not":              {columns: bins.Columns{Features: x, Categorical: []string{"code"}}},
		"column \"real\" is categorical and float64":                           {columns: bins.Columns{Features: []string{"real"}, Categorical: []string{"real"}}},
		"CategoricalAt is for components of a vector, and FeatureCols are set": {columns: bins.Columns{Features: x, CategoricalAt: []int{0}}},
		"CategoricalAt has -1":                                                 {columns: bins.Columns{Vector: "v", CategoricalAt: []int{-1}}},
		"features: column \"v\" is vector: features are numbers, bools":        {columns: bins.Columns{Features: []string{"v"}}},
		"column \"x\" is float64, not a vector":                                {columns: bins.Columns{Vector: "x"}},
		"no column \"z\"":                                                      {columns: bins.Columns{Features: []string{"z"}}},
		"label: column \"word\" is utf8, not a number":                         {columns: bins.Columns{Features: x, Label: "word"}, label: bins.NumberLabel},
		"weight: column \"word\" is utf8, not a number":                        {columns: bins.Columns{Features: x, Weight: "word"}},
		"margin: column \"word\" is utf8, not a number":                        {columns: bins.Columns{Features: x, Margins: []string{"word"}}},
		"group: column \"v\" is vector: want numbers, text or another scalar":  {columns: bins.Columns{Features: x, Group: "v"}},
		"LabelCol is empty":                                                    {columns: bins.Columns{Features: x}, label: bins.ClassLabel},
		"label column \"y\" is named, but no label is read":                    {columns: bins.Columns{Features: x, Label: "y"}},
		"an upper end of the label is named, but labels are not numbers":       {columns: bins.Columns{Features: x, Label: "y", LabelUpper: "w"}, label: bins.ClassLabel},
		"label: column \"v\" is vector: classes are numbers, text, bools":      {columns: bins.Columns{Features: x, Label: "v"}, label: bins.ClassLabel},
		"categorical component 7 is not one of column \"v\", which has 2":      {columns: bins.Columns{Vector: "v", CategoricalAt: []int{7}}},
		"the category is 1.5; codes of categories are the integers from 0 to ": {columns: bins.Columns{Vector: "v", CategoricalAt: []int{0}}},
	} {
		rec := good
		if strings.HasPrefix(text, "the category is") {
			rec = columnsRecord([]string{"v"}, [][]float64{{1.5, 2}})
		}
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(check(b, dataset(rec)(b), c.columns, c.label, c.options), "seen")
		}, text)
	}
	none := columnsRecord([]string{"x"}, []float64{1})
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(check(b, dataset(none)(b), bins.Columns{}, bins.NoLabel, bins.Options{}), "seen")
	}, "no features are named, and there is no vector column")
	two := columnsRecord([]string{"a", "b"}, [][]float64{{1}}, [][]float64{{1}})
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(check(b, dataset(two)(b), bins.Columns{}, bins.NoLabel, bins.Options{}), "seen")
	}, "there are several vector columns (a, b): name one")
}

func TestRowsThatCannotBe(t *testing.T) {
	y := bins.Columns{Features: []string{"x"}, Label: "y", Weight: "w"}
	names := []string{"x", "y", "w"}
	x, one := []float64{1, 2, 3}, []float64{1, 1, 1}
	for text, c := range map[string]struct {
		rec     arrow.Record
		columns bins.Columns
		label   bins.LabelKind
	}{
		"row 1 of the shard: column \"y\": the label is NaN; fill it in, or set Skip": {columnsRecord(names, x, []float64{0, nan, 1}, one), y, bins.NumberLabel},
		"row 2 of the shard: column \"y\": the label is +Inf":                         {columnsRecord(names, x, []float64{0, 1, inf}, one), y, bins.ClassLabel},
		"row 0 of the shard: column \"y\": the label is null":                         {columnsRecord(names, x, []string{"-", "b", "a"}, one), y, bins.ClassLabel},
		"row 1 of the shard: column \"y\": the label \"\\xff\" is not UTF-8":          {columnsRecord(names, x, []string{"a", "\xff", "a"}, one), y, bins.ClassLabel},
		"row 2 of the shard: column \"w\": the weight is -1; a weight is 0 or more":   {columnsRecord(names, x, one, []float64{1, 1, -1}), y, bins.NumberLabel},
		"row 0 of the shard: column \"w\": the weight is NaN":                         {columnsRecord(names, x, one, []float64{nan, 1, -1}), y, bins.NumberLabel},
		"every weight in column \"w\" is 0":                                           {columnsRecord(names, x, one, []float64{0, 0, 0}), y, bins.NumberLabel},
		"the weights in column \"w\" add up to more than float64 holds":               {columnsRecord(names, x, one, []float64{1e308, 1e308, 1e308}), y, bins.NumberLabel},
		"the labels in column \"y\" are so large":                                     {columnsRecord(names, x, []float64{1e308, -1e308, 1e308}, one), y, bins.NumberLabel},
		"row 1 of the shard: columns \"y\" and \"w\": the label ends at 1, below where it begins, 2": {columnsRecord(names, x, []float64{0, 2, 1}, one),
			bins.Columns{Features: []string{"x"}, Label: "y", LabelUpper: "w"}, bins.NumberLabel},
		"row 2 of the shard: column \"w\": the margin is -Inf": {columnsRecord(names, x, one, []float64{0, 0, -inf}),
			bins.Columns{Features: []string{"x"}, Margins: []string{"w"}}, bins.NoLabel},
		"column \"w\": the group is null": {columnsRecord(names, x, one, []string{"a", "-", "a"}),
			bins.Columns{Features: []string{"x"}, Group: "w"}, bins.NoLabel},
		"row 1 of the shard: column \"x\": the category is -3; codes of categories are the integers from 0 to 65535": {columnsRecord(names[:1], []int64{1, -3, 1}),
			bins.Columns{Features: []string{"x"}, Categorical: []string{"x"}}, bins.NoLabel},
		"row 2 of the shard: column \"x\": the category is 70000": {columnsRecord(names[:1], []int64{1, 2, 70_000}),
			bins.Columns{Features: []string{"x"}, Categorical: []string{"x"}}, bins.NoLabel},
		"row 1 of the shard: column \"x\" has 1 components, where other rows have 2": {columnsRecord(names[:1], [][]float64{{1, 2}, {1}, {1, 2}}), bins.Columns{}, bins.NoLabel},
		"row 1 of the shard: column \"x\" is null":                                   {columnsRecord(names[:1], [][]float64{{1, 2}, nil, {1, 2}}), bins.Columns{}, bins.NoLabel},
		"column \"x\": the vectors have no components":                               {columnsRecord(names[:1], [][]float64{{}, {}}), bins.Columns{}, bins.NoLabel},
		"there are no rows to train on: the input is empty":                          {columnsRecord(names[:1], []float64{}), bins.Columns{Features: []string{"x"}}, bins.NoLabel},
		"row 0 of the shard: column \"x\": the category \"\\xfe\" is not UTF-8":      {columnsRecord(names[:1], []string{"\xfe"}), bins.Columns{Features: []string{"x"}}, bins.NoLabel},
		"no rows to train on: the input is empty, or every row was skipped": {columnsRecord(names, x, []float64{nan, nan, nan}, one),
			bins.Columns{Features: []string{"x"}, Label: "y", Skip: true}, bins.NumberLabel},
	} {
		_, err := trial.Try(t, func(b *engine.Builder) {
			engine.Collect(check(b, dataset(c.rec)(b), c.columns, c.label, bins.Options{}), "seen")
		}, engine.Shards(1))
		require.ErrorContains(t, err, text)
	}
}

func TestSkippedRowsLeaveTheOthersAsTheyAre(t *testing.T) {
	rec := columnsRecord([]string{"x", "y", "w"}, []float64{1, 2, 3, 4, 5}, []float64{0, nan, 2, 3, 4}, []float64{1, 1, nan, 1, 1})
	c := bins.Columns{Features: []string{"x"}, Label: "y", Weight: "w", Skip: true}
	for _, batch := range []int{1, 2, 1024} {
		s := look(t, dataset(rec), c, bins.NumberLabel, bins.Options{}, engine.Shards(2), engine.BatchRows(batch))
		var labels []float64
		for _, row := range s.Rows {
			labels = append(labels, row.Label)
			require.Equal(t, []int{map[float64]int{0: 0, 3: 1, 4: 2}[row.Label]}, row.Bins)
		}
		require.Equal(t, []float64{0, 3, 4}, labels)
		require.EqualValues(t, 3, s.Facts.Rows)
	}
}

func TestFeaturesThatCannotSplit(t *testing.T) {
	rec := columnsRecord([]string{"one", "missing", "half", "infinite", "y"},
		[]float64{5, 5, 5, 5}, []float64{nan, nan, nan, nan}, []float64{1, nan, 1, nan}, []float64{inf, 1, -inf, inf}, []float64{1, 1, 1, 1})
	s := look(t, dataset(rec), bins.Columns{Features: []string{"one", "missing", "half", "infinite"}, Label: "y"}, bins.ClassLabel, bins.Options{})
	f := s.Layout.Features
	require.Equal(t, []int{1, 0, 1, 3}, []int{f[0].Bins, f[1].Bins, f[2].Bins, f[3].Bins})
	require.Equal(t, []int{-1, -1, 0, 1}, []int{f[0].Column, f[1].Column, f[2].Column, f[3].Column})
	require.Equal(t, []string{"1"}, s.Facts.Classes)
	require.Equal(t, []int{0, 0, 0, 2}, s.Rows[0].Bins)
	require.Equal(t, []int{0, 0, 1, 1}, s.Rows[1].Bins)

	one := columnsRecord([]string{"x"}, []float64{3})
	s = look(t, dataset(one), bins.Columns{Features: []string{"x"}}, bins.NoLabel, bins.Options{})
	require.Len(t, s.Rows, 1)
	require.Empty(t, s.Layout.Columns)
}

func TestRowsWithoutWeightMakeNoCuts(t *testing.T) {
	rec := columnsRecord([]string{"x", "w", "colour"}, []float64{1, 2, 3, 4}, []float64{1, 0, 1, 0}, []string{"a", "b", "a", "c"})
	s := look(t, dataset(rec), bins.Columns{Features: []string{"x", "colour"}, Weight: "w"}, bins.NoLabel, bins.Options{})
	require.Equal(t, []float32{2}, s.Layout.Features[0].Cuts)
	require.Equal(t, []string{"a"}, s.Layout.Features[1].Names)
	require.EqualValues(t, 2, s.Facts.Weighing)
}

func TestEvaluationSetsThatDoNotFit(t *testing.T) {
	c := bins.Columns{Features: []string{"x", "word"}, Label: "y"}
	for text, rec := range map[string]arrow.Record{
		"no column \"word\"":                                      columnsRecord([]string{"x", "y"}, []float64{1}, []float64{1}),
		"column \"x\" is utf8, and in the training rows":          columnsRecord([]string{"x", "word", "y"}, []string{"1"}, []string{"a"}, []float64{1}),
		"label column \"y\" is int64, and in the training rows":   columnsRecord([]string{"x", "word", "y"}, []float64{1}, []string{"a"}, []int64{1}),
		"column \"y\" has the class \"7\", which no training row": columnsRecord([]string{"x", "word", "y"}, []float64{1}, []string{"a"}, []float64{7}),
	} {
		trial.Fails(t, func(b *engine.Builder) { evaluate(b, good, rec, c, bins.ClassLabel) }, text)
	}
	fixed := trial.TableOf(nil, []float64{1, 2, 3}).Record()
	loose := columnsRecord([]string{"features"}, [][]float64{{1, 2}})
	short := sparseRecord(2, [][]int32{{0}}, [][]float64{{1}})
	trial.Fails(t, func(b *engine.Builder) { evaluate(b, fixed, loose, bins.Columns{Vector: "features"}, bins.NoLabel) },
		`evaluation set "held out": rows have 2 features, and the training rows have 3`)
	trial.Fails(t, func(b *engine.Builder) {
		evaluate(b, sparseRecord(3, [][]int32{{0}}, [][]float64{{1}}), short, bins.Columns{Vector: "v"}, bins.NoLabel)
	}, `column "v" is sparse[2], and in the training rows it is sparse[3]`)
}

// evaluate adds a queue that bins the rows of other by the cuts of train.
func evaluate(b *engine.Builder, train, other arrow.Record, c bins.Columns, label bins.LabelKind) {
	a, err := bins.Check("bins.Test", dataset(train)(b), c, label, bins.Options{})
	if err == nil {
		var e bins.Table
		if e, err = a.Other("held out", dataset(other)(b), false); err == nil {
			engine.Collect(open(b, a, e), "seen")
			return
		}
	}
	b.Errorf("bins.Test: %w", err)
}

func TestSparseIndicesThatCannotBe(t *testing.T) {
	for text, indices := range map[string][]int32{
		"index -1 is negative":                {-1},
		"index 3 is not below the size, 3":    {0, 3},
		"index 1 occurs twice":                {1, 1},
		"index 0 follows 2; indices ascend":   {2, 0},
		"index 2147483647 is not below the s": {1<<31 - 1},
	} {
		rec := wrongSparse(3, indices)
		_, err := trial.Try(t, func(b *engine.Builder) {
			d := b.Add(engine.Spec{Op: "Wrong", Schema: arrowrows.Schema(rec.Schema()), Source: func() engine.Source { return &wrongSource{rec: rec} }})
			engine.Collect(check(b, d, bins.Columns{}, bins.NoLabel, bins.Options{}), "seen")
		}, engine.Shards(1))
		require.ErrorContains(t, err, "row 0 of the shard: column \"v\": "+text)
	}
}

// wrongSource emits an invalid batch, which no operator of this module would emit.
type wrongSource struct{ rec arrow.Record }

func (s *wrongSource) Open(*engine.Context) error { return nil }
func (s *wrongSource) Close() error               { return nil }
func (s *wrongSource) ReadShard(_ *engine.Context, shard int, out engine.Output) error {
	return out.Emit(shard, arrowrows.Batch(s.rec))
}

// wrongSparse returns one sparse row with indices that NewSparseArray would refuse.
func wrongSparse(size int, indices []int32) arrow.Record {
	sparse, err := batch.SparseType(size)
	if err != nil {
		panic(err)
	}
	dt := sparse.(*arrow.StructType)
	b := array.NewStructBuilder(memory.NewGoAllocator(), dt)
	b.Append(true)
	b.FieldBuilder(0).(*array.ListBuilder).Append(true)
	b.FieldBuilder(0).(*array.ListBuilder).ValueBuilder().(*array.Int32Builder).AppendValues(indices, nil)
	b.FieldBuilder(1).(*array.ListBuilder).Append(true)
	for range indices {
		b.FieldBuilder(1).(*array.ListBuilder).ValueBuilder().(*array.Float64Builder).Append(1)
	}
	a := b.NewArray()
	return array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt}}, nil), []arrow.Array{a}, 1)
}
