// Package linearmodel has what the estimators of linear models share: parameters, the queue
// that trains them, coefficients for unscaled features, and summaries with tables of standard
// errors and p values. It predicts batch by batch and row by row with the same bits, and gives
// classes in the type of the labels' column.
//
//	made := linearmodel.Training{
//		Op: "linear.Train", Params: p.common(), Loss: objective.Squared{},
//		Finish: func(f *linearmodel.Fit) (model.Model, error) { return &Model{Model: f.Model}, nil },
//	}.Add(rows)                                    // one row: the encoded model
//	...
//	linearmodel.PredictNumber("linear.Predict", "LinearPredict", rows, made, linearmodel.PredictOptions(o), Decode, linearmodel.Same)
//
// The models of the estimators embed the Model of this package. Their files hold its Payload
// and their own fields.
package linearmodel
