// Package grow grows histogram trees within a queue, level by level or leaf by leaf, over
// the binned rows of all subtasks.
//
// A Grower is the description of the growth; it adds stages to a queue. A State is what one
// subtask has of it. One superstep grows a batch of trees, those of a boosting round.
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
//	q.Add(func(ctx *comqueue.ComContext) error {       // behind them
//		s := g.State(ctx)
//		t := s.Tree(0)                             // *tree.Tree, the same on every subtask
//		s.EachLeaf(0, func(node int32, rows []int32) {})
//		leaf = s.Leaves(0, leaf)                   // of each row, in the bag or not
//		leaf = s.Route(0, evaluation, leaf)        // of the rows of another *bins.Data
//		return nil
//	})
//
// A batch begins anew: a State has nothing from one superstep to the next that makes a
// difference, so that one may be opened before any. A Walker sends rows down the trees of
// batches before, which need not have been this subtask's.
//
// # What makes the bits
//
// Gradients and hessians become integers on power-of-two scales that follow from the
// largest of all rows; sums of integers are exact in any order. A split is chosen by its
// gain, then the lower feature, the lower bin, and missing values left before right. So a
// tree depends on the multiset of rows alone: not on parallelism, shards or timing, nor on
// the order in which leaves are looked at.
package grow
