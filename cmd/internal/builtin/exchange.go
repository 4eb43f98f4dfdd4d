package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/onnx"
	"github.com/superstep-ml/superstep/algorithms/interchange/pmml"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// ImportArgs are the flags for importing models of other libraries. The flags state facts about
// a model that the file of the model does not contain.
type ImportArgs struct {
	Features      list `placeholder:"COLUMN,..." help:"Of xgboost and lightgbm: the columns that the model reads, in the order of its features (default: those of their names; without names the components of a vector, as in LibSVM files)."`
	Classes       list `placeholder:"NAME,..." help:"Of xgboost and lightgbm: what the labels 0, 1 and so on stand for (default: these numbers)."`
	BestRound     bool `help:"Of xgboost: take the trees up to the round that early stopping found best, if the file names it (default: all)."`
	ZeroIfMissing bool `help:"Of xgboost and lightgbm: values absent from sparse rows are 0, not missing."`
}

// given returns the name of the first flag that is given, or "" if none is.
func (a ImportArgs) given() string {
	switch {
	case len(a.Features) > 0:
		return "--features"
	case len(a.Classes) > 0:
		return "--classes"
	case a.BestRound:
		return "--best-round"
	case a.ZeroIfMissing:
		return "--zero-if-missing"
	}
	return ""
}

// options converts the flags to the options of the import packages.
func (a ImportArgs) options() gbdt.ImportOptions {
	return gbdt.ImportOptions{FeatureCols: a.Features, AbsentIsZero: a.ZeroIfMissing, BestRound: a.BestRound,
		Classes: gbdt.Classes{Type: typeOf(a.Classes), Values: a.Classes}}
}

// typeOf returns the type of class labels: int64 if all classes are integers, bool if all are true
// or false, else utf8.
func typeOf(classes []string) string {
	all := func(is func(s string) bool) bool {
		return len(classes) > 0 && !slices.ContainsFunc(classes, func(s string) bool { return !is(s) })
	}
	switch {
	case all(func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == s
	}):
		return "int64"
	case all(func(s string) bool { return s == "true" || s == "false" }):
		return "bool"
	}
	return "utf8"
}

// exchange is a model file format that other programs read or write.
type exchange struct {
	name   string
	about  string
	ending string // ending of file names, such as .json
	shared bool   // other formats have this ending too, so the ending does not select the format
	write  func(m model.Model) ([]byte, error)
	read   func(file []byte) (model.Model, error)
	// foreign is used in place of read if the format has models that another library has trained.
	foreign func(file []byte, o ImportArgs) (model.Model, error)
}

// exchanges has all formats that other programs read or write.
var exchanges = []exchange{
	{name: "onnx", about: "ONNX-ML, for runtimes of other languages; what export wrote can be read again", ending: ".onnx", write: onnx.Export, read: onnx.Import},
	{name: "pmml", about: "PMML 4.4, not of trees; what export wrote can be read again", ending: ".pmml", write: pmml.Export, read: pmml.Import},
	{name: "xgboost", about: "JSON of XGBoost, for boosted trees and forests; its own models can be read if they have trees, in either of its formats. A .json file needs --to or --from",
		ending: ".json", shared: true, write: toXGBoost((*xgboost.Model).Encode), foreign: fromXGBoost},
	{name: "xgboost-ubj", about: "the same in UBJSON, which is shorter", ending: ".ubj", write: toXGBoost((*xgboost.Model).EncodeUBJSON), foreign: fromXGBoost},
	{name: "lightgbm", about: "text of LightGBM, for boosted trees and forests; its own models can be read too", ending: ".txt", write: toLightGBM, foreign: fromLightGBM},
}

// treeModel is a model of trees that can be written in the formats of XGBoost and LightGBM.
type treeModel interface {
	XGBoost() (*xgboost.Model, error)
	LightGBM() (*lightgbm.Model, error)
}

// trees returns m as a treeModel. It returns an error if m is not a model of trees.
func trees(m model.Model) (treeModel, error) {
	g, ok := m.(treeModel)
	if !ok {
		return nil, fmt.Errorf("it is a model of kind %s: the format holds gbdt and forest, without stages before them", m.Kind())
	}
	return g, nil
}

// toXGBoost returns a function that encodes a model of trees for XGBoost. encode writes one of
// the formats of XGBoost.
func toXGBoost(encode func(x *xgboost.Model) ([]byte, error)) func(m model.Model) ([]byte, error) {
	return func(m model.Model) ([]byte, error) {
		g, err := trees(m)
		if err != nil {
			return nil, err
		}
		x, err := g.XGBoost()
		if err != nil {
			return nil, err
		}
		return encode(x)
	}
}

func toLightGBM(m model.Model) ([]byte, error) {
	g, err := trees(m)
	if err != nil {
		return nil, err
	}
	x, err := g.LightGBM()
	if err != nil {
		return nil, err
	}
	return x.Encode()
}

// fromXGBoost reads an XGBoost model. The result is a forest if this project wrote the file
// from a forest. Otherwise it is a model of boosted trees.
func fromXGBoost(file []byte, o ImportArgs) (model.Model, error) {
	x, err := xgboost.Decode(file)
	if err != nil {
		return nil, err
	}
	if m, err := forest.FromXGBoost(x); !errors.Is(err, forest.ErrForeign) {
		return forestOnly(m, err, o)
	}
	return gbdt.FromXGBoost(x, o.options())
}

