// Package forest trains random forests, extremely randomised trees and single decision
// trees, for classes of any type and number and for numbers.
//
// # Training and predicting in a job
//
//	made := forest.Train(rows, forest.Params{VectorCol: "features", LabelCol: "species", Task: forest.Classification, OOBScore: true})
//	guessed := forest.Predict(rows, made, forest.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the columns "prediction", of the type of the labels, and "probability", of
// each class in the order of Model.Classes; of a regression "prediction" alone. After the run
// the model is brought to the caller, used, kept and read again:
//
//	m, err := forest.ModelOf(result, "model")
//	species := m.Classes.Values[int(m.Predict([]float64{5.1, 3.5, 1.4, 0.2}))]
//	fmt.Println(m.OutOfBag.Score, m.Importances())
//	err = m.Save("species.json")
//	m, err = forest.Load("species.json")
//
// A Model needs no job, and any number of goroutines may use one. Its Trees are an ensemble
// of package tree, which prints, draws and explains them:
//
//	m, err = forest.ModelOf(result, "tree") // of Params{Method: forest.SingleTree, …}
//	err = m.Trees.WriteText(os.Stdout)
//	err = m.Trees.WriteSVG(file, 0, tree.DrawOptions{})
//
// # What is computed
//
// Each tree grows on rows drawn for it, and splits its nodes by the best, for the Criterion,
// of some features drawn for the node (RandomForest), or of one random split of each
// (ExtraTrees). Leaves have the weighted shares of the classes, or the weighted mean of the
// labels. A forest gives the mean over its trees; the predicted class is the one of the
// largest mean share, as in scikit-learn, and not the vote of most trees.
//
// Numbers are cut into at most 255 bins beforehand, by all rows; a threshold lies midway
// between the values of the node that it parts. Missing values are a bin of their own: they go
// where they are the most use, and where training had none, where more rows went. Infinities
// lie beyond all other values. Categories, of which a feature may have 65,535, are parted by
// the order of their means, or of the shares of each class; those that training has not seen go
// where missing values go. Of equal splits the one by the feature that was drawn first is
// taken, so that features that say the same share what they are worth; of a SingleTree the one
// by the lower feature.
//
// Trees grow until leaves are pure, as in scikit-learn, unless MaxDepth, MaxLeaves,
// MinSamplesLeaf, MinSamplesSplit or MinSplitGain end it before. Those of noisy labels then have
// nearly as many leaves as rows were drawn, and a node takes some 50 bytes of the model's file,
// more with its classes. A file has 2 GiB at most: training ends with an error once the trees so
// far tell that theirs will not fit.
//
// A bootstrap draws each row a number of times that has the Poisson distribution. Rows that a
// tree did not draw measure the forest, see OutOfBag, and PredictOutOfBag gives each row what
// the trees that did not draw it predict. Of few rows, or of a small share of them,
// a tree may draw none, or only such as weigh nothing: it then takes all rows of weight above
// 0, once each, and leaves none out.
//
// # The same bits
//
// Weights and labels become integers on scales that are powers of two, so that sums over rows
// are exact in any order: small whole numbers stay what they are, others keep at least 27 bits
// of the largest weight and some 40 of the largest label. Draws are functions of the seed and
// of the place of what is drawn: of a row, the tree, the shard and the row's number in it; at a
// node, the tree and the way from its root. So a model is a function of the rows, their order,
// the number of shards and the parameters. Parallelism, batches, memory and processors change
// none of its bits, and a forest to which trees are added is the one trained at once.
//
// # How trees grow
//
// A superstep grows a batch of trees. Where the binned rows of the job fit Params.Memory,
// every subtask has a copy of them, a byte for each feature, and grows every NumTask-th tree by
// itself. Otherwise rows stay where they are, and all subtasks grow the same trees: nodes of
// many rows are split by the sums of all subtasks, nodes of few rows send these to one
// subtask, which grows what is below (as PLANET does: Panda, Herbach, Basu and Bayardo,
// "PLANET: Massively Parallel Learning of Tree Ensembles with MapReduce", VLDB 2009).
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their bins, and the queue "forest".
// Subtask 0 keeps of a tree its text in the model's file, which takes less memory than nodes.
// Files: params.go and enums.go; train.go the queue, kept.go what of it is kept, finish.go its
// model; table.go, gather.go and draws.go the rows of a tree; score.go, hist.go and split.go
// the split of a node; build.go a tree of all rows; levels.go and subtrees.go a tree among
// subtasks, codec.go how trees travel; oob.go and oobpredict.go rows out of the bag; model.go,
// file.go, predict.go and batches.go the model.
package forest
