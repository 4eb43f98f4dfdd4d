// Package onnx writes models as ONNX-ML, for runtimes in other languages. It reads only files
// that it has written itself.
//
//	data, err := onnx.Export(m)                    // a model or a pipeline of models
//	err = os.WriteFile("model.onnx", data, 0o644)
//	m, err = onnx.Import(data)                     // the same model, with the same bits
//
// # What is written
//
// Export writes linear, logistic and generalised linear regression, linear support vector
// machines, k-means, boosted trees and random forests. From package prepare it writes the
// scalers, imputer, string indexer, one-hot encoder, bucketizer, quantile discretizer, vector
// assembler, normalizer, polynomial features and PCA. It also writes pipelines of these, which
// may be nested. A graph can neither compute the hashes of a feature hasher nor leave rows out,
// as the policy prepare.Skip does. For these, Export returns an error that names the stage.
//
// # The graph
//
// Each column that the model reads is an input with the name of the column. The tensor of a
// column has the shape rows × 1, or rows × components for vectors, also for sparse ones. Text
// is a tensor of text. Numbers, bools (0 and 1) and dates are tensors of float64. A null is
// NaN, or the empty text in text columns. Outputs are the columns that a stage makes and no
// other stage reads. They have the names of these columns, with "_2" appended if an input has
// the same name. Clusters are int64, labels have the type of their column (dates are text), and
// probabilities are rows × classes. Numbers of categories are int64 if unknown categories have
// a number too, and float64 otherwise.
//
// A graph cannot refuse a row. If the model would refuse a value that did not occur in
// training, the graph gives NaN for the value and for all numbers computed from it. Ignore a
// label whose probabilities are NaN, and a cluster at the distance NaN.
//
// # Precision
//
// Graphs of Export compute in float64 throughout, except for trees. They use operators of
// ai.onnx 20 (and LabelEncoder of ai.onnx.ml 4), because ONNX-ML's operators for linear models
// have coefficients of float32. Results equal those of the model, except for the runtime's
// order of additions, exp and square roots. testdata/check.py found onnxruntime 1.31 within a
// relative 2e-16 of the definitions. Graphs of ExportSingle compute in float32, for runtimes
// that support only float32 or that require LinearRegressor and LinearClassifier. The relative
// error is about 1e-6 (the largest seen was 3e-6), and larger where numbers cancel. Rows at the
// boundary of a bucket or of a class may get another bucket or class. Numbers that overflow
// float32, and numeric categories that float32 would round, are errors.
//
// Trees are computed in float32 in both kinds of graphs. TreeEnsembleRegressor of ai.onnx.ml 3,
// and TreeEnsembleClassifier for classes in ExportSingle, compare, store leaves and add in
// float32. Rows go the same way as in training, which rounds features to float32 too. Results
// differ only by the rounding of sums (the largest difference seen was 1e-7). Values that are
// absent from sparse rows must be given as NaN, or as 0 if training treated them as 0.
//
// Sets of categories are stored as tables with a bit for each category and set, up to 128 MiB.
// A model of 3,000 categories and 6,000 splits by them takes 2 MiB. With 65,535 categories a
// model may have 16,000 such splits. If the limit is exceeded, Export returns an error.
//
// # Import
//
// The producer and the metadata of a file show that this package wrote it; other files are
// refused. The metadata have the facts that a graph cannot express, such as the summary of
// training. They also say which tensors have the numbers of each stage. Import reads the
// numbers from the tensors and exports the resulting model again. It detects damage by
// comparing the exported graph with that in the file, node by node. Import also reads files
// that another library has read and written again.
//
// The protocol buffers are defined in onnx.proto (ONNX 1.15, IR version 9). They are written
// and read field by field; see proto.go.
package onnx
