// Package grow grows histogram trees within a queue, level by level or leaf by leaf, over
// the binned rows of all subtasks.
//
// A Grower has the parameters and adds the stages to a queue. A State is the state of a
// subtask. One superstep grows a batch of trees, such as those of a boosting round.
//
//	g := grow.New(params)                              // when the job is built
//
//	q.Add(func(ctx *comqueue.ComContext) error {       // before the stages, each superstep
//		s, ok := g.Lookup(ctx)
//		if !ok {                                   // the first, and where the subtask joins
//			s, err = g.Open(ctx, data)         // data: *bins.Data of this subtask
//		}
//		s.Begin(first, trees)
//		s.Target(k).Set(from, gradients, hessians) // for all rows, in pieces
//		s.SetRows(tree, rows)                      // where not all rows are in the bag
//		return nil
//	})
//	for _, stage := range g.Stages() {
//		q.Add(stage)
//	}
//	q.Add(func(ctx *comqueue.ComContext) error {       // after them
//		s := g.State(ctx)
//		t := s.Tree(0)                             // *tree.Tree, the same on every subtask
//		s.EachLeaf(0, func(node int32, rows []int32) {})
//		leaf = s.Leaves(0, leaf)                   // of each row, in the bag or not
//		leaf = s.Route(0, evaluation, leaf)        // of the rows of another *bins.Data
//		return nil
//	})
//
// Batches are independent: nothing in a State affects the next superstep, so it may be opened
// before any superstep. A Walker routes rows through trees of earlier batches, also those that
// the subtask did not grow.
//
// # Determinism
//
// Gradients and hessians are rounded to integers on power-of-two scales, which follow from the
// largest absolute value over all rows. Sums of integers are exact in any order. Among splits
// of a node the largest gain is chosen, then the lowest feature, the lowest bin, and missing
// values on the left. So a tree depends on the multiset of rows alone: not on parallelism,
// shards or timing, nor on the order in which leaves are searched.
package grow
