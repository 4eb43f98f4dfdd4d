// Package forest trains random forests, extremely randomised trees and single decision
// trees, for classes of any type and number and for numbers.
//
// # Training and predicting in a job
//
//	made := forest.Train(rows, forest.Params{VectorCol: "features", LabelCol: "species", Task: forest.Classification, OOBScore: true})
//	guessed := forest.Predict(rows, made, forest.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the columns "prediction", which has the type of the labels, and "probability",
// with a value for each class in the order of Model.Classes. A regression has only
// "prediction". After the run the caller gets the model, uses it, saves it and loads it again:
//
//	m, err := forest.ModelOf(result, "model")
//	species := m.Classes.Values[int(m.Predict([]float64{5.1, 3.5, 1.4, 0.2}))]
//	fmt.Println(m.OutOfBag.Score, m.Importances())
//	err = m.Save("species.json")
//	m, err = forest.Load("species.json")
//
// A Model needs no job, and any number of goroutines may use it. Its Trees are an ensemble of
// package tree, which prints, draws and explains them:
//
//	m, err = forest.ModelOf(result, "tree") // of Params{Method: forest.SingleTree, …}
//	err = m.Trees.WriteText(os.Stdout)
//	err = m.Trees.WriteSVG(file, 0, tree.DrawOptions{})
//
// # What is computed
//
// Each tree grows on rows drawn for it. At each node some features are drawn. RandomForest
// takes the best split among all splits by these features, ExtraTrees the best among one random
// split of each; the Criterion decides. Leaves have the weighted shares of the classes, or the
// weighted mean of the labels. A forest gives the mean over its trees. The predicted class is
// the one with the largest mean share, as in scikit-learn, and not the majority vote of the
// trees.
//
// Numbers are first cut into at most 255 bins, which are computed from all rows. A threshold
// lies midway between the values of the node that it parts. Missing values are a bin of their
// own: they go to the side with the better split, and where training had none, to the side with
// more rows. Infinities lie beyond all other values. A feature may have 65,535 categories.
// These are parted by the order of their means, or of the shares of each class; categories that
// training has not seen go where missing values go. Of equal splits the one by the feature
// drawn first is taken, so that features with the same information share their importance. A
// SingleTree takes the one by the lower feature.
//
// Trees grow until leaves are pure, as in scikit-learn, unless MaxDepth, MaxLeaves,
// MinSamplesLeaf, MinSamplesSplit or MinSplitGain stop them before. With noisy labels a tree
// then has nearly as many leaves as rows were drawn. A node takes some 50 bytes of the model's
// file, more with classes. A file has at most 2 GiB: training ends with an error once the trees
// so far show that the file will be too large.
//
// A bootstrap draws each row a number of times that has the Poisson distribution. Rows that a
// tree did not draw measure the forest, see OutOfBag. PredictOutOfBag predicts each row by the
// trees that did not draw it. If there are few rows, or a small share of them is drawn, a tree
// may draw no row, or only rows of weight 0. It then takes all rows of weight above 0, once
// each, and leaves none out.
//
// # The same bits
//
// Weights and labels become integers on scales that are powers of two, so sums over rows are
// exact in any order. Small whole numbers are kept exactly; others keep at least 27 bits of the
// largest weight and some 40 of the largest label. A draw depends on the seed and on its place.
// For a row, the place is the tree, the shard and the row's number in it; for a node, the tree
// and the path from its root. So a model is a function of the rows, their order, the number of
// shards and the parameters. Parallelism, batches, memory and processors change none of its
// bits. A forest to which trees are added is the same as one that is trained at once.
//
// # How trees grow
//
// A superstep grows a batch of trees. Where the binned rows of the job fit Params.Memory, every
// subtask has a copy of them, a byte for each feature, and grows every NumTask-th tree by
// itself. Otherwise rows stay where they are, and all subtasks grow the same trees. Nodes of
// many rows are split by the sums of all subtasks. The rows of a node of few rows are sent to
// one subtask, which grows the subtree below it (as PLANET does: Panda, Herbach, Basu and
// Bayardo, "PLANET: Massively Parallel Learning of Tree Ensembles with MapReduce", VLDB 2009).
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their bins, and the queue "forest". Of
// each tree, subtask 0 keeps only the text for the model's file, which takes less memory than
// nodes. Files: params.go and enums.go the parameters; train.go the queue, kept.go its
// checkpointed state, finish.go its model; table.go, gather.go and draws.go the rows of a tree;
// score.go, hist.go and split.go the split of a node; build.go a tree of all rows; levels.go
// and subtrees.go a tree among subtasks, codec.go how trees travel; oob.go and oobpredict.go
// rows out of the bag; model.go, file.go, predict.go and batches.go the model.
package forest
