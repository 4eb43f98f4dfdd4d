package operators

import (
	"testing"

	"github.com/superstep-ml/superstep/engine"
)

func TestCollectMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		Collect(b, "rows", nil)
		return nil
	}, "collect_test.go:", `Collect "rows": the dataset is nil`)
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		Collect(nil, "rows", nil)
		return nil
	}, "collect_test.go:", "the builder is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		Collect(b, "", FromSlice(b, []int{1}))
		return nil
	}, "collect_test.go:", "name")
	var kept *engine.Dataset
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		FromSlice(b, []int{1})
		if kept == nil {
			_ = runError(t, func(other *engine.Builder) *engine.Dataset {
				kept = FromSlice(other, []int{1})
				Collect(other, "", kept)
				return nil
			})
		}
		Collect(b, "rows", kept)
		return nil
	}, "belongs to another job")
}
