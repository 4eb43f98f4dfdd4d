// Package pmml writes models as PMML 4.4, for programs that read that, and reads what it
// wrote.
//
//	data, err := pmml.Export(m)                    // a model or a pipeline
//	err = os.WriteFile("model.pmml", data, 0o644)
//	m, err = pmml.Import(data)                     // the same model, with the same bits
//
// # What is written
//
//	linear regression, SVR     RegressionModel, functionName regression
//	logistic regression        RegressionModel, classification; logit for two classes of
//	                           one margin, else softmax
//	linear SVC                 RegressionModel, classification, with the class alone: it has
//	                           no probabilities
//	generalised linear models  GeneralRegressionModel, generalizedLinear
//	k-means                    ClusteringModel, center-based, euclidean
//	scalers, imputer           DerivedField with Apply
//	string indexer             MapValues for text, Discretize for numbers
//	one-hot encoder            the number as above, and Apply of "equal" for each component
//	bucketizer, quantiles      Discretize
//	vector assembler           nothing: a vector is the fields of its components
//	normalizer, PCA,           Apply, with sums as trees of "+"
//	polynomial features
//
// Pipelines of preparations and at most one model, also within each other. A pipeline
// without a model is a document of derived fields only. What PMML cannot express is an error
// that names the stage: the hashes of a feature hasher, rows that are left out
// (prepare.Skip), the cosine distance, and a threshold of other than 0.5.
//
// # Fields
//
// A number or text that the model reads is a data field of its column's name, and component
// j of a vector x, also of a sparse one, is the field x[j]; there are at most 1,048,576
// fields. Bools are integers, 0 and 1; dates are integers, the days or microseconds since
// 1970. Fields that stages make have the names of their columns, with "_2" behind them where
// the name is taken. Predictions are output fields of their columns' names, and so are
// probabilities as probability[0] and on, in the order of the classes; the field that is
// predicted is called target.
//
// Null and NaN are the missing value, and go through expressions as in our models. A value
// that a preparation refuses, as it was not there in training, becomes missing, and so what
// is computed of it.
//
// # Precision
//
// Numbers are the shortest decimals that read back the same float64, so that nothing is
// lost. Programs compute with them in their own order: testdata/check.py found PMML4S
// within 1e-15, relatively, of the definitions. Two things differ where numbers are extreme:
// the squares of a normalizer may overflow, and the first class of two has 1 less the other's
// probability.
//
// # Import
//
// The header says that this package wrote the document; others are refused. It has an
// extension with what PMML does not tell of a model, such as the summary of training, and
// with the parameters of preparations. Coefficients, intercepts and centres are read from
// the model's element. The model that these make is exported again: that it is the same
// document, but for white space between elements, is what tells damage.
package pmml
