// Package forest trains random forests, extremely randomised trees and single decision trees,
// for regression and for classification. Classification has any number of classes, and labels
// of any type.
//
// # Training and predicting in a job
//
//	made := forest.Train(rows, forest.Params{VectorCol: "features", LabelCol: "species", Task: forest.Classification, OOBScore: true})
//	guessed := forest.Predict(rows, made, forest.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the columns "prediction", which has the type of the labels, and "probability",
// with a value for each class in the order of Model.Classes. A regression has only
// "prediction". After the run the caller can get the model, use it, save it and load it again:
//
//	m, err := forest.ModelOf(result, "model")
//	species := m.Classes.Values[int(m.Predict([]float64{5.1, 3.5, 1.4, 0.2}))]
//	fmt.Println(m.OutOfBag.Score, m.Importances())
//	err = m.Save("species.json")
//	m, err = forest.Load("species.json")
//
// A Model can be used without a job, by any number of goroutines. Its field Trees is an
// ensemble of package tree, which can print, draw and explain trees:
//
//	m, err = forest.ModelOf(result, "tree") // of Params{Method: forest.SingleTree, …}
//	err = m.Trees.WriteText(os.Stdout)
//	err = m.Trees.WriteSVG(file, 0, tree.DrawOptions{})
//
// # What is computed
//
// Each tree is grown on rows that are drawn for it. At each node some features are drawn.
// RandomForest takes the best of all splits by these features. ExtraTrees makes one random
// split by each of these features and takes the best. Criterion defines which split is best.
// Leaves have the weighted shares of the classes, or the weighted mean of the labels. The
// prediction of a forest is the mean over its trees. The predicted class is the one with the
// largest mean share, as in scikit-learn, and not the majority vote of the trees.
//
// Numeric features are first divided into at most 255 bins, which are computed from all rows. A
// threshold lies midway between the two neighbouring values of the node that it separates.
// Missing values have their own bin. They go to the side that gives the better split or, if the
// node had none in training, to the side with the larger weight of rows. Infinities lie beyond
// all other values. A feature may have 65,535 categories. To split a node, the categories are
// sorted by their mean labels, or by the share of each class in turn, and the sorted list is
// cut in two. Categories that training has not seen go where missing values go. Of equally good
// splits, the split by the feature that was drawn first is taken, so that features with the
// same information share their importance. A SingleTree takes the split by the feature with the
// lower number.
//
// Trees grow until leaves are pure, as in scikit-learn, unless MaxDepth, MaxLeaves,
// MinSamplesLeaf, MinSamplesSplit or MinSplitGain stop them earlier. If nothing stops it, a
// tree on noisy labels has nearly as many leaves as rows were drawn for it. A node takes about
// 50 bytes in the model's file, and more with classes. A file has at most 2 GiB. Training ends
// with an error as soon as the size of the trees made so far shows that the file will be too
// large.
//
// A bootstrap draws each row a number of times that has the Poisson distribution. The forest is
// measured on the rows that trees did not draw; see OutOfBag. PredictOutOfBag predicts each row
// with only the trees that did not draw it. If there are few rows, or a small share of them is
// drawn, a tree may draw no row, or only rows of weight 0. The tree then uses all rows of
// weight above 0, once each, so it has no rows out of the bag.
//
// # The same bits
//
// Weights and labels become integers on scales that are powers of two, so sums over rows are
// exact in any order. Small whole numbers are kept exactly; other numbers are rounded to a unit
// such that the largest weight keeps at least 27 bits and the largest label about 40. The draws
// for a row depend only on the seed, the tree, the shard and the row's number in the shard. The
// draws for a node depend only on the seed, the tree and the path from the root to the node. So
// a model depends only on the rows, their order, the number of shards and the parameters.
// Parallelism, batch sizes, memory and processors do not change any of its bits. A forest to
// which trees are added equals a forest that is trained at once.
//
// # How trees grow
//
// A superstep grows a batch of trees. If the binned rows of the job fit Params.Memory, every
// subtask has a copy of them, with one byte for each feature, and grows every NumTask-th tree
// by itself. Otherwise each subtask keeps its own rows, and all subtasks grow the same trees
// together. A node of many rows is split by sums over the rows of all subtasks. The rows of a
// node of few rows are sent to one subtask, which grows the subtree below the node (as PLANET
// does: Panda, Herbach, Basu and Bayardo, "PLANET: Massively Parallel Learning of Tree
// Ensembles with MapReduce", VLDB 2009).
//
// # The plan
//
// Train adds the operator that checks rows, the queue that bins them, and the queue "forest".
// Subtask 0 does not keep the nodes of finished trees, but only their text in the model's file,
// which takes less memory. The files of the package are: params.go and enums.go for the
// parameters; train.go for the queue, kept.go for its checkpointed state, and finish.go for the
// model that it returns; table.go, gather.go and draws.go for the rows of a tree; score.go,
// hist.go and split.go for the split of a node; build.go for a tree that one subtask grows;
// levels.go and subtrees.go for a tree that all subtasks grow together, and codec.go for
// sending trees; oob.go and oobpredict.go for rows out of the bag; model.go, file.go,
// predict.go and batches.go for the model.
package forest
