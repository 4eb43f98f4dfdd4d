// Package grow grows decision trees from histograms of gradients, within a queue and over the
// binned rows of all subtasks. Trees grow level by level or leaf by leaf.
//
// A Grower holds the parameters and adds the stages to a queue. A State holds the growing trees
// on one subtask. One superstep grows a batch of trees, such as the trees of a boosting round.
//
//	g := grow.New(params)                              // when the job is built
//
//	q.Add(func(ctx *comqueue.ComContext) error {       // before the stages, each superstep
//		s, ok := g.Lookup(ctx)
//		if !ok {                                   // first superstep of this subtask
//			s, err = g.Open(ctx, data)         // data: *bins.Data of this subtask
//		}
//		s.Begin(first, trees)
//		s.Target(k).Set(from, gradients, hessians) // for all rows, in pieces
//		s.SetRows(tree, rows)                      // if the tree grows on a sample of the rows
//		return nil
//	})
//	for _, stage := range g.Stages() {
//		q.Add(stage)
//	}
//	q.Add(func(ctx *comqueue.ComContext) error {       // after the stages
//		s := g.State(ctx)
//		t := s.Tree(0)                             // *tree.Tree, the same on every subtask
//		s.EachLeaf(0, func(node int32, rows []int32) {})
//		leaf = s.Leaves(0, leaf)                   // the leaf of each row, sampled or not
//		leaf = s.Route(0, evaluation, leaf)        // the leaf of each row of another *bins.Data
//		return nil
//	})
//
// Batches are independent. The State of one superstep does not affect the next superstep, so a
// subtask may replace its State by a new one, from Open, before any superstep. A Walker routes
// rows through trees of earlier batches, including trees that this subtask did not help to
// grow.
//
// # Determinism
//
// Gradients and hessians are divided by a power of two and rounded to integers. The power of
// two is computed from the largest absolute value over all rows. Sums of integers are exact in
// any order. Among the splits of a node, the split of the largest gain is chosen; ties are
// broken by the lowest feature, then by the lowest bin, then in favour of missing values on the
// left. So a tree depends only on the multiset of rows, and not on parallelism, shards, timing
// or the order in which leaves are searched.
package grow
