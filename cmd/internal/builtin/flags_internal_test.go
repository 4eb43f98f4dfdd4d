package builtin

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// unflagged are the parameters that no flag of an algorithm sets, and why.
var unflagged = map[string]string{
	"Seed": "--seed is one of the engine", "PredictionCol": "named by the command", "ProbabilityCol": "named by the command",
	"DistanceCol": "named by the command", "DecisionCol": "named by the command", "ComponentCol": "named by the command", "Start": "a model of a program",
	"Means": "first values of a program", "Centers": "first values of a program", "CustomObjective": "a function",
	"CustomMetrics": "functions", "Schedule": "a function", "Memory": "of speed alone",
}

// ofRows are the flags that say how rows are read, which parameters do not tell.
var ofRows = []string{"Group", "GroupSizes", "TestSizes"}

// Every flag of an algorithm changes its parameters, and every parameter has a flag.
func TestFlagsCoverParameters(t *testing.T) {
	all := columns{vector: "v", features: []string{"f"}, label: "l", weight: "w", group: "g", skip: true}
	for _, p := range algorithms {
		plain := parsedArgs(t, p)
		before, words := fieldsOf(plain.stage(columns{})), wordsFor(p.args())
		changed := changes(before, fieldsOf(plain.stage(all)))
		for _, path := range flagPaths(reflect.TypeOf(plain).Elem(), nil) {
			args := parsedArgs(t, p)
			field := reflect.TypeOf(args).Elem().FieldByIndex(path)
			if slices.Contains(ofRows, field.Name) {
				continue
			}
			change(t, reflect.ValueOf(args).Elem().FieldByIndex(path), field)
			by := changes(before, fieldsOf(args.stage(columns{})))
			require.NotEmpty(t, by, "%s: the flag of %s changes no parameter", p.name, field.Name)
			for _, name := range by { // messages name it by the flag
				name = strings.ReplaceAll(name, "stochastic ", "Stochastic.")
				require.Contains(t, words, name, "%s: no flag has the words for %s", p.name, name)
			}
			changed = append(changed, by...)
		}
		for name := range before {
			if unflagged[name] == "" && !(name == "FeatureCols" && plain.goal() == clustersGoal) { // they get a vector
				require.Contains(t, changed, name, "%s: no flag sets the parameter", p.name)
			}
		}
	}
}

// parsedArgs returns the arguments of a program with what it requires.
func parsedArgs(t *testing.T, p program) trainer {
	args := p.args()
	parser, err := kong.New(args)
	require.NoError(t, err)
	words := []string{"--label", "l"}
	given := map[string]string{"input": "x.csv", "model": "m.json", "k": "3", "objective": "squared", "task": "regression"}
	for _, f := range parser.Model.Flags {
		if f.Required {
			words = append(words, "--"+f.Name, given[f.Name])
		}
	}
	_, err = parser.Parse(words)
	require.NoError(t, err, p.name)
	return args.(trainer)
}

// flagPaths returns where the fields are that are flags of the algorithm alone.
func flagPaths(of reflect.Type, at []int) [][]int {
	var paths [][]int
	for i := range of.NumField() {
		f, path := of.Field(i), append(slices.Clone(at), i)
		switch {
		case f.Type == reflect.TypeFor[TrainArgs]():
		case f.Anonymous:
			paths = append(paths, flagPaths(f.Type, path)...)
		default:
			paths = append(paths, path)
		}
	}
	return paths
}

// change gives a flag another value.
func change(t *testing.T, v reflect.Value, f reflect.StructField) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.25)
	case reflect.String:
		values := strings.Split(f.Tag.Get("enum"), ",")
		if f.Tag.Get("enum") == "" {
			values = []string{"other"}
		}
		v.SetString(values[slices.IndexFunc(values, func(s string) bool { return s != v.String() })])
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		m.SetMapIndex(reflect.ValueOf("key"), reflect.New(v.Type().Elem()).Elem())
		v.Set(m)
	default:
		require.Fail(t, "a flag of a kind that is new here", "%s %s", f.Name, v.Kind())
	}
}

// fieldsOf returns the parameters by their names, those of a struct within beside them.
func fieldsOf(params any) map[string]any {
	fields := map[string]any{}
	v := reflect.ValueOf(params)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Struct {
			for name, value := range fieldsOf(f.Interface()) {
				fields["stochastic "+name] = value
			}
		} else {
			fields[v.Type().Field(i).Name] = f.Interface()
		}
	}
	return fields
}

// changes returns the names of what differs.
func changes(before, after map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, function := unflagged[name]; !function && !reflect.DeepEqual(before[name], after[name]) {
			names = append(names, name)
		}
	}
	return names
}
