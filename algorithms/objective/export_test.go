package objective

import (
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
)

// OpenWide does what Open does, but every shard has a buffer for all parameters, even if its
// rows have few of the features.
func (l Linear) OpenWide(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	data, err := l.Table.Open(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	return l.over(ctx, data)
}
