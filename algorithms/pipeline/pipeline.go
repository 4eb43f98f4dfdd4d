package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Kind is the kind of a pipeline's model.
const Kind = "pipeline"

// Pipeline is a chain of stages: the parameters of preparations and estimators, in the order in
// which they are applied. A Pipeline is itself a stage.
type Pipeline struct {
	Stages []model.Stage
}

var _ model.Stage = Pipeline{}

// Kind returns "pipeline".
func (Pipeline) Kind() string { return Kind }

// Validate returns all errors in the stages that can be found without the rows.
func (p Pipeline) Validate() error {
	if len(p.Stages) == 0 {
		return errors.New("the pipeline has no stages")
	}
	var errs []error
	for i, s := range p.Stages {
		if s == nil {
			errs = append(errs, fmt.Errorf("stage %d is nil", i))
			continue
		}
		if v, ok := s.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", stageName(i, s), err))
			}
		}
	}
	return errors.Join(errs...)
}

// Fit adds the training of all stages to the job. Each stage is trained on the output of the
// stages before it. Fit returns the model of the pipeline as a dataset of one row. If a stage
// fails, when the job is built or when it runs, the error names the index of the stage, counted
// from 0, and its kind.
func (p Pipeline) Fit(rows *engine.Dataset) *engine.Dataset {
	const op = "pipeline.Fit"
	b := model.BuilderOf(op, rows)
	if err := p.Validate(); err != nil {
		return model.Refuse(b, op, err)
	}
	var models []*engine.Dataset
	for i, s := range p.Stages {
		b.Within(stageName(i, s), func() {
			trained := s.Fit(rows)
			models = append(models, trained)
			if i < len(p.Stages)-1 {
				rows = s.Apply(rows, trained)
			}
		})
	}
	return join(b, models)
}

// Apply adds to rows the columns that the stages compute. trained is the dataset with the model
// that Fit or Model.Dataset returned.
func (p Pipeline) Apply(rows, trained *engine.Dataset) *engine.Dataset {
	const op = "pipeline.Apply"
	b := model.BuilderOf(op, rows)
	if err := p.Validate(); err != nil {
		return model.Refuse(b, op, err)
	}
	switch {
	case rows.Poisoned():
		return rows
	case trained == nil:
		return model.Refuse(b, op, errors.New("the model is nil: give it the dataset that Fit returned"))
	case trained.Poisoned():
		return trained
	case trained.Schema().Index(model.Column) < 0:
		return model.Refuse(b, op, fmt.Errorf("the model has no column %q: give it the dataset that Fit returned", model.Column))
	}
	for i, s := range p.Stages {
		own := part(trained, i, len(p.Stages))
		b.Within(stageName(i, s), func() { rows = s.Apply(rows, own) })
	}
	return rows
}

// stageName returns the name of a stage in messages: its index, counted from 0, and its kind.
func stageName(i int, s interface{ Kind() string }) string {
	return fmt.Sprintf("stage %d (%s)", i, s.Kind())
}

// String returns the kinds of the stages, such as "imputer → kmeans".
func (p Pipeline) String() string {
	var kinds []string
	for _, s := range p.Stages {
		kinds = append(kinds, s.Kind())
	}
	return strings.Join(kinds, " → ")
}
