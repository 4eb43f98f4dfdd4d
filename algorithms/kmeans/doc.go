// Package kmeans clusters points around K centres: k-means by Lloyd's algorithm, with Euclidean
// or cosine distance and row weights, over dense or sparse vectors.
//
// # Training and predicting in a job
//
//	points := operators.Vectorize(rows, "features", "sepal_length", "sepal_width")
//	model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 3})
//	clusters := kmeans.Predict(points, model, kmeans.PredictOptions{})
//	operators.WriteCSV(clusters, "clusters.csv", operators.CSVWriteOptions{})
//	engine.Collect(model, "model")
//
// Train returns a dataset of one row that holds the model; Predict adds the columns "cluster"
// and "distance" to the points. After the run the caller gets the model, uses it, saves it and
// loads it again:
//
//	m, err := kmeans.ModelOf(result, "model")
//	cluster, distance := m.Predict([]float64{5.1, 3.5})
//	err = m.Save("model.json")
//	m, err = kmeans.Load("model.json")
//
// A Model needs no job: its Predict may be called by any number of goroutines. In a job
// Model.Dataset makes it a dataset for Predict. Parameters are stages as package model defines
// them, and models are its models: they fit into pipelines and into model files of any kind.
//
// # Other trainings, the same model
//
// TrainMiniBatch reads a batch of rows in each superstep; it is for data where passes over all
// rows take too long. TrainBisecting cuts clusters in two until there are K; it is for large K.
// Both end with one pass over all rows that evaluates the centres.
//
// # What is computed
//
// Training looks for K centres of small inertia: the sum over rows of weight times squared
// distance to the nearest centre. In each superstep every row is assigned to its nearest centre
// (of several at the same distance, to the lowest), and every centre moves to the weighted mean
// of its rows. It ends when no centre moved farther than Params.Tol, or after Params.MaxIter
// updates; one more superstep then evaluates the centres, so that the model's sizes and inertia
// are exactly those that predicting the training rows gives. With Cosine only the direction of
// a row counts; see there.
//
// For dense rows and Euclidean distance most distances are never computed. A row stays with its
// centre if the distance between them is less than half that from the centre to its nearest
// neighbour. For other rows, scores in single precision name the nearest centre wherever
// rounding cannot matter (see kernel.Assigner). Where there are many centres that move little,
// bounds rule out the groups of centres that are too far away (Hamerly, Elkan, Yinyang; see
// bounds.go). Every assignment, centre and inertia has the same bits as if every distance were
// computed. Bounds take at most a quarter of the rows' room, and are used where a sample of the
// rows says that they save time. They are not part of the state of training: a resumed training
// takes them anew.
//
// With the precision Single, dense rows are kept and compared as float32.
//
// A cluster without rows of positive weight is given the row that is farthest from its own
// centre; ties go by the order of rows. K above the number of distinct points is an error.
//
// The first centres decide which optimum is found. Params.Init chooses among
// k-means||, the default, k-means++, random rows and given centres; the first two
// draw rows in proportion to weight times squared distance, to be near the best
// from the start.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and the
// seed. Parallelism, batch sizes and processors change none of its bits: rows are summed per
// shard and then up the tree over shards, and a draw depends on seed, shard and row.
//
// # The plan
//
// Train adds the operator KMeansPoints, which checks the rows and joins those of a
// shard; a queue for the first centres, named after its method; and the queue
// "kmeans", which reports "inertia" and "movement" per superstep. Files: input.go
// is the operator, block.go the rows of a shard and searches over them, lloyd.go
// and reseed.go the training queue, assigner.go, prune.go, bounds.go, group.go and
// single.go its inner loop, parallel.go, plusplus.go and random.go the queues of the
// first centres, local.go the clustering of candidates on one subtask, minibatch.go,
// bisect.go, bisectqueue.go, bisectdraw.go, bisectcut.go and gather.go the other
// trainings, model.go and modelfile.go the model and its file, stage.go
// the stages, predict.go the operator that predicts.
package kmeans
