package operators

import "github.com/superstep-ml/superstep/engine"

// Rebalance distributes rows evenly over the S shards: row j of shard s is sent to shard (s+j)
// mod S. It is useful after a Filter or a skewed partitioning that has left some shards with
// many more rows than others.
func Rebalance(d *engine.Dataset) *engine.Dataset {
	const op = "Rebalance"
	return addExchange(op, d, engine.Port{Partitioner: engine.Rebalance})
}

// addExchange adds an operator that emits the rows of the port unchanged.
func addExchange(op string, d *engine.Dataset, port engine.Port) *engine.Dataset {
	b := builderOf(op, d)
	port.From = d
	if port.Use.Passes == nil {
		port.Use = keeps(d, port.Use.Reads...)
	}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   d.Schema(),
		Inputs:   []engine.Port{port},
		Operator: func() engine.Operator { return forwarder{} },
	})
}
