package prepare_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
)

func TestImputer(t *testing.T) {
	rows := table(samples(true))
	_, r := try(t, rows, prepare.Imputer{Columns: []string{"age", "rooms"}})
	near(t, r, "age", 22.0, 23.083333333333332, 38.0, 26.5, 23.083333333333332, -4.0, 54.0, 2.0)
	near(t, r, "rooms", 3, 1, 3, 2, 7, 0, -2, 3)

	_, r = quick(t, rows, prepare.Imputer{Columns: []string{"age", "vector"}, Strategy: prepare.Median})
	near(t, r, "age", 22.0, 24.25, 38.0, 26.5, 24.25, -4.0, 54.0, 2.0)
	near(t, r, "vector", 1, -2, 5, 2, 4, 5, 3, 0, 5, 4, 8, 5, 5, -1, 5, 6, 3, 5, 7, 3, 5, 8, 3, 5)

	_, r = quick(t, rows, prepare.Imputer{Columns: []string{"city", "good", "rooms"}, Strategy: prepare.Mode})
	require.Equal(t, "Oslo Rome Rome Rome Bern Oslo Rome Paris", strings.Join(column(t, r, "city"), " "))
	require.Equal(t, "true", column(t, r, "good")[3])

	m, r := try(t, rows, prepare.Imputer{
		Columns: []string{"age", "city", "good", "vector"}, Outputs: []string{"a", "c", "g", "v"},
		Strategies: []prepare.Strategy{prepare.Median, prepare.Constant, prepare.Mode, prepare.Mean}, Values: []string{"", "none", "", ""},
	})
	require.Equal(t, "none", column(t, r, "c")[3])
	require.Equal(t, "", column(t, r, "city")[3])
	near(t, r, "a", 22.0, 24.25, 38.0, 26.5, 24.25, -4.0, 54.0, 2.0)
	golden(t, m)

	// If several values are equally frequent, the mode is the least of them. Numbers are
	// compared by value, not as text.
	many := samples(false)
	for i, n := range []int64{10, 9, 9, 10, 100, 7, 8, 3} {
		many[i].Rooms = n
	}
	m, _ = quick(t, table(many), prepare.Imputer{Columns: []string{"rooms"}, Strategy: prepare.Mode})
	require.Equal(t, "9", m.(*prepare.ImputerModel).Fills[0].Value)
}

func TestImputerTellsWhatIsWrong(t *testing.T) {
	rows := samples(false)
	fails(t, rows, prepare.Imputer{Columns: []string{"city"}}, `column "city" is utf8: want numbers or dense vectors for mean`)
	fails(t, rows, prepare.Imputer{Columns: []string{"sparse"}}, "want numbers or dense vectors")
	fails(t, rows, prepare.Imputer{Columns: []string{"vector"}, Strategy: prepare.Mode}, `column "vector"`)
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Constant}, "Constant needs one for each")
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Constant, Values: []string{"old"}}, `"old" is no finite number`)
	fails(t, rows, prepare.Imputer{Columns: []string{"rooms"}, Strategy: prepare.Constant, Values: []string{"1.5"}}, `"1.5" is no int64`)
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Values: []string{"1"}}, "no column is filled by Constant")
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Strategies: []prepare.Strategy{0, 1}}, "2 Strategies for 1 Columns")
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Strategy: 9}, "Strategy(9)")
	for i := range rows {
		rows[i].City, rows[i].Age = nil, nil
	}
	fails(t, rows, prepare.Imputer{Columns: []string{"city"}, Strategy: prepare.Mode}, `column "city" has no value`)
	fails(t, rows, prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median}, `column "age" has no value`)
	fails(t, nil, prepare.Imputer{Columns: []string{"age"}}, "no rows")
}

func TestStringIndexer(t *testing.T) {
	columns := []string{"city", "rooms", "good"}
	for _, c := range []struct {
		order prepare.Order
		want  [][]string
	}{
		{prepare.FrequencyDescending, [][]string{{"Rome", "Oslo", "Bern", "Paris"}, {"3", "-2", "0", "1", "2", "7"}, {"true", "false"}}},
		{prepare.ValueAscending, [][]string{{"Bern", "Oslo", "Paris", "Rome"}, {"-2", "0", "1", "2", "3", "7"}, {"false", "true"}}},
		{prepare.ValueDescending, [][]string{{"Rome", "Paris", "Oslo", "Bern"}, {"7", "3", "2", "1", "0", "-2"}, {"true", "false"}}},
	} {
		m, r := try(t, table(samples(false)), prepare.StringIndexer{Columns: columns, Order: c.order, Unknown: prepare.Keep})
		require.Equal(t, c.want, m.(*prepare.IndexerModel).Values)
		require.Equal(t, "4", column(t, r, "city")[3])
		require.Equal(t, "2", column(t, r, "good")[3])
		if c.order == prepare.FrequencyDescending {
			require.Equal(t, "1 0 0 4 2 1 0 3", strings.Join(column(t, r, "city"), " "))
			golden(t, m)
		}
	}
	m, r := try(t, table(samples(false)), prepare.StringIndexer{Columns: []string{"city"}, Outputs: []string{"index"}, Unknown: prepare.Skip})
	require.Equal(t, "1 2 3 5 6 7 8", strings.Join(column(t, r, "id"), " "))

	layout := model.NewLayout("id", "city")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	row := layout.NewRow()
	row[1].SetText("Lima")
	require.ErrorIs(t, step(row), model.ErrSkip)
	row[1].SetText("Oslo")
	require.NoError(t, step(row))
	require.EqualValues(t, 1, row[2].Int)
	_, err = m.Bind(model.NewLayout("id", "cit"))
	require.ErrorContains(t, err, `no column "city": did you mean "cit"?`)
}

