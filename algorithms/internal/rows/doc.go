// Package rows is how algorithms see training data: it checks features, labels,
// weights and offsets of a dataset, learns what training needs to know of all rows
// beforehand, and opens the rows of each shard as matrices.
//
//	t, err := rows.Check("logistic.Train", points, rows.Columns{Vector: "features", Label: "y"}, rows.ClassLabel)
//	q := t.Init(comqueue.New(b, "train"))       // the rows, and the facts about all of them
//	...
//	data, err := t.Open(ctx)                    // in a stage, once for each subtask
//	block := data.Block(shard)                  // views: n rows, d features, labels, weights
package rows
