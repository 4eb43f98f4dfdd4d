package linearmodel

import "github.com/superstep-ml/superstep/algorithms/model"

// PenaltyFlags are the flags of estimators with a penalty, an intercept and an offset.
var PenaltyFlags = []model.Flag{
	{Name: "l1", Param: "L1", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the lasso penalty: L1·Σ|w| is added to the mean loss (default: 0)."`},
	{Name: "l2", Param: "L2", Tag: `want:"0.." placeholder:"STRENGTH" help:"Strength of the ridge penalty: ½·L2·Σw² is added to the mean loss (default: 0)."`},
	NoStandardizeFlag, NoInterceptFlag,
	{Name: "offset", Param: "OffsetCol", Tag: `reads:"" placeholder:"COLUMN" help:"Column of numbers that are added to the linear predictor, in training and prediction."`},
}

// These are the flags that all estimators of linear models have.
var (
	NoStandardizeFlag = model.Flag{Name: "no-standardize", Param: "NoStandardize", Tag: `help:"Penalise the coefficients of unscaled features (default: of features divided by their standard deviations)."`}
	NoInterceptFlag   = model.Flag{Name: "no-intercept", Param: "NoIntercept", Tag: `help:"Leave the intercept out."`}
)