func TestStringIndexerTellsWhatIsWrong(t *testing.T) {
	rows := samples(false)
	fails(t, rows, prepare.StringIndexer{Columns: []string{"city"}}, `column "city": it is null; set Unknown`, "row 0 of the shard")
	fails(t, rows, prepare.StringIndexer{Columns: []string{"vector"}}, `column "vector" is vector[3]: want text`)
	fails(t, rows, prepare.StringIndexer{Columns: []string{"city"}, Unknown: prepare.Zeros}, "which only OneHotEncoder has")
	fails(t, rows, prepare.StringIndexer{Columns: []string{"city"}, Unknown: prepare.Shares}, "Unknown is shares, which only OneHotEncoder has")
	fails(t, rows, prepare.StringIndexer{Columns: []string{"city"}, Order: 7}, "Order(7)")
	for i := range rows {
		rows[i].City = nil
	}
	fails(t, rows, prepare.StringIndexer{Columns: []string{"city"}}, `column "city" has no value`)
}

// TestCategoriesAreUTF8 requires that text that is not UTF-8 is refused, because different
// invalid texts would become equal in a model's file.
func TestCategoriesAreUTF8(t *testing.T) {
	rows := samples(false)
	rows[2].City = p("a~")
	for _, s := range []model.Stage{
		prepare.StringIndexer{Columns: []string{"city"}, Unknown: prepare.Keep},
		prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: prepare.Keep},
		prepare.Imputer{Columns: []string{"city"}, Strategy: prepare.Mode},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			in := trial.BadText(b, rows, "city")
			engine.Collect(s.Apply(in, s.Fit(in)), "made")
		}, `row 0 of the shard: column "city": the text "a\xff" is not UTF-8`)
	}
	rows[2].City = p("\uFFFD é")
	m, _ := quick(t, table(rows), prepare.StringIndexer{Columns: []string{"city"}, Unknown: prepare.Keep})
	file, err := m.Encode()
	require.NoError(t, err)
	again, err := prepare.Decode(file)
	require.NoError(t, err)
	require.Equal(t, m, again)
	require.Contains(t, again.(*prepare.IndexerModel).Values[0], "\uFFFD é")
}

func TestOneHotEncoder(t *testing.T) {
	rows := table(samples(false))
	m, r := try(t, rows, prepare.OneHotEncoder{Columns: []string{"city", "rooms"}, Outputs: []string{"c", "r"}, Unknown: prepare.Keep})
	require.Equal(t, "[2:1] [4:1] [4:1] [0:1] [1:1] [2:1] [4:1] [3:1]", strings.Join(column(t, r, "c"), " "))
	require.Equal(t, 5, m.(*prepare.OneHotModel).Size(0))
	golden(t, m)
	m, r = quick(t, rows, prepare.OneHotEncoder{Columns: []string{"city"}, DropLast: true, Unknown: prepare.Zeros})
	require.Equal(t, "[1:1] [] [] [] [0:1] [1:1] [] [2:1]", strings.Join(column(t, r, "city"), " "))
	require.Equal(t, 3, m.(*prepare.OneHotModel).Size(0))
	_, r = quick(t, rows, prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: prepare.Skip})
	require.Len(t, column(t, r, "city"), 7)
	fails(t, samples(false), prepare.OneHotEncoder{Columns: []string{"city"}}, `column "city": it is null`)

	// Of 7 rows with a city, 1 has Bern, 2 have Oslo, 1 has Paris and 3 have Rome. Because of
	// DropLast, Rome has no component.
	m, r = try(t, rows, prepare.OneHotEncoder{Columns: []string{"city"}, DropLast: true, Unknown: prepare.Shares})
	require.Equal(t, []float64{1.0 / 7, 2.0 / 7, 1.0 / 7, 3.0 / 7}, m.(*prepare.OneHotModel).Shares[0])
	require.Equal(t, "[1:1] [] [] [0:0.14285714285714285 1:0.2857142857142857 2:0.14285714285714285] [0:1] [1:1] [] [2:1]", strings.Join(column(t, r, "city"), " "))
	for _, u := range []prepare.Unknown{prepare.Zeros, prepare.Shares, prepare.Keep, prepare.Skip} {
		fails(t, samples(false), prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: u, RefuseMissing: true}, `column "city": it is null`)
	}
	fails(t, samples(true), prepare.OneHotEncoder{Columns: []string{"age"}}, `column "age"`)
}

