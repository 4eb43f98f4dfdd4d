// Package bins is how trees see training data: rows whose features are numbers of bins, a
// byte each, cut where the values of all rows say.
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
// the packed rows in the queue that trains. So what a subtask holds of its rows is what was
// packed, and the bins. Packed are float32, by feature, and of sparse rows 8 bytes an entry;
// but where the rows of a shard stand in memory as one float64 matrix, as those of
// operators.FromRecords do, they are used where they are, and nothing is held but the bins.
//
// With a group, rows first go to the shard that a hash of the group names. There its rows
// stand one behind the other in the order in which they came, and groups in that of their
// first rows: a function of the data and the number of shards alone.
//
// # Values
//
// A feature is rounded to float32 ([Single]), in training as in prediction, so that both
// compare the same values with the same thresholds. Null, NaN and, unless
// Options.AbsentIsZero, what a sparse row does not have are missing. An infinity counts as
// the largest float32, and so does what lies beyond it. No threshold is as small as the
// smallest nor larger than the largest float32, so these rows go the way that infinities
// go. −0 is 0.
//
// # Cuts
//
// Values up to [MaxBins] in number have a bin each, cut in the middle between them. Else the
// bins are to weigh about the same, and values that weigh more than that stand alone:
// cuts.go has the definition. They are exact quantiles and not those of a sketch. Values are
// sorted where they are, a group of features at a time, and positions are found across
// subtasks by a radix descent that adds up counts (see finder and search); counts and
// weights are integers, so the cuts are a function of the multiset of (value, weight), for
// weights rounded to the 2^32nd part of the largest one. Rows that weigh nothing make no cut.
//
// # Categories
//
// Columns of text are categorical, and those of integers that are named so. Each category
// of a row with a weight has a bin, in the order of the texts or codes; there may be
// [MaxCategories]. Those that training has not seen are taken as missing; [Feature.Set] makes
// sets by which they go that way in prediction.
//
// # Where bins stand
//
// A histogram has a slot for each bin of each feature. A feature of dense rows has a byte
// column of its own, whose byte is the bin: 32 columns at most side by side make a [Block].
// Features of more than 255 categories have a column of two bytes each instead, beside the
// blocks. Features that cannot split rows, constant or always missing, have none. Of sparse rows
// the bin of what is absent is not stored but implicit. Features of which no row stores
// two share a column ([Column]), if together they are stored in a quarter of the rows; what
// is thinner stands in [Sparse], as slots.
package bins
