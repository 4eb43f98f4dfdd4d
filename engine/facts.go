package engine

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
)

// facts keeps what a job's function learnt from outside. The first build
// resolves them, every later one replays those of the first.
type facts struct {
	known  map[string]string // the facts to replay; nil while resolving
	values map[string]string // asked for in this build
}

// replaying returns the facts of an earlier build for a later one.
func replaying(recorded []plan.Fact) facts {
	known := make(map[string]string, len(recorded))
	for _, f := range recorded {
		known[f.Name] = f.Value
	}
	return facts{known: known, values: map[string]string{}}
}

// resolving returns the facts of a first build.
func resolving() facts { return facts{values: map[string]string{}} }

// Fact returns what resolve learns from outside the job's arguments: a list of files with their
// sizes, an inferred schema, the hash of data in memory. The value is resolved once and
// recorded in the graph under its name, as part of the fingerprint. Further calls with that
// name, in the same build and in every later build of the run, return it without calling
// resolve. The caller reports an error of resolve with Errorf; it is not recorded.
//
// The name says whose fact it is, such as "ReadCSV data/*.csv files".
func (b *Builder) Fact(name string, resolve func() (string, error)) (string, error) {
	if value, ok := b.facts.values[name]; ok {
		return value, nil
	}
	value, known := b.facts.known[name]
	if b.facts.known != nil && !known {
		return "", fmt.Errorf("fact %q was not asked for when the job was first built: the job function must depend on its arguments alone", name)
	}
	if b.facts.known == nil {
		var err error
		if value, err = resolve(); err != nil {
			return "", err
		}
	}
	b.facts.values[name] = value
	b.graph.Facts = append(b.graph.Facts, plan.Fact{Name: name, Value: value})
	return value, nil
}
