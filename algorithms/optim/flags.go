package optim

import "github.com/superstep-ml/superstep/algorithms/model"

// Flags are the flags of estimators that minimise a loss with this package.
var Flags = []model.Flag{
	{Name: "method", Param: "Method", Tag: `enum:"auto,lbfgs,owlqn,newton,gd,sgd" default:"auto" placeholder:"NAME" help:"Optimiser: lbfgs, owlqn, newton, gd, sgd, or auto (the default): what suits features and penalty."`,
		Values: map[string]any{"lbfgs": LBFGS, "owlqn": OWLQN, "newton": Newton, "gd": GD, "sgd": SGD},
		Words:  map[string]string{"LBFGS": "lbfgs", "OWLQN": "owlqn", "Newton": "newton", "GD": "gd", "SGD": "sgd"}},
	{Name: "max-iter", Param: "MaxIter", Tag: `want:"1..2147483647" placeholder:"N" help:"Largest number of iterations, of sgd passes over the data (default: 100; of svc and svr 1000, of fm and mlp 200)."`},
	{Name: "tol", Param: "Tol", Tag: `want:"0.." zero:"-1" placeholder:"NORM" help:"Training ends when the gradient is as small as this, relative to the first if that is above 1; 0: never (default: 0.000001; of glm 0.00000001, of fm 0.00001, of mlp 0.0001)."`},
	{Name: "batch", Param: "Stochastic.Batch", Tag: `want:"1..2147483647" of:"method=sgd" placeholder:"ROWS" help:"Rows of a step of sgd (default: about one a shard)."`},
	{Name: "loss-tol", Param: "LossTol", Tag: `want:"0.." placeholder:"SHARE" help:"Training ends, too, when the objective falls by no more than this share of it (default: it does not)."`},
	{Name: "rate", Param: "Stochastic.Rate", Tag: `want:">0.." of:"method=sgd" placeholder:"RATE" help:"First learning rate of sgd (default: what suits --update and --schedule)."`},
	{Name: "update", Param: "Stochastic.Update", Tag: `of:"method=sgd" enum:"plain,adam,adagrad" default:"plain" placeholder:"NAME" help:"How sgd turns gradients into steps: plain (the default), adam or adagrad."`,
		Values: map[string]any{"adam": Adam, "adagrad": AdaGrad},
		Words:  map[string]string{"Plain": "plain", "Adam": "adam", "AdaGrad": "adagrad"}},
	{Name: "schedule", Param: "Stochastic.Schedule", Tag: `of:"method=sgd" enum:"inverse-scaling,constant,exponential,optimal" default:"inverse-scaling" placeholder:"NAME" help:"How the learning rate of sgd falls: inverse-scaling (the default), constant, exponential, or optimal, for convex losses with a ridge penalty, so not of fm and mlp."`,
		Values: map[string]any{"constant": Constant, "exponential": Exponential, "optimal": Optimal},
		Words:  map[string]string{"InverseScaling": "inverse-scaling", "Constant": "constant", "Exponential": "exponential", "Optimal": "optimal"}},
	{Name: "schedule-power", Param: "Stochastic.Power", Tag: `want:">0.." of:"method=sgd,schedule=inverse-scaling" placeholder:"POWER" help:"Of inverse-scaling: the rate is divided by this power of the number of steps (default: 0.5)."`},
	{Name: "decay", Param: "Stochastic.Decay", Tag: `want:">0..1" of:"method=sgd,schedule=exponential" placeholder:"SHARE" help:"Of exponential: factor of the rate after each pass (default: 0.95)."`},
	{Name: "momentum", Param: "Stochastic.Momentum", Tag: `want:"0..<1" of:"method=sgd,update=plain" placeholder:"SHARE" help:"Momentum of plain sgd: the share of the last step that it adds to the next (default: 0)."`},
	{Name: "nesterov", Param: "Stochastic.Nesterov", Tag: `of:"method=sgd,momentum" help:"Make the momentum that of Nesterov."`},
	{Name: "average", Param: "Stochastic.Average", Tag: `of:"method=sgd" help:"Of sgd: return the mean of the parameters of the last half of the steps."`},
}

// StepFlag is the additional flag of estimators whose training may end when parameters move
// little.
var StepFlag = model.Flag{Name: "step-tol", Param: "StepTol", Tag: `want:"0.." placeholder:"SIZE" help:"Training ends, too, when no parameter moves more than this (default: it does not)."`}
