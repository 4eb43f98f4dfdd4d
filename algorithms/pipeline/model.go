package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// Model is a trained pipeline. It is immutable and safe for concurrent use.
type Model struct {
	stages []model.Model
	inputs []model.Input
}

var _ model.Binder = (*Model)(nil)

const (
	modelVersion = 1
	// maxDepth is the largest depth to which pipelines may be nested. It bounds the time of
	// decoding, as each pipeline verifies the checksums of all pipelines inside it.
	maxDepth = 8
)

// payload is the content of the member "payload" of the model's file.
type payload struct {
	Stages []json.RawMessage `json:"stages"`
}

// summary is the content of the member "summary" of the model's file.
type summary struct {
	Kinds []string `json:"kinds"`
}

// NewModel returns a pipeline of models that have already been trained, in the order in which
// they are applied.
func NewModel(stages ...model.Model) (*Model, error) {
	for i, m := range stages {
		if m == nil {
			return nil, fmt.Errorf("stage %d is nil", i)
		}
	}
	if len(stages) == 0 {
		return nil, errors.New("the pipeline has no stages")
	}
	return &Model{stages: slices.Clone(stages), inputs: inputsOf(stages)}, nil
}

// newModel returns the pipeline whose stages have the given files. depth is the number of
// pipelines in which this pipeline is nested.
func newModel(files [][]byte, depth int) (*Model, error) {
	var stages []model.Model
	for i, file := range files {
		stage, err := decodeAny(file, depth+1)
		if err != nil {
			return nil, fmt.Errorf("stage %d: %w", i, err)
		}
		stages = append(stages, stage)
	}
	return NewModel(stages...)
}

// inputsOf returns the columns that at least one stage reads and that no earlier stage
// computes.
func inputsOf(stages []model.Model) []model.Input {
	layout := model.NewLayout()
	var inputs []model.Input
	for _, s := range stages {
		for _, in := range s.Inputs() {
			if !layout.Has(in.Column) {
				layout.Add(in.Column)
				inputs = append(inputs, in)
			}
		}
		// Bind adds the columns that the stage computes to the layout. An error is ignored
		// here: a stage that cannot be applied to single rows adds no columns, and NewScorer
		// returns the error for it.
		_, _ = catalog.Bind(s, layout)
	}
	return inputs
}

// Stages returns the models of the stages.
func (m *Model) Stages() []model.Model { return slices.Clone(m.stages) }

// Kind returns "pipeline".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that at least one stage reads and that no earlier stage computes.
func (m *Model) Inputs() []model.Input { return slices.Clone(m.inputs) }

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	var s summary
	var p payload
	for i, stage := range m.stages {
		file, err := stage.Encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stageName(i, stage), err)
		}
		s.Kinds, p.Stages = append(s.Kinds, stage.Kind()), append(p.Stages, file)
	}
	return model.Encode(Kind, modelVersion, m.inputs, s, p)
}

// stageFiles returns the files of the stages in the file of a pipeline.
func stageFiles(file []byte) ([][]byte, error) {
	f, err := model.Decode(file, Kind, modelVersion)
	if err != nil {
		return nil, err
	}
	var p payload
	if err := model.Unmarshal(f.Payload, &p); err != nil {
		return nil, fmt.Errorf("model of kind %q is damaged: payload: %w", Kind, err)
	}
	files := make([][]byte, len(p.Stages))
	for i, s := range p.Stages {
		files[i] = s
	}
	return files, nil
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version, or has a stage of an unknown kind.
func Decode(file []byte) (*Model, error) { return decode(file, 0) }

func decode(file []byte, depth int) (*Model, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("pipelines are nested more than %d deep", maxDepth)
	}
	files, err := stageFiles(file)
	if err != nil {
		return nil, err
	}
	m, err := newModel(files, depth)
	if err != nil {
		return nil, fmt.Errorf("model of kind %q: %w", Kind, err)
	}
	return m, nil
}

// DecodeAny decodes the file of a model of any kind, including pipelines.
func DecodeAny(file []byte) (model.Model, error) { return decodeAny(file, 0) }

func decodeAny(file []byte, depth int) (model.Model, error) {
	kind, err := model.KindOf(file)
	if err != nil {
		return nil, err
	}
	if kind == Kind {
		return decode(file, depth)
	}
	return catalog.Decode(file)
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Pipeline.Fit returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}

// Transform applies the stages to rows, one after the other.
func (m *Model) Transform(rows *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf("pipeline.Model.Transform", rows)
	for i, s := range m.stages {
		b.Within(stageName(i, s), func() { rows = s.Transform(rows) })
	}
	return rows
}

// Dataset returns the model as a dataset of the job, like the dataset that Pipeline.Fit
// returns. So a saved model can be passed to Pipeline.Apply.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset {
	var parts []*engine.Dataset
	for _, s := range m.stages {
		if own, ok := s.(interface {
			Dataset(b *engine.Builder) *engine.Dataset
		}); ok {
			parts = append(parts, own.Dataset(b))
		} else {
			parts = append(parts, model.Dataset(b, s))
		}
	}
	return join(b, parts)
}

// Bind implements model.Binder. It binds the stages one after the other.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	var steps []model.Step
	for i, s := range m.stages {
		step, err := catalog.Bind(s, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stageName(i, s), err)
		}
		steps = append(steps, step)
	}
	return func(row []model.Cell) error {
		for i, step := range steps {
			if err := step(row); err != nil {
				if errors.Is(err, model.ErrSkip) {
					return err
				}
				return fmt.Errorf("%s: %w", stageName(i, m.stages[i]), err)
			}
		}
		return nil
	}, nil
}
