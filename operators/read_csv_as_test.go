package operators_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type reading struct {
	Station string
	Celsius float64
	Note    *string
	At      [2]float64
}

func readAs[T any](text string, o operators.CSVOptions, p int) ([]T, error) {
	o.FS = fstest.MapFS{"x.csv": &fstest.MapFile{Data: []byte(text)}}
	job := engine.Define("read", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(operators.ReadCSVAs[T](b, "x.csv", o), "rows")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(p))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return engine.Rows[T](r, "rows")
}

// TestReadCSVAs requires that values get the types of the fields, even whole numbers in float64
// columns and digits in text columns, and that columns without a field are left out, whatever
// their position.
func TestReadCSVAs(t *testing.T) {
	dry := "dry"
	want := []reading{{"007", 12, nil, [2]float64{1, 2}}, {"008", -3, &dry, [2]float64{3, 4}}}
	for p := 1; p <= 3; p += 2 {
		got, err := readAs[reading]("celsius,other,at,station,note\n12,x,[1 2],007,\n-3,y,[3 4],008,dry\n", operators.CSVOptions{Header: true}, p)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = readAs[reading]("007;12;;[1 2]\n008;-3;dry;[3 4]\n", operators.CSVOptions{Delimiter: ';'}, p)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	numbers, err := readAs[float64]("1\n2.5\n", operators.CSVOptions{}, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2.5}, numbers)
	none, err := readAs[reading]("station,celsius,note,at\n", operators.CSVOptions{Header: true}, 2)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestReadCSVAsRefuses(t *testing.T) {
	header := operators.CSVOptions{Header: true}
	for _, c := range []struct {
		text string
		o    operators.CSVOptions
		want []string
	}{
		{"station,celsius,note,at\na,1,,[1 2]\nb,warm,,[1 2]\n", header, []string{"x.csv:3", "celsius", "warm"}},
		{"station,celsius,note,at\na,,,[1 2]\n", header, []string{"x.csv:2", "celsius"}},
		{"station,note,at\na,,[1 2]\n", header, []string{"read_csv_as_test.go:", `"celsius"`}},
		{"", operators.CSVOptions{Types: map[string]string{"celsius": "int64"}}, []string{"read_csv_as_test.go:", "ReadCSVAs: the fields of the row say which columns"}},
		{"", operators.CSVOptions{Select: []string{"celsius"}}, []string{"leave out Columns, Types"}},
	} {
		_, err := readAs[reading](c.text, c.o, 2)
		for _, want := range c.want {
			require.ErrorContains(t, err, want, c.text)
		}
	}
	_, err := readAs[struct{ F func() }]("f\n", header, 1)
	require.ErrorContains(t, err, "ReadCSVAs")
}
