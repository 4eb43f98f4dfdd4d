// Package rows prepares training data for algorithms. It checks features, labels, weights and
// offsets of a dataset, computes the facts about all rows that training needs beforehand, and
// opens the rows of each shard as matrices.
//
//	t, err := rows.Check("logistic.Train", points, rows.Columns{Vector: "features", Label: "y"}, rows.ClassLabel)
//	q := t.Init(comqueue.New(b, "train"))       // the rows, and the facts about all of them
//	...
//	data, err := t.Open(ctx)                    // in a stage, once for each subtask
//	block := data.Block(shard)                  // views: n rows, d features, labels, weights
//
// # Columns
//
// A [Column] says what a column must be: its name, its type, the range of its values, and what
// messages call them. A [Checker] goes over each batch once. It refuses rows or leaves them
// out, and converts columns that are used in another type. Trees, k-means and evaluations hold
// their rows in ways of their own, but use the same Checker.
//
// # In the job
//
// Check adds three things: a Vectorize where number columns are named, an operator that checks
// rows and joins those of a shard into one batch, and a queue of one superstep, named after the
// algorithm, for the facts. The batches are held once, however many queues read them, and
// blocks are views of them. Where training needs nothing but the facts, the Facts dataset alone
// is enough.
//
// # Facts
//
// Means and deviations are weighted. They take two passes, the second with deviations from the
// means of the first, so that they are accurate to the last digits for features far from 0. The
// sums of the shards are folded up the tree over shards, which gives the same bits at any
// parallelism. Buffers are at most as long as a window of columns. If sparse rows declare very
// many features and few occur, the features are renumbered: Facts.Columns has those that occur.
//
// # What is refused
//
// Nulls, NaN and infinities (or their rows are skipped and counted), negative weights,
// censoring other than 0 and 1, vectors of different lengths, sparse indices that are out of
// range, repeated or out of order, no rows, no weight, too many classes, values whose squares
// exceed float64. Messages tell the row of the shard and the column. Rows are numbered as in
// the dataset that is checked. With Skip, rows with a null in a number column are left out
// before they are numbered.
package rows