func TestBucketizer(t *testing.T) {
	rows := table(samples(true))
	m, r := try(t, rows, prepare.Bucketizer{Columns: []string{"age", "rooms"}, Bounds: [][]float64{{0, 22, 50}, {3}}, Unknown: prepare.Keep})
	require.Equal(t, "2 4 2 2 4 0 3 1", strings.Join(column(t, r, "age"), " "))
	require.Equal(t, "1 0 1 0 1 0 0 1", strings.Join(column(t, r, "rooms"), " "))
	golden(t, m)
	_, r = quick(t, rows, prepare.Bucketizer{Columns: []string{"age", "rooms"}, Bounds: [][]float64{{0}}, Unknown: prepare.Skip})
	require.Len(t, column(t, r, "age"), 6)
	fails(t, samples(true), prepare.Bucketizer{Columns: []string{"age"}, Bounds: [][]float64{{0}}}, `column "age": it is `)
	fails(t, samples(true), prepare.Bucketizer{Columns: []string{"age"}, Bounds: [][]float64{{1, 1}}}, "Bounds[0][1] is 1, after 1")
	fails(t, samples(true), prepare.Bucketizer{Columns: []string{"age"}, Bounds: [][]float64{{}}}, "Bounds[0] is empty")
	fails(t, samples(true), prepare.Bucketizer{Columns: []string{"age"}}, "Bounds of 0 columns")
	fails(t, samples(true), prepare.Bucketizer{Columns: []string{"city"}, Bounds: [][]float64{{1}}}, `column "city" is utf8: want numbers`)
}

func TestQuantileDiscretizer(t *testing.T) {
	rows := table(samples(true))
	m, r := try(t, rows, prepare.QuantileDiscretizer{Columns: []string{"rooms", "age"}, Buckets: 4, Unknown: prepare.Keep})
	require.Equal(t, []float64{0.75, 2.5, 3}, m.(*prepare.BucketModel).Bounds[0])
	require.Equal(t, "3 1 3 1 3 0 0 3", strings.Join(column(t, r, "rooms"), " "))
	golden(t, m)
	m, r = quick(t, rows, prepare.QuantileDiscretizer{Columns: []string{"rooms"}, Buckets: 3})
	require.InDeltaSlice(t, []float64{4.0 / 3, 3}, m.(*prepare.BucketModel).Bounds[0], 1e-15)
	require.Equal(t, "2 0 2 1 2 0 0 2", strings.Join(column(t, r, "rooms"), " "))
	m, _ = quick(t, rows, prepare.QuantileDiscretizer{Columns: []string{"same"}})
	require.Equal(t, [][]float64{{0.1}}, m.(*prepare.BucketModel).Bounds)
	fails(t, samples(true), prepare.QuantileDiscretizer{Columns: []string{"rooms"}, Buckets: 1}, "Buckets is 1")
	fails(t, nil, prepare.QuantileDiscretizer{Columns: []string{"rooms"}}, "no rows")
}

// TestSharesOfVeryManyValues requires that the average over very many values uses only the most
// frequent values, and that their shares sum to 1.
func TestSharesOfVeryManyValues(t *testing.T) {
	var rows []sample
	for i := range 1500 {
		rows = append(rows, sample{ID: int64(i), City: p(strconv.Itoa(i)), Vector: make([]float64, 3)})
		if i == 1400 {
			rows = append(rows, rows[i], rows[i])
		}
	}
	m, _ := quick(t, table(rows), prepare.OneHotEncoder{Columns: []string{"city"}, Unknown: prepare.Shares})
	shares := m.(*prepare.OneHotModel).Shares[0]
	sum, some := 0.0, 0
	for i, share := range shares {
		sum += share
		if share > 0 {
			some++
		}
		if share > 1.0/1002 {
			require.Equal(t, "1400", m.(*prepare.OneHotModel).Values[0][i])
			require.Equal(t, 3.0/1002, share)
		}
	}
	require.Equal(t, 1000, some)
	require.InDelta(t, 1, sum, 1e-12)

	// An inconsistent model is refused.
	m.(*prepare.OneHotModel).Shares[0][7] = 2
	_, err := m.Encode()
	require.ErrorContains(t, err, `column "city" has a value of which the share is 2`)
	m.(*prepare.OneHotModel).Shares[0] = shares[:3]
	_, err = m.Encode()
	require.ErrorContains(t, err, `column "city" has 1500 values and 3 shares`)
	m.(*prepare.OneHotModel).Shares = nil
	_, err = m.Encode()
	require.ErrorContains(t, err, "there are 1 columns and shares of 0")
}
