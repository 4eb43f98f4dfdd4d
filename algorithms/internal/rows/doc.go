// Package rows is how algorithms see training data: it checks features, labels,
// weights and offsets of a dataset, learns what training needs to know of all rows
// beforehand, and opens the rows of each shard as matrices.
//
//	t, err := rows.Check("logistic.Train", points, rows.Columns{Vector: "features", Label: "y"}, rows.ClassLabel)
//	q := t.Init(comqueue.New(b, "train"))       // the rows, and the facts about all of them
//	...
//	data, err := t.Open(ctx)                    // in a stage, once for each subtask
//	block := data.Block(shard)                  // views: n rows, d features, labels, weights
//
// # Columns
//
// What a column must be is a [Column]: its name, its type, the range of its values, and what
// messages call them. A [Checker] goes over each batch once: it refuses rows or leaves them
// out, and converts what is used in another type. Trees, k-means and evaluations, which hold
// their rows in ways of their own, check them by it too.
//
// # In the job
//
// Check adds three things: a Vectorize where number columns are named, an operator that
// checks rows and joins those of a shard into one batch, and a queue of one superstep,
// named after the algorithm, for the facts. The batches are held once, however many queues
// read them, and blocks are views of them. Where training is to know of rows only what
// Facts say, its Facts dataset alone is enough.
//
// # Facts
//
// Means and deviations are weighted and take two passes, the second about the means of
// the first, so that they are good to the last digits for features far from 0. The sums of
// a shard are folded up the tree over shards: the same bits at any parallelism. Buffers are
// as long as a window of columns at most. Sparse rows that declare very many features of
// which few occur are renumbered: Facts.Columns has those that occur.
//
// # What is refused
//
// Nulls, NaN and infinities (or their rows are skipped and counted), negative weights,
// censoring other than 0 and 1, vectors of different lengths, sparse indices that are out
// of range, repeated or out of order, no rows, no weight, too many classes, values beyond
// the range of float64 when squared. Messages tell the row of the shard and the column. The
// row numbers are those of the checked dataset's input; with Skip and number columns, rows
// with a null in those are left out before.
package rows
