// Package onnx writes models as ONNX-ML, for runtimes of other languages. It reads only
// files that it wrote.
//
//	data, err := onnx.Export(m)                    // a model or a pipeline of models
//	err = os.WriteFile("model.onnx", data, 0o644)
//	m, err = onnx.Import(data)                     // the same model, with the same bits
//
// # What is written
//
// Linear, logistic and generalised linear regression, linear support vector machines,
// k-means, boosted trees and random forests. From package prepare the scalers, imputer,
// string indexer, one-hot encoder, bucketizer, quantile discretizer, vector assembler,
// normalizer, polynomial features and PCA. Pipelines of these, also nested. A graph can
// neither express the hashes of a feature hasher nor leave rows out, as the policy
// prepare.Skip does: these are errors that name the stage.
//
// # The graph
//
// Each column that the model reads is an input with its name. Its tensor has the shape rows
// × 1, or rows × components for vectors, also for sparse ones. Text is a tensor of text.
// Numbers, bools (0 and 1) and dates are tensors of float64. A null is NaN, or the empty
// text in text columns. Outputs are the columns that a stage makes and no other reads. They
// keep their names, with "_2" appended where an input has the name already. Clusters are
// int64, labels have the type of their column (dates are text), and probabilities are rows ×
// classes. Numbers made of categories are int64 where unknown categories have a number, else
// float64.
//
// A graph cannot refuse a row. Where the model would, for a value that training did not
// have, the graph gives NaN, and NaN for all numbers computed from it. A label with
// probabilities of NaN, and a cluster at distance NaN, have no meaning.
//
// # Precision
//
// Export computes in float64 throughout. It uses operators of ai.onnx 20 (and LabelEncoder
// of ai.onnx.ml 4), as ONNX-ML's operators for linear models have coefficients of float32.
// Results equal those of the model except for the runtime's order of additions, exp and
// square roots. testdata/check.py found onnxruntime 1.31 within a relative 2e-16 of the
// definitions. ExportSingle computes in float32, for runtimes that have nothing else or that
// look for LinearRegressor and LinearClassifier. Its relative error is about 1e-6 (3e-6
// seen), and larger where differences cancel. Rows at the bound of a bucket or of a class
// may change sides. Numbers that float32 cannot hold, and categories that it rounds, are
// errors.
//
// Trees are float32 in both. TreeEnsembleRegressor of ai.onnx.ml 3, and
// TreeEnsembleClassifier for classes in ExportSingle, compare, store leaves and add in
// float32. Rows go the same way as in training, which rounds features to float32 too.
// Results differ by the rounding of sums, 1e-7 seen. Values that sparse rows leave out are
// given as NaN, or as 0 where training took them as 0.
//
// Sets of categories are tables with a bit for each category and set, up to 128 MiB. A model
// of 3,000 categories and 6,000 splits by them takes 2 MiB. A model of 65,535 categories may
// have 16,000 such splits. Beyond the limit, Export returns an error.
//
// # Import
//
// Producer and metadata of a file show that this package wrote it; others are refused.
// Metadata have what a graph cannot express, such as the summary of training. They also say
// which tensors have the numbers of each stage. Import reads the numbers from the tensors
// and exports the resulting model again. It detects damage by comparing the two graphs node
// by node. Files that another library has read and written again are read too.
//
// The protocol buffers are those of onnx.proto (ONNX 1.15, IR version 9). They are written
// and read field by field; see proto.go.
package onnx
