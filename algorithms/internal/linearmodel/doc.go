// Package linearmodel is what the estimators of linear models share: parameters, the queue
// that trains them, coefficients on the scale of the features, predictions batch by batch
// and row by row with the same bits, the labels of classes in the type of their column,
// summaries, and the tables of standard errors and p values.
//
//	made := linearmodel.Training{
//		Op: "linear.Train", Params: p.common(), Loss: objective.Squared{},
//		Finish: func(f *linearmodel.Fit) (model.Model, error) { return &Model{Model: f.Model}, nil },
//	}.Add(rows)                                    // one row: the encoded model
//	...
//	linearmodel.PredictNumber("linear.Predict", "LinearPredict", rows, made, linearmodel.PredictOptions(o), Decode, linearmodel.Same)
//
// The Model of this package is embedded in those of the estimators, whose files hold its
// Payload besides what is their own.
package linearmodel
