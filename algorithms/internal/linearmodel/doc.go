// Package linearmodel has the code that all estimators of linear models share: parameters, the
// queue that trains a model, the conversion of coefficients to unscaled features, and summaries
// with tables of standard errors and p values. Prediction batch by batch and prediction row by
// row give the same bits. Predicted classes have the type of the label column.
//
//	made := linearmodel.Training{
//		Op: "linear.Train", Params: p.common(), Loss: objective.Squared{},
//		Finish: func(f *linearmodel.Fit) (model.Model, error) { return &Model{Model: f.Model}, nil },
//	}.Add(rows)                                    // a dataset of one row, the encoded model
//	...
//	linearmodel.PredictNumber("linear.Predict", "LinearPredict", rows, made, o, Decode, linearmodel.Same)
//
// The model types of the estimators embed the Model of this package. Their files hold the
// Payload of this package and their own fields.
package linearmodel
