// Package bins bins training data for trees: each feature value becomes the number of its bin,
// most often in one byte. The cuts between bins follow from the values of all rows.
//
//	t, err := bins.Check("gbdt.Train", points, bins.Columns{Vector: "features", Label: "y"}, bins.NumberLabel, bins.Options{})
//	e, err := t.Other("held out", others, false)    // binned by the cuts of t
//	q := e.Init(t.Init(comqueue.New(b, "train")))   // the rows, and the facts about them
//	...
//	data, err := t.Open(ctx)                        // in a stage: the binned rows of the subtask
//	byte := data.Blocks[0].Bins[row*data.Blocks[0].Stride+column]
//
// # In the job
//
// Check adds an operator that checks the rows and packs those of each shard, and a queue of
// one superstep, named after the algorithm, that finds the cuts and the layout. Open bins
// the packed rows in the queue that trains. So a subtask holds the packed rows and the bins.
// Packed values are float32, by feature; sparse rows take 8 bytes an entry. If the rows of a
// shard are one float64 matrix in memory, as from operators.FromRecords, they are used in
// place, and only the bins are held.
//
// With a group column, rows are first partitioned among shards by a hash of the group. There
// the rows of a group are brought together in the order in which they came, and groups are
// ordered by their first rows. The result is a function of the data and the number of shards
// alone.
//
// # Values
//
// A feature is rounded to float32 ([Single]), in training as in prediction, so that both
// compare the same values with the same thresholds. Null and NaN are missing. So are values
// absent from sparse rows, unless Options.AbsentIsZero is set. Infinities and values beyond
// float32 are clamped to the largest float32 of their sign. Every threshold is above the
// smallest float32 and at most the largest, so clamped values go the way of infinities. −0 is
// 0.
//
// # Cuts
//
// Up to [MaxBins] distinct values have a bin each, cut in the middle between them. Otherwise
// the bins have about equal weights, and values heavier than that have bins of their own;
// cuts.go has the definition. The cuts are exact quantiles, not those of a sketch. Each subtask
// sorts its values, a group of features at a time. Quantiles over all subtasks are then found
// by a radix selection that sums counts (see finder and search). Counts and weights are
// integers, so the cuts are a function of the multiset of (value, weight), where weights are
// rounded to 2^−32 of the largest one. Rows of weight 0 make no cut.
//
// # Categories
//
// Text columns are categorical, and so are integer columns that are named as categorical. Each
// category in a row with a weight has a bin, in the order of the texts or codes; there may be
// [MaxCategories]. Categories that training has not seen are missing values; the sets of
// [Feature.Set] treat them so in prediction.
//
// # Where bins are stored
//
// A histogram has a slot for each bin of each feature. A feature of dense rows has a byte
// column of its own, and the byte is the bin. A [Block] has up to 32 such columns side by side.
// A feature of more than 255 categories has a column of two bytes instead, outside the blocks.
// Features that cannot split rows, constant or always missing, have no column. In sparse rows
// the bin of absent values is implicit, not stored. Sparse features share a column ([Column])
// if no row stores two of them and together they are stored in at least a quarter of the rows.
// Other sparse features are stored as slots, in [Sparse].
package bins
