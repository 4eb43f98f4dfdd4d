// Package bins bins training data for trees: each feature value is replaced by the number of
// its bin, which in most cases takes one byte. The cuts between bins are computed from the
// values of all rows.
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
// Check adds two things to a job: an operator that checks the rows and packs the rows of each
// shard, and a queue of one superstep that finds the cuts and the layout. The queue is named
// after the algorithm. The function Open bins the packed rows, in the queue that trains. So a
// subtask holds both the packed rows and the bins in memory. Packed values are stored by feature,
// as float32; sparse rows take 8 bytes per entry. If the rows of a shard are one float64 matrix in
// memory, as from operators.FromRecords, they are not copied, and only the bins take additional
// memory.
//
// With a group column, rows are first partitioned among shards by a hash of the group. Within a
// shard, the rows of each group are then made adjacent, in the order in which they arrived, and
// groups are ordered by their first rows. The result depends only on the data and the number of
// shards.
//
// # Values
//
// Feature values are rounded to float32 ([Single]) in training and in prediction, so that
// training and prediction compare the same values with the same thresholds. Null and NaN are
// missing values. Values absent from sparse rows are missing too, unless Options.AbsentIsZero
// is set. Infinities and values beyond the range of float32 are clamped to the largest float32
// of their sign. Every threshold is above −math.MaxFloat32 and at most math.MaxFloat32, so a
// clamped value goes to the same side as the infinity of its sign. −0 counts as 0.
//
// # Cuts
//
// If a feature has at most Options.MaxBins distinct values, each value has its own bin, and the
// cuts are midpoints between neighbouring values. Otherwise the bins have about equal weights,
// and a value that is heavier than such a bin has its own bin; cuts.go has the definition. The
// cuts are exact quantiles, not approximations from a sketch. Each subtask sorts its values,
// for a group of features at a time. A radix selection then finds the quantiles over all
// subtasks from sums of counts (see finder and search). Counts and weights are integers, so the
// cuts are a function of the multiset of (value, weight), where weights are rounded to 2^−32 of
// the largest weight. Rows of weight 0 do not influence cuts.
//
// # Categories
//
// Text columns are categorical, and so are integer columns that are named as categorical. Each
// category that occurs in a row of positive weight has a bin. Bins are in the order of the
// texts or codes. There may be at most [MaxCategories] categories. Categories that training has
// not seen count as missing values, in prediction too (see [Feature.Set]).
//
// # Where bins are stored
//
// A histogram has a slot for each stored bin of each feature. A feature of dense rows has its
// own column of bytes, where the byte is the bin. A [Block] has up to 32 columns of bytes,
// stored row by row. A feature of more than 255 categories has a column of two bytes instead,
// outside the blocks. Features that cannot split rows, constant or always missing, have no
// column. For sparse rows, the bin of absent values is implicit: it is not stored. Several
// sparse features can share a column ([Column]) if no row stores two of them. A column is used
// if at least a quarter of the rows store something in it. Other sparse features are stored in
// [Sparse], as lists of slots.
package bins
