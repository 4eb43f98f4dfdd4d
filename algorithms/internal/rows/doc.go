// Package rows prepares training data for algorithms. It checks the features, labels, weights
// and offsets of a dataset. It computes the facts about all rows that training needs before it
// begins, such as means and classes. It opens the rows of each shard as matrices.
//
//	t, err := rows.Check("logistic.Train", points, rows.Columns{Vector: "features", Label: "y"}, rows.ClassLabel)
//	q := t.Init(comqueue.New(b, "train"))       // the rows, and the facts about all of them
//	...
//	data, err := t.Open(ctx)                    // in a stage, once for each subtask
//	block := data.Block(shard)                  // views: n rows, d features, labels, weights
//
// # Columns
//
// A [Column] states the conditions on a column: its name, its type and the range of its values.
// It also states what messages call these values. A [Checker] reads each batch once. It refuses
// unusable rows or leaves them out, and converts columns to the type in which they are used.
// Models of trees, k-means and evaluations do not use the matrices of this package, but they
// use its Checker.
//
// # In the job
//
// Check adds up to three things to a job: the operator Vectorize if number columns are named,
// an operator that checks rows and joins the rows of a shard into one batch, and a queue of one
// superstep that computes the facts. The queue is named after the algorithm. Only one copy of
// the batches is held in memory, however many queues read it, and blocks are views of the
// batches. Training that needs only the facts can use the Facts dataset alone.
//
// # Facts
//
// Means and deviations are weighted. They are computed in two passes. The second pass sums the
// deviations from the means that the first pass computed, so that the results are accurate even
// for features whose mean is large compared with their deviation. The sums of the shards are
// reduced in the order of a tree over the shards, which gives the same bits at any parallelism.
// Statistics are computed for one window of columns after the other, so that buffers stay
// short. If sparse rows declare very many features of which few occur, the features that occur
// are renumbered from 0, and Facts.Columns lists them.
//
// # What is refused
//
// The package refuses nulls, NaN and infinities. With Skip, it instead leaves out the rows that
// have such values, and counts them. It refuses negative weights, censoring other than 0 and 1,
// vectors of different lengths, and sparse indices that are out of range, repeated or out of
// order. It also refuses a dataset without rows, with a total weight of 0 or with too many
// classes, or with values whose squares exceed float64. Messages about a row name the column
// and the number of the row in its shard. Rows are numbered as in the dataset that is passed to
// Check. However, with Skip and Columns.Features, rows with a null in one of these columns are
// removed before rows are numbered.
package rows
