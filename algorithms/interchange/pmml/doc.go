// Package pmml writes models as PMML 4.4, for programs that read it. It reads only documents
// that it wrote.
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
// Pipelines of preparations and at most one model are written too, also nested. A pipeline
// without a model is a document of derived fields only. PMML cannot express the hashes of a
// feature hasher, rows that are left out (prepare.Skip), the cosine distance, or a threshold
// other than 0.5. These are errors that name the stage.
//
// # Fields
//
// A number or text that the model reads is a data field with its column's name. Component j
// of a vector x, dense or sparse, is the field x[j]. There are at most 1,048,576 fields.
// Bools are integers, 0 and 1; dates are integers, the days or microseconds since 1970.
// Fields that stages make have the names of their columns, with "_2" appended where the name
// is taken. Predictions are output fields with their columns' names. Probabilities are
// output fields probability[0] and on, in the order of the classes. The predicted field is
// called target.
//
// Null and NaN are the missing value of PMML, and expressions treat it as models here do.
// Where a preparation refuses a value that training did not have, the value becomes missing,
// and so does everything computed from it.
//
// # Precision
//
// Numbers are the shortest decimals that read back the same float64, so that nothing is
// lost. Programs compute with them in their own order: testdata/check.py found PMML4S within
// a relative 1e-15 of the definitions. Two things differ for extreme numbers: the squares of
// a normalizer may overflow, and the probability of the first of two classes is computed as
// 1 less the other's.
//
// # Import
//
// The header says that this package wrote the document; others are refused. The document has
// an extension with what PMML cannot express about a model, such as the summary of training,
// and with the parameters of preparations. Coefficients, intercepts and centres are read
// from the model's element. Import exports the resulting model again. It detects damage by
// comparing the two documents, except for white space between elements.
package pmml
