package model

// PredictOptions are the options of prediction for estimators that predict numbers or classes.
type PredictOptions struct {
	// VectorCol or FeatureCols name the columns to read. If both are empty, the columns that
	// the model was trained on are read.
	VectorCol   string
	FeatureCols []string
	// PredictionCol names the new column of predictions: numbers, or classes of the type of
	// the labels; empty means "prediction".
	PredictionCol string
	// ProbabilityCol names the new vector column of the probability of each class, in the order
	// of the model's classes; empty means "probability". A regression does not add this column.
	ProbabilityCol string
	// Replace allows the new columns to replace columns of the same names. Without Replace,
	// existing columns of these names are an error.
	Replace bool
	// With Skip, the prediction is null for rows that contain a NaN or an infinity; without
	// Skip such a row is an error. For rows that contain a null the prediction is null with and
	// without Skip.
	Skip bool
}

// LinearPredictOptions are the options of prediction for linear models that predict numbers.
type LinearPredictOptions struct {
	// VectorCol or FeatureCols name the columns of the features, and OffsetCol names the column
	// of the offsets. Where names are empty, the columns that the model was trained on are read.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// PredictionCol names the new float64 column of predictions; empty means "prediction".
	PredictionCol string
	// Replace and Skip are as in PredictOptions.
	Replace, Skip bool
}
