package bins_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

func TestTooManyCategoriesAndClasses(t *testing.T) {
	words, numbers := make([]string, 1<<16+2), make([]float64, 100_001)
	for i := range words {
		words[i] = strconv.Itoa(i)
	}
	codes := make([]int64, bins.MaxCategory+1) // all possible codes: one more than MaxCategories
	for i := range codes {
		codes[i] = int64(i)
	}
	for i := range numbers {
		numbers[i] = float64(i)
	}
	for _, shards := range []int{1, 2} { // a single shard exceeds the limit; of two shards, only both together do
		_, err := trial.Try(t, func(b *engine.Builder) {
			rec := columnsRecord([]string{"word"}, words)
			engine.Collect(check(b, dataset(rec)(b), bins.Columns{Features: []string{"word"}}, bins.NoLabel, bins.Options{}), "seen")
		}, engine.Shards(shards))
		require.ErrorContains(t, err, `column "word": there are more than 65535 categories`)
		_, err = trial.Try(t, func(b *engine.Builder) {
			rec := columnsRecord([]string{"code"}, codes)
			engine.Collect(check(b, dataset(rec)(b), bins.Columns{Features: []string{"code"}, Categorical: []string{"code"}}, bins.NoLabel, bins.Options{}), "seen")
		}, engine.Shards(shards))
		require.ErrorContains(t, err, `column "code": there are more than 65535 categories`)
		_, err = trial.Try(t, func(b *engine.Builder) {
			rec := columnsRecord([]string{"y", "x"}, numbers, numbers)
			engine.Collect(check(b, dataset(rec)(b), bins.Columns{Features: []string{"x"}, Label: "y"}, bins.ClassLabel, bins.Options{}), "seen")
		}, engine.Shards(shards))
		require.ErrorContains(t, err, `column "y": the label has more than 100000 distinct values`)
	}
}
