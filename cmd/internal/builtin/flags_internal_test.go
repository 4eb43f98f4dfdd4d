package builtin

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// withoutFlag maps the name of each parameter that no flag of an algorithm sets to the reason
// for this.
var withoutFlag = map[string]string{
	"Seed": "--seed is a flag of the engine", "PredictionCol": "named by the command", "ProbabilityCol": "named by the command",
	"DistanceCol": "named by the command", "DecisionCol": "named by the command", "ComponentCol": "named by the command", "Start": "a model that only a program can pass",
	"Means": "values that only a program can pass", "Centers": "values that only a program can pass", "CustomObjective": "a function",
	"CustomMetrics": "functions", "Schedule": "a function", "Memory": "changes only the speed",
}

// TestFlagsCoverParameters requires that every flag of an algorithm changes a parameter, and
// that for every parameter that is not in withoutFlag there is a flag that sets it.
func TestFlagsCoverParameters(t *testing.T) {
	all := columns{vector: "v", features: []string{"f"}, label: "l", weight: "w", group: "g", skip: true}
	for _, p := range algorithms {
		plain := parsedArgs(t, p)
		before, words := fieldsOf(plain.estimator(columns{})), wordsFor(p.args())
		changed := changes(before, fieldsOf(plain.estimator(all)))
		for i, flag := range plain.of.Command().Flags {
			args := parsedArgs(t, p)
			own := reflect.ValueOf(args.Own).Elem()
			if flag.Param == "" { // the flag determines how rows are read, which is not a parameter of the algorithm
				continue
			}
			change(t, own.Field(i), own.Type().Field(i))
			by := changes(before, fieldsOf(args.estimator(columns{})))
			require.NotEmpty(t, by, "%s: --%s must change a parameter", p.name, flag.Name)
			for _, name := range by { // error messages name the flag in place of the parameter
				name = strings.ReplaceAll(name, "stochastic ", "Stochastic.")
				require.Contains(t, words, name, "%s: wordsFor must have a flag for the parameter %s", p.name, name)
			}
			changed = append(changed, by...)
		}
		for name := range before {
			if withoutFlag[name] == "" && !(name == "FeatureCols" && plain.target() == model.Cluster) { // clustering algorithms read one column of vectors
				require.Contains(t, changed, name, "%s: a flag must set the parameter", p.name)
			}
		}
	}
}

// parsedArgs returns the arguments of p for a command line with the flags that p requires.
func parsedArgs(t *testing.T, p program) *training {
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
	return args.(*training)
}

// change sets v, the value of a flag, to a different value. f is the field of the flag.
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
		require.Fail(t, "change must have a case for the kind of the flag", "%s %s", f.Name, v.Kind())
	}
}

// fieldsOf returns field name -> value for the fields of a struct. The name of a field of a
// nested struct has a prefix.
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

// changes returns the names of the fields that differ, except those in withoutFlag.
func changes(before, after map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, function := withoutFlag[name]; !function && !reflect.DeepEqual(before[name], after[name]) {
			names = append(names, name)
		}
	}
	return names
}
