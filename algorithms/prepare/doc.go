// Package prepare makes features of columns: scalers, imputers, indexers, encoders, bins,
// hashes, polynomials, principal components.
//
// # Using it
//
// A preparation is a value whose fields say what to do. Fit learns from the rows of a
// dataset, Apply does to rows what was learned, and both are part of the job:
//
//	ages := prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median}
//	model := ages.Fit(rows)                    // a dataset of one row
//	filled := ages.Apply(rows, model)
//
// Columns are replaced in place, unless Outputs names new ones. Preparations are stages of
// package pipeline, which chains them. After the run the model is brought to the caller,
// kept, and used without a job:
//
//	m, err := prepare.ModelOf(result, "model")     // a *prepare.ImputerModel
//	err = model.Save("ages.json", m)
//	m, err = prepare.Load("ages.json")
//	step, err := m.Bind(model.NewLayout("age"))    // see package model
//
// # What there is
//
//	StandardScaler       to mean 0 and deviation 1          numbers, vectors
//	MinMaxScaler         to given bounds                    numbers, dense vectors
//	MaxAbsScaler         by the largest absolute value      numbers, vectors
//	RobustScaler         by median and quantiles            numbers, dense vectors
//	Imputer              mean, median, mode, constant       numbers, dense vectors, text, …
//	StringIndexer        numbers distinct values            text, numbers, bools, dates
//	OneHotEncoder        a component per distinct value     text, numbers, bools, dates
//	Bucketizer           buckets between given bounds       numbers
//	QuantileDiscretizer  buckets of as many rows each       numbers
//	FeatureHasher        hashes as components               text, numbers, bools, dates
//	PolynomialFeatures   products of components             numbers, dense vectors
//	VectorAssembler      one vector of several columns      numbers, vectors
//	Normalizer           vectors of length 1                vectors
//	PCA                  principal components               numbers, vectors
//
// # Missing values and infinities
//
// Null and NaN are missing values: they count for nothing in what is learned. Scalers leave
// them as they are, an Imputer fills them in, and the rest says what becomes of them. An
// infinity in a column that is learned from is an error that names row and column, and so is
// a column without any value, and a dataset without rows.
//
// # Weights
//
// WeightCol of scalers, Imputer, QuantileDiscretizer and PCA names a column of row weights.
// A weight says how often a row counts: with whole numbers, what is learned is what it
// would be with each row repeated so often. A row of weight 0 is not looked at. A negative,
// infinite or missing weight is an error that names row and column. What does not depend on
// how often a row counts, least, largest and absolute values, depends on weights of 0 alone;
// a quantile, which is between two values of the rows so repeated, and the variances of PCA,
// which are divided by their number less 1, change with the scale of the weights. Models
// need no weights where they are applied.
//
// # The same bits
//
// What is learned is a function of the rows, their order and the number of shards: sums go
// per shard and up the tree over shards. Quantiles, medians, counts and extremes are exact,
// and a function of the values alone. What is made of a row is a function of that row alone,
// computed by the same code in a job and out of it.
//
// # Files
//
// One file a preparation; scale.go is what scalers share, survey.go the queue that all of
// them learn by, moments.go, quantiles.go and categories.go its passes, eigen.go the
// eigenvectors of PCA.
package prepare
