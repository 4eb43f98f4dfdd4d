package engine

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
)

// facts holds what a job's function has learned from outside. The first build
// resolves the facts, and every later build replays them.
type facts struct {
	known  map[string]string // the facts to replay; nil while resolving
	values map[string]string // the facts requested in this build
}

// replaying returns the facts for a build that replays the recorded facts of an earlier build.
func replaying(recorded []plan.Fact) facts {
	known := make(map[string]string, len(recorded))
	for _, f := range recorded {
		known[f.Name] = f.Value
	}
	return facts{known: known, values: map[string]string{}}
}

// resolving returns the facts for a first build, which resolves them.
func resolving() facts { return facts{values: map[string]string{}} }

// Fact returns a value that does not follow from the job's arguments, such as a list of files
// with their sizes, an inferred schema, or the hash of data in memory. The first call with a name
// calls resolve, and records its value in the graph under this name, as part of the fingerprint.
// Further calls with the name, in the same build and in every later build of the run, return the
// recorded value without calling resolve. An error of resolve is returned and not recorded; the
// caller reports it with Errorf.
//
// The name must begin with the operator to which the fact belongs, such as "ReadCSV data/*.csv
// files".
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
