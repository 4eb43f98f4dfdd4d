package gbdt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// citizen is a row whose label is the sum of a function of its city and a function of its age.
type citizen struct {
	City  string  `column:"city"`
	Code  int64   `column:"code"`
	Age   float64 `column:"age"`
	Label float64 `column:"label"`
}

// citizens returns n rows of the given number of cities, whose codes are distributed over the
// whole range of codes.
func citizens(seed uint64, n, cities int) []citizen {
	r := sharding.NewRandom(seed, "citizens", 0, 0)
	rows := make([]citizen, n)
	for i := range rows {
		city := int(float64(cities) * r.Float64() * r.Float64()) // the distribution is skewed: some cities have many rows
		age := 100 * r.Float64()
		rows[i] = citizen{fmt.Sprintf("city %d", city), int64(city * 7919 % 65521), age, worth(city) + age/50 + 0.1*r.NormFloat64()}
	}
	return rows
}

// worth returns the city's part of the label, between −1 and 1, without a trend in the codes.
func worth(city int) float64 { return math.Sin(float64(city * city)) }

// TestManyCategoriesGoOn requires that a model keeps its categories when it is continued on
// rows of other categories.
func TestManyCategoriesGoOn(t *testing.T) {
	p := gbdt.Params{FeatureCols: []string{"city", "age"}, LabelCol: "label", NumTrees: 5}
	first := trainRows(t, citizens(1, 1500, 300), p)
	p.Start = first
	more := citizens(3, 1500, 500)
	second := trainRows(t, more, p)
	require.Greater(t, len(second.Ensemble.Categories[0]), 300)
	require.Equal(t, first.Ensemble.Categories[0], second.Ensemble.Categories[0][:len(first.Ensemble.Categories[0])])
	for _, c := range more[:100] {
		before, after := []float64{first.Code(0, c.City), c.Age}, []float64{second.Code(0, c.City), c.Age}
		if before[0] >= 0 {
			require.Equal(t, before, after)
		}
		start := *second.Ensemble
		start.Trees = start.Trees[:len(first.Ensemble.Trees)]
		require.Equal(t, first.Ensemble.Trees[0].Leaf(before, true), start.Trees[0].Leaf(after, true))
	}
	require.NoError(t, second.Ensemble.Validate())
}
