package catalog

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// Kinds returns every kind of model, the estimators first.
func Kinds() []model.Kind {
	return prepare.Kinds()
}

// Decode reads the file of a model of any kind.
func Decode(file []byte) (model.Model, error) {
	name, err := model.KindOf(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k.Decode(file)
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("model of kind %q: this program knows %s", name, strings.Join(names, ", "))
}

// Bind returns what computes single rows by a model, which adds the columns that Transform
// adds in a job. A model that is no model.Binder is an error.
func Bind(m model.Model, l *model.Layout) (model.Step, error) {
	if b, ok := m.(model.Binder); ok {
		return b.Bind(l)
	}
	return nil, fmt.Errorf("a model of kind %q cannot score single rows: apply it in a job", m.Kind())
}
