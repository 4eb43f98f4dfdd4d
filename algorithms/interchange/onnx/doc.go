// Package onnx writes models as ONNX-ML, for runtimes of other languages, and reads what it
// wrote.
//
//	data, err := onnx.Export(m)                    // a model or a pipeline of models
//	err = os.WriteFile("model.onnx", data, 0o644)
//	m, err = onnx.Import(data)                     // the same model, with the same bits
//
// # What is written
//
// Linear, logistic and generalised linear regression, linear support vector machines,
// k-means, boosted trees, random forests, and of package prepare the scalers, imputer, string indexer, one-hot encoder,
// bucketizer, quantile discretizer, vector assembler, normalizer, polynomial features and
// PCA; pipelines of these, also within each other. The hashes of a feature hasher cannot be
// expressed, nor can rows be left out, as the policy prepare.Skip does: these are errors
// that name the stage.
//
// # The graph
//
// Each column that the model reads is an input of its name, a tensor of one row for each
// row: of shape rows × 1, or rows × components for vectors, also for sparse ones. Text is a
// tensor of text; all numbers, bools (0 and 1) and dates are tensors of float64. A null is
// NaN, and the empty text in columns of text. Outputs are the columns that stages make and
// no other one reads, by their names; where an input has the name already, with "_2" behind
// it. Clusters are int64, labels have the type of their column (dates are text),
// probabilities are rows × classes, and numbers made of categories are int64 where unknown
// ones have a number, else float64.
//
// A graph cannot refuse a row. Where the model would, for a value that was not there in
// training, numbers are NaN, and so is what is computed of them; the label that is given
// with probabilities of NaN, and the cluster at a distance of NaN, mean nothing.
//
// # Precision
//
// Export computes in float64 throughout, by operators of ai.onnx 20 (and LabelEncoder of
// ai.onnx.ml 4): operators of ONNX-ML for linear models have coefficients of float32. Results
// are those of the model but for the order of additions, exp and square roots of the
// runtime: testdata/check.py found onnxruntime 1.31 within 2e-16, relatively, of the
// definitions. ExportSingle computes in float32, for runtimes that have nothing else or
// look for LinearRegressor and LinearClassifier: about 1e-6 relatively, 3e-6 seen, more
// where differences cancel; rows on the edge of a bucket or of a class may change sides.
// Numbers that float32 cannot hold, and categories that it rounds, are errors.
//
// Trees are float32 in both: TreeEnsembleRegressor, and for classes in ExportSingle
// TreeEnsembleClassifier, of ai.onnx.ml 3, compare, keep leaves and add up so. Rows go the
// same way as in training, which rounds features to float32 too; results differ by the
// rounding of sums, 1e-7 seen. What sparse rows leave out is given as NaN, or as 0 to models
// that were trained with it as 0.
//
// Sets of categories are tables of a bit for each category and set, and end at 128 MiB: a model
// of 3,000 categories and 6,000 splits by them has 2 MiB, one of 65,535 categories may have
// 16,000 such splits; beyond that Export tells so.
//
// # Import
//
// The file says by its producer and metadata that this package wrote it; others are refused.
// Metadata hold what a graph does not tell, such as the summary of training, and which
// tensors the numbers of each stage are. The numbers are read from the tensors, and the
// model that they make is exported again: that it is the same graph, node by node, is what
// tells damage. Files that another library has read and written again are read too.
//
// The protocol buffers are those of onnx.proto (ONNX 1.15, IR version 9), written and read
// field by field; see proto.go.
package onnx
