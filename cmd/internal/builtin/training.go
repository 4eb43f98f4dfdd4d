package builtin

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// algorithms has a program for each algorithm that superstep train offers.
var algorithms = trainings()

func trainings() (all []program) {
	for _, e := range catalog.Estimators() {
		of := e.Command()
		job := engine.Define("train-"+of.Name, func(b *engine.Builder, a training) error { return a.build(b) }).
			Describe("Trains a model that predicts " + of.About + ".").From(func() training { return trainingOf(e) })
		all = append(all, define(of.Name, of.About, job, streams{in: []string{"--input", "--test"}, out: []string{"--model"}}, trainedReport))
	}
	return all
}

// training has the flags for training an estimator.
type training struct {
	TrainArgs
	Own any `embed:""` // a pointer to a struct with a field for each of the estimator's own flags, in order
	of  model.Estimator
}

// trainingOf returns the flags for an estimator. None of the flags is given.
func trainingOf(of model.Estimator) training {
	var fields []reflect.StructField
	params := reflect.New(reflect.TypeOf(of)).Elem()
	for _, f := range of.Command().Flags {
		name := strings.ReplaceAll(strings.ToUpper(f.Name[:1])+f.Name[1:], "-", "_")
		tag := fmt.Sprintf("name:%q param:%q %s", f.Name, f.Param, f.Tag)
		fields = append(fields, reflect.StructField{Name: name, Type: flagType(params, f), Tag: reflect.StructTag(tag)})
	}
	return training{Own: reflect.New(reflect.StructOf(fields)).Interface(), of: of}
}

// flagType returns the Go type of the value of flag f. params has the parameters of the
// estimator.
func flagType(params reflect.Value, f model.Flag) reflect.Type {
	tag := reflect.StructTag(f.Tag)
	if f.Param == "" || tag.Get("enum") != "" {
		return reflect.TypeFor[string]()
	}
	if f.As != nil {
		return reflect.TypeOf(f.As)
	}
	of := parameter(params, f).Type()
	switch of {
	case reflect.TypeFor[[]string]():
		if tag.Get("sep") == "" {
			return reflect.TypeFor[list]()
		}
	case reflect.TypeFor[[][]string]():
		return reflect.TypeFor[sets]()
	case reflect.TypeFor[map[string]float64]():
		return reflect.TypeFor[pairs[float64]]()
	case reflect.TypeFor[map[string]int]():
		return reflect.TypeFor[pairs[int]]()
	}
	return of
}

// parameter returns the parameter in params that flag f sets.
func parameter(params reflect.Value, f model.Flag) reflect.Value {
	for name := range strings.SplitSeq(f.Param, ".") {
		params = params.FieldByName(name)
	}
	return params
}

// estimator returns the estimator with the parameters that the flags set, and with the columns
// c.
func (a training) estimator(c columns) model.Estimator {
	params := reflect.New(reflect.TypeOf(a.of)).Elem()
	for i, f := range a.of.Command().Flags {
		if f.Param != "" {
			setParameter(parameter(params, f), reflect.ValueOf(a.Own).Elem().Field(i), f.Values)
		}
	}
	set := func(value any, names ...string) {
		for _, name := range names {
			if to, v := params.FieldByName(name), reflect.ValueOf(value); to.IsValid() && !v.IsZero() {
				setParameter(to, v, nil)
			}
		}
	}
	set(c.vector, "VectorCol")
	set(c.features, "FeatureCols")
	set(c.label, "LabelCol")
	set(c.weight, "WeightCol")
	set(c.group, "GroupCol")
	set(c.prediction, "PredictionCol")
	set(c.probability, "ProbabilityCol", "DecisionCol")
	set(c.distance, "DistanceCol")
	set(c.skip, "Skip")
	if c.skip {
		set("skip", "NonFinite")
	}
	return params.Interface().(model.Estimator)
}

// setParameter sets a parameter to the value of a flag. The value of an enum flag is a text
// that the parser has checked. The value of its parameter is looked up in values, or parsed
// from the text.
func setParameter(to, value reflect.Value, values map[string]any) {
	switch text, reads := to.Addr().Interface().(encoding.TextUnmarshaler); {
	case values != nil:
		if v, ok := values[value.String()]; ok {
			to.Set(reflect.ValueOf(v))
		}
	case reads && value.Kind() == reflect.String:
		_ = text.UnmarshalText([]byte(value.String()))
	default:
		to.Set(value.Convert(to.Type()))
	}
}

// target returns what the estimator predicts.
func (a training) target() model.Target { return a.estimator(columns{}).Predicts().Target }

// own returns the value of the estimator's own flag with the given name. ok is false if there
// is no such flag.
func (a training) own(name string) (v reflect.Value, ok bool) {
	for i, f := range a.of.Command().Flags {
		if f.Name == name {
			return reflect.ValueOf(a.Own).Elem().Field(i), true
		}
	}
	return v, false
}

// text returns the text of the estimator's own flag with the given name, or "" if there is no
// such flag.
func (a training) text(name string) string {
	if v, ok := a.own(name); ok {
		return v.String()
	}
	return ""
}

// otherColumns returns flag name -> names of the columns that the flag names, for all columns
// that are read in addition to features, label and weight.
func (a training) otherColumns() map[string][]string {
	by := map[string][]string{}
	for i, f := range a.of.Command().Flags {
		if _, reads := reflect.StructTag(f.Tag).Lookup("reads"); !reads {
			continue
		}
		switch v := reflect.ValueOf(a.Own).Elem().Field(i).Interface().(type) {
		case string:
			by["--"+f.Name] = one(v)
		case list:
			by["--"+f.Name] = v
		}
	}
	return by
}

// trainedBy returns the names of the algorithms for whose predictions such returns true, joined
// by " and ".
func trainedBy(such func(p model.Prediction) bool) string {
	var names []string
	for _, e := range catalog.Estimators() {
		if such(e.Predicts()) {
			names = append(names, e.Command().Name)
		}
	}
	return strings.Join(names, " and ")
}

// one returns a list that contains only column, or an empty list if column is "".
func one(column string) []string {
	if column == "" {
		return nil
	}
	return []string{column}
}
