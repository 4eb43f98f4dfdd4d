// Package kmeans clusters points around K centres by k-means (Lloyd's algorithm). It supports
// Euclidean and cosine distance, row weights, and dense and sparse vectors.
//
// # Training and predicting in a job
//
//	points := operators.Vectorize(rows, "features", "sepal_length", "sepal_width")
//	model := kmeans.Train(points, kmeans.Params{VectorCol: "features", K: 3})
//	clusters := kmeans.Predict(points, model, kmeans.PredictOptions{})
//	operators.WriteCSV(clusters, "clusters.csv", operators.CSVWriteOptions{})
//	engine.Collect(model, "model")
//
// Train returns a dataset of one row with the model. Predict adds the columns "cluster" and
// "distance" to the points. After the run the caller can get the model, use it, save it and
// load it again:
//
//	m, err := kmeans.ModelOf(result, "model")
//	cluster, distance := m.Predict([]float64{5.1, 3.5})
//	err = m.Save("model.json")
//	m, err = kmeans.Load("model.json")
//
// A Model can be used without a job, and any number of goroutines may call Model.Predict. In a
// job, Model.Dataset returns a dataset with the model, which can be passed to Predict.
// Parameters implement model.Stage and models implement model.Model, so both can be used in
// pipelines, and models can be stored in files with models of other kinds.
//
// # Other trainings, the same model
//
// TrainMiniBatch reads a batch of rows in each superstep. It is meant for data on which a pass
// over all rows takes too long. TrainBisecting cuts clusters in two until there are K clusters.
// It is meant for large K. Both end with one pass over all rows that evaluates the centres.
//
// # What is computed
//
// Training looks for K centres with a small inertia, which is the sum, over the rows, of the
// weight times the squared distance to the nearest centre. In each superstep every row is
// assigned to its nearest centre. Of several centres at the same distance, it is assigned to
// the centre with the lowest number. Then every centre moves to the weighted mean of its rows.
// Training ends when no centre moved farther than Params.Tol, or after Params.MaxIter updates.
// One more superstep then evaluates the centres, so that the model has exactly the sizes and
// the inertia that predictions for the training rows give. With Cosine only the directions of
// rows matter; see Cosine.
//
// For dense rows and Euclidean distance most distances are never computed. A row keeps its
// centre if its distance to this centre is less than half the distance from this centre to the
// nearest other centre. For the remaining rows, scores in single precision determine the
// nearest centre if rounding errors cannot change the result (see kernel.Assigner). If there
// are many centres that move little, bounds rule out the groups of centres that are too far
// away (Hamerly, Elkan, Yinyang; see bounds.go). Every assignment, centre and inertia has the
// same bits as if every distance were computed. Bounds take at most a quarter of the memory of
// the rows, and are used only if they save time on a sample of the rows. They are not part of
// the checkpointed state: a resumed training computes new bounds.
//
// With the precision Single, dense rows are stored as float32, and their distances are computed
// in float32.
//
// A cluster without rows of positive weight is given the row that is farthest from the centre
// of its own cluster; of several rows at the same distance, the first one. It is an error if K
// exceeds the number of distinct points.
//
// The first centres decide which optimum is found. Params.Init chooses among k-means|| (the
// default), k-means++, random rows and given centres. k-means|| and k-means++ draw rows with
// probabilities in proportion to weight times squared distance to the centres so far, to start
// near a good optimum.
//
// # The same bits
//
// A model depends only on the rows, their order, the number of shards, the parameters and the
// seed. Parallelism, batch sizes and processors do not change any of its bits: rows are summed
// within each shard and then over shards in the order of a fixed tree, and each draw of random
// numbers depends only on the seed, the shard and the row.
//
// # The plan
//
// Train adds the operator KMeansPoints, which checks the rows and joins the rows of each shard;
// a queue for the first centres, named after its method; and the queue "kmeans", which reports
// "inertia" and "movement" per superstep. The files of the package are: input.go for the
// operator; block.go for the rows of a shard and searches over them; lloyd.go and reseed.go for
// the training queue; assigner.go, prune.go, bounds.go, group.go and single.go for its inner
// loop; parallel.go, plusplus.go and random.go for the queues of the first centres; local.go
// for the clustering of candidates on one subtask; minibatch.go, bisect.go, bisectqueue.go,
// bisectdraw.go, bisectcut.go and gather.go for the other trainings; model.go and modelfile.go
// for the model and its file; stage.go for the stages of pipelines; predict.go for the operator
// that predicts.
package kmeans