func fromLightGBM(file []byte, o ImportArgs) (model.Model, error) {
	x, err := lightgbm.Decode(file)
	if err != nil {
		return nil, err
	}
	if m, err := forest.FromLightGBM(x); !errors.Is(err, forest.ErrForeign) {
		return forestOnly(m, err, o)
	}
	return gbdt.FromLightGBM(x, o.options())
}

// forestOnly returns an error if import flags are given for a forest, because the file of a
// forest already contains all facts that these flags state.
func forestOnly(m *forest.Model, err error, o ImportArgs) (model.Model, error) {
	if flag := o.given(); err == nil && flag != "" {
		err = fmt.Errorf("%s does not go with a forest that was made here: its file says what it reads", flag)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Formats returns a description of each format of models, one line per format.
func Formats() []string {
	var lines []string
	for _, e := range exchanges {
		lines = append(lines, e.name+": "+e.about)
	}
	return lines
}

// formatOf returns the format with the given name. If name is empty, the ending of path selects the
// format. flag is the name of the flag that sets name, for errors.
func formatOf(flag, name, path string) (exchange, error) {
	var all []string
	for _, e := range exchanges {
		if name == e.name || name == "" && !e.shared && strings.EqualFold(filepath.Ext(path), e.ending) {
			return e, nil
		}
		all = append(all, e.name)
	}
	if name == "" {
		return exchange{}, fmt.Errorf("%s is missing, and the name of %s does not say the format: want one of %s", flag, path, strings.Join(all, ", "))
	}
	return exchange{}, fmt.Errorf("%s is %q: want one of %s", flag, name, strings.Join(all, ", "))
}

// checkEnding returns an error if the name of the output has the ending of another format,
// because programs that choose the format by the ending would misread the file.
func (e exchange) checkEnding(output string) error {
	if strings.EqualFold(filepath.Ext(output), e.ending) {
		return nil
	}
	for _, other := range exchanges {
		if strings.EqualFold(filepath.Ext(output), other.ending) {
			return fmt.Errorf("--to %s does not go with --output %s: %s is the ending of %s; choose another ending, such as %s, or --to %s",
				e.name, output, other.ending, other.name, e.ending, other.name)
		}
	}
	return nil
}

// Export converts the model file at path to another format and writes it to output. If output
// exists, Export fails unless replace is set. ok is false if the arguments are wrong.
func Export(w io.Writer, path, format, output string, replace bool) (ok bool, err error) {
	e, err := formatOf("--to", format, output)
	if err == nil {
		err = e.checkEnding(output)
	}
	if err = errors.Join(err, requireDifferentFiles("--output", output, "the model", path)); err != nil {
		return false, err
	}
	file, err := model.ReadFile(path)
	if err != nil {
		return true, err
	}
	m, err := pipeline.DecodeAny(file)
	if err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	made, err := e.write(m)
	if err != nil {
		return true, fmt.Errorf("%s as %s: %w", path, e.name, err)
	}
	if err := WriteNew(output, replace, bytes.NewReader(made)); err != nil {
		return true, err
	}
	_, err = fmt.Fprintf(w, "%s written to %s\n", e.name, output)
	return true, err
}

// Import reads the file at path, a model in another format, and writes it to output as a model
// file. If output exists, Import fails unless replace is set. ok is false if the arguments are
// wrong.
func Import(w io.Writer, path, format, output string, replace bool, a ImportArgs) (ok bool, err error) {
	e, err := formatOf("--from", format, path)
	if err = errors.Join(err, requireDifferentFiles("--output", output, "the model", path)); err != nil {
		return false, err
	}
	if flag := a.given(); flag != "" && e.foreign == nil {
		return false, fmt.Errorf("%s is for xgboost and lightgbm: %s files say what the model reads", flag, e.name)
	}
	file, err := model.ReadFile(path)
	if err != nil {
		return true, err
	}
	var m model.Model
	if e.foreign != nil {
		m, err = e.foreign(file, a)
	} else {
		m, err = e.read(file)
	}
	if err != nil {
		return true, fmt.Errorf("%s as %s: %w", path, e.name, err)
	}
	made, err := m.Encode()
	if err != nil {
		return true, err
	}
	if err := WriteNew(output, replace, bytes.NewReader(append(made, '\n'))); err != nil {
		return true, err
	}
	_, err = fmt.Fprintf(w, "model of kind %s written to %s\n", m.Kind(), output)
	return true, err
}

// WriteNew writes the file at path atomically, with the data that source writes. If the file exists,
// WriteNew fails unless replace is set.
func WriteNew(path string, replace bool, source io.WriterTo) error {
	if _, err := os.Lstat(path); err == nil && !replace {
		return fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot write output %s: the directory %s does not exist; make it first", path, dir)
	} else if err == nil && !info.IsDir() {
		return fmt.Errorf("cannot write output %s: %s is not a directory", path, dir)
	}
	if err := wholefile.WriteFrom(path, source); err != nil {
		return fmt.Errorf("cannot write output %s: %w", path, errors.Unwrap(err))
	}
	return nil
}
