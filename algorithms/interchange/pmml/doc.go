// Package pmml writes models as PMML 4.4, for other programs. It reads only documents that it
// has written itself.
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
// Pipelines of preparations and at most one model are written too, and may be nested. A
// pipeline without a model becomes a document with only derived fields. PMML cannot express the
// hashes of a feature hasher, rows that are left out (prepare.Skip), the cosine distance, or a
// threshold other than 0.5. These are errors that name the stage.
//
// # Fields
//
// A column of numbers or text that the model reads is a data field with the name of the column.
// Component j of a vector column x, dense or sparse, is the field x[j]. There are at most
// 1,048,576 fields. Bools are integers, 0 and 1; dates are integers, the days or microseconds
// since 1970. Fields that stages make have the names of their columns, with "_2" appended if
// another field has the name. Predictions are output fields with their columns' names.
// Probabilities are the output fields probability[0], probability[1] and so on, in the order of
// the classes. The predicted field has the name target.
//
// Null and NaN are represented by PMML's missing value, which expressions treat in the same way
// as the models. If a preparation refuses a value that did not occur in training, the value
// becomes missing, and so does everything that is computed from it.
//
// # Precision
//
// Numbers are the shortest decimals that read back the same float64, so that nothing is lost.
// Programs compute with them in their own order: testdata/check.py found PMML4S within a
// relative 1e-15 of the definitions. There are two differences for extreme numbers: the squares
// in a normalizer may overflow, and the probability of the first of two classes is computed as
// 1 minus that of the second.
//
// # Import
//
// The header says that this package wrote the document; other documents are refused. The
// document has an extension with the facts about a model that PMML cannot express, such as the
// summary of training, and with the parameters of preparations. Coefficients, intercepts and
// centres are read from the model's element. Import exports the resulting model again. It
// detects damage by comparing the exported document with the given one; white space between
// elements is ignored.
package pmml
