// Package prepare turns columns into features. It has scalers, imputers, indexers, encoders,
// buckets, hashed features, polynomial features and principal components.
//
// # Using it
//
// A preparation is a value whose fields say what to do. Fit learns a model from the rows of
// a dataset. Apply applies the model to rows. Both are part of the job:
//
//	ages := prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median}
//	model := ages.Fit(rows)                    // a dataset of one row
//	filled := ages.Apply(rows, model)
//
// The output columns replace the input columns, unless Outputs names new columns. Preparations
// are stages of package pipeline, which chains them. After the run, the caller can take the
// model, save it, and use it without a job:
//
//	m, err := prepare.ModelOf(result, "model")     // a *prepare.ImputerModel
//	err = model.Save("ages.json", m)
//	m, err = prepare.Load("ages.json")
//	step, err := m.Bind(model.NewLayout("age"))    // see package model
//
// # What there is
//
//	StandardScaler       scales to mean 0 and deviation 1   numbers, vectors
//	MinMaxScaler         scales to given bounds             numbers, dense vectors
//	MaxAbsScaler         divides by largest absolute value  numbers, vectors
//	RobustScaler         scales by median and quantiles     numbers, dense vectors
//	Imputer              mean, median, mode, constant       numbers, dense vectors, text, …
//	StringIndexer        a number per distinct value        text, numbers, bools, dates
//	OneHotEncoder        a component per distinct value     text, numbers, bools, dates
//	Bucketizer           buckets between given bounds       numbers
//	QuantileDiscretizer  buckets of equally many rows       numbers
//	FeatureHasher        hashes as components               text, numbers, bools, dates
//	PolynomialFeatures   products of components             numbers, dense vectors
//	VectorAssembler      one vector of several columns      numbers, vectors
//	Normalizer           vectors of length 1                vectors
//	PCA                  principal components               numbers, vectors
//
// # Missing values and infinities
//
// Null and NaN are missing values, and Fit ignores them. Scalers leave missing values
// unchanged, and an Imputer fills them in. The documentation of each other preparation says
// what it does with them. If Fit reads an infinity, it fails with an error that names row and
// column. It also fails if a column has no value or the dataset has no rows.
//
// # Weights
//
// WeightCol of scalers, Imputer, QuantileDiscretizer and PCA names a column of row weights.
// A weight says how often a row counts: with integer weights, the model is the same as if each
// row were repeated that many times. A row of weight 0 is ignored. For a negative, infinite or
// missing weight, Fit fails with an error that names row and column. The least, the largest and
// the largest absolute value depend only on which rows have weights above 0. Quantiles and the
// variances of PCA depend on the scale of the weights: quantiles interpolate between repeated
// rows, and PCA divides by the total weight less 1. Applying a model needs no weights.
//
// # The same bits
//
// A model depends only on the rows, their order and the number of shards, because sums are
// computed per shard and then added up a tree over the shards. Quantiles, medians, counts and
// extremes are exact and depend on the values alone. The output for a row depends only on the
// model and that row. The same code computes it inside and outside a job.
//
// # Files
//
// Each preparation has its own file. scale.go has the code that scalers share. All preparations
// learn in passes over the rows; survey.go runs the passes, and moments.go, quantiles.go and
// categories.go define them. eigen.go computes the eigenvectors for PCA.
package prepare
