package builtin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/parquet"
)

// InputArgs are the flags that describe the format of files with rows.
type InputArgs struct {
	Format    string    `enum:"auto,csv,libsvm,arrow,parquet" default:"auto" placeholder:"FORM" help:"How files, or standard input as -, are written: csv, libsvm, arrow, parquet or auto (the default). auto goes by the name, and for a directory by the names of its files: .libsvm and .svm are LibSVM, .arrow, .arrows and .feather Arrow, .parquet Parquet, the rest CSV. Of standard input it reads the first bytes."`
	Delimiter string    `placeholder:"CHARACTER" help:"What separates the cells of CSV: a character, or tab (default: a comma, a tab where names end in .tsv)."`
	NoHeader  bool      `help:"The first line of CSV is a row; the columns are c0, c1 and so on."`
	Null      spellings `placeholder:"TEXT" help:"How missing values are written in CSV, in any column, beside the empty cell, as in NA,-,?. By default these are NA, N/A, null, ? and their like where the other values of a column are numbers, or true and false; a model remembers how they were written where it was trained."`
	InferRows int       `want:"0..2147483647" param:"SampleRows" placeholder:"ROWS" help:"Rows of CSV from which the types of columns are inferred. A column without a value in these rows gets as many rows from its first value on. 0 (the default) takes 10,000."`

	Types pairs[string] `placeholder:"COLUMN=TYPE" help:"Types of columns of CSV that are not to be inferred: bool, int64, float64 or utf8 (text), as in age=float64;id=utf8."`

	Comment   string `placeholder:"CHARACTER" help:"Begins lines of CSV to pass over, such as '#' (default: no line is)."`
	SkipLines int    `want:"0..2147483647" placeholder:"N" help:"Lines to pass over at the beginning of each CSV file, before the header."`
	Encoding  string `enum:"utf-8,utf-16,latin1,windows-1252" default:"utf-8" placeholder:"NAME" help:"How the characters of CSV are written: utf-8 (the default), utf-16, latin1 or windows-1252."`
	ZeroBased *bool  `help:"Indices of LibSVM files count from 0 (default: as in the training of the model, and in training from 1). --zero-based=false has them count from 1."`

	others     string     // type of the CSV columns that the model does not read; "" to infer their types
	inferred   []string   // columns to which the field others does not apply: their types are inferred
	unreadable unreadable // records columns that are left out, unless it is nil
	index      index      // records index columns, unless it is nil

	forms map[string]string // path -> form, set by resolved; nil before resolved is called
}

// unreadable maps columns that are left out to the reason why they cannot be read.
type unreadable map[columnOf]string

// columnOf identifies a column of the files at a path.
type columnOf struct{ path, column string }

// problems returns what is wrong with the flags.
func (a InputArgs) problems() error {
	_, err := a.delimiter("")
	if _, wrong := a.comment(); wrong != nil {
		err = errors.Join(err, wrong)
	}
	for _, column := range slices.Sorted(maps.Keys(a.Types)) {
		if kind := a.Types[column]; !slices.Contains([]string{"bool", "int64", "float64", "utf8"}, kind) {
			err = errors.Join(err, fmt.Errorf("--types: column %q is to be %q: want bool, int64, float64 or utf8", column, kind))
		}
	}
	return err
}

// requireDifferentFiles returns an error if the output would overwrite an input file.
func requireDifferentFiles(outputFlag, output, inputFlag, input string) error {
	written, err := os.Stat(output)
	if err != nil {
		return nil // the output does not exist, or the job reports the error
	}
	if read, err := os.Stat(input); err == nil && os.SameFile(written, read) {
		return fmt.Errorf("%s and %s are the same file, %s: it would be lost", outputFlag, inputFlag, output)
	}
	return nil
}

// requireOutside returns an error if the output is among the files of input, a directory or a
// glob, because the next run would then read the output too.
func requireOutside(output, input string) error {
	in, err := filepath.Abs(input)
	if err != nil {
		return nil // the job reports the error
	}
	out, err := filepath.Abs(output)
	if err != nil {
		return nil
	}
	read := false
	if info, err := os.Stat(input); err == nil {
		read = info.IsDir() && filepath.Dir(out) == in
	} else {
		read, _ = filepath.Match(in, out)
	}
	if hidden := strings.HasPrefix(filepath.Base(out), ".") || strings.HasPrefix(filepath.Base(out), "_"); !read || hidden {
		return nil
	}
	return fmt.Errorf("--output %s is one of the files that --input %s stands for, so that the next run would read it as well: choose another directory, or a narrower --input", output, input)
}

func (a InputArgs) delimiter(path string) (byte, error) {
	switch {
	case a.Delimiter == "" && a.formByName(path) == tsvForm, a.Delimiter == "tab", a.Delimiter == `\t`:
		return '\t', nil
	case a.Delimiter == "":
		return ',', nil
	case len(a.Delimiter) == 1 && a.Delimiter[0] < 0x80:
		return a.Delimiter[0], nil
	}
	return 0, fmt.Errorf("--delimiter is %q: want one ASCII character, or tab", a.Delimiter)
}

// read adds a source that reads the rows of the files at path. inputs are the columns that a
// model reads, or nil if there is no model. In CSV files, these columns get the types that the
// model was trained on, but a column of numbers may have any numeric type unless exact contains
// it. The types of other columns are inferred. If inputs is nil, the files must have rows to
// infer types from. Rows of LibSVM files are read as vectors with the number of features that
// the model expects.
func (a InputArgs) read(b *engine.Builder, path string, inputs []model.Input, exact ...string) (*engine.Dataset, error) {
	form := a.form(path)
	if err := a.checkForm(path, form); err != nil {
		return nil, err
	}
	switch form {
	case libsvmForm:
		size := 0
		for _, in := range inputs {
			size = max(size, model.VectorDim(in.Type))
		}
		return operators.ReadLibSVM(b, path, operators.LibSVMOptions{Size: size, ZeroBased: a.zeroBased()}), nil
	case arrowForm:
		return operators.ReadArrow(b, path, operators.ArrowOptions{LeaveOut: a.leaveOut(path), Index: a.indexOf(path)}), nil
	case parquetForm:
		return parquet.Read(b, path, parquet.ReadOptions{LeaveOut: a.leaveOut(path), Index: a.indexOf(path)}), nil
	}
	options, err := a.csv(path)
	if err != nil {
		return nil, err
	}
	types, loose := typesOf(inputs, exact)
	for column, kind := range a.Types {
		types[column] = kind
		loose = slices.DeleteFunc(loose, func(c string) bool { return c == column })
	}
	options.Types, options.OrBool, options.Others, options.Infer, options.NeedRows = types, loose, a.others, a.inferred, inputs == nil
	return operators.ReadCSV(b, path, options), nil
}

// onlyInferring returns a copy of the flags with which types are inferred only for the given
// CSV columns. Columns that the model reads have the types that the model states. All other
// columns are read as text: they are not used, and every value is valid as text.
func (a InputArgs) onlyInferring(columns ...string) InputArgs {
	a.others, a.inferred = "utf8", columns
	return a
}

// leaveOut returns a function that records columns of the files at path that cannot be read and are
// left out.
func (a InputArgs) leaveOut(path string) func(column, problem string) {
	return func(column, problem string) {
		if a.unreadable != nil {
			a.unreadable[columnOf{path, column}] = problem
		}
	}
}

// checkForm returns an error if a flag has no effect on files of the given form, or if a file
// is compressed and its form is Arrow or Parquet.
func (a InputArgs) checkForm(path, form string) error {
	if _, packed := unpacked(path); packed != "" && (form == parquetForm || form == arrowForm) {
		return fmt.Errorf("%s is packed, and %s files are read as they are: unpack it", path, form)
	}
	if form != libsvmForm && a.ZeroBased != nil {
		return fmt.Errorf("--zero-based is for LibSVM files, and %s is read as %s", path, form)
	}
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--types", len(a.Types) > 0}, {"--delimiter", a.Delimiter != ""}, {"--no-header", a.NoHeader}, {"--infer-rows", a.InferRows > 0}, {"--comment", a.Comment != ""}, {"--skip-lines", a.SkipLines > 0}, {"--encoding", a.Encoding != "" && a.Encoding != "utf-8"}, {"--null", len(a.Null) > 0}} {
		if form != csvForm && f.given {
			return fmt.Errorf("%s is for CSV, and %s is read as %s", f.flag, path, form)
		}
	}
	return nil
}

// comment returns the character that begins comment lines, or 0 if there are no comment lines.
func (a InputArgs) comment() (byte, error) {
	switch {
	case a.Comment == "":
		return 0, nil
	case len(a.Comment) == 1 && a.Comment[0] > ' ' && a.Comment[0] < 0x80:
		return a.Comment[0], nil
	}
	return 0, fmt.Errorf("--comment is %q: want one ASCII character that is no blank", a.Comment)
}

// csv returns the options for CSV files that the flags set, with the types of --types.
func (a InputArgs) csv(path string) (operators.CSVOptions, error) {
	delimiter, err := a.delimiter(path)
	comment, wrong := a.comment()
	err = errors.Join(err, wrong)
	o := operators.CSVOptions{Comment: comment, SkipLines: a.SkipLines, Encoding: a.Encoding, Header: !a.NoHeader,
		TrimSpace: true, Delimiter: delimiter, SampleRows: a.InferRows, Types: maps.Clone(map[string]string(a.Types)), NeedRows: true}
	if o.Types == nil {
		o.Types = map[string]string{}
	}
	if len(a.Null) > 0 {
		o.Nulls, o.QuotedNulls = append([]string{""}, a.Null...), true
	}
	return o, err
}

// typesOf returns the types with which the columns that a model reads are read from CSV files.
// Columns of numbers are float64, which accepts all numbers, unless exact contains them. loose
// has these float64 columns. They may also contain true and false, because a model also reads
// columns of type bool as numbers.
func typesOf(inputs []model.Input, exact []string) (types map[string]string, loose []string) {
	types = map[string]string{}
	for _, in := range inputs {
		switch {
		case slices.Contains(exact, in.Column):
			types[in.Column] = in.Type
		case strings.Contains(in.Type, "vector"), strings.Contains(in.Type, "sparse"):
		case strings.HasPrefix(in.Type, "int"), strings.HasPrefix(in.Type, "uint"), strings.HasPrefix(in.Type, "float"):
			types[in.Column] = "float64"
			loose = append(loose, in.Column)
		default:
			types[in.Column] = in.Type
		}
	}
	return types, loose
}

// vectorSize returns the number of components that the type of a vector column states, or 0 if
// it states none.
func vectorSize(dt arrow.DataType) int {
	switch dt := dt.(type) {
	case *arrow.FixedSizeListType:
		return int(dt.Len())
	case *arrow.StructType: // sparse: the metadata of the first field has the size
		for _, v := range dt.Field(0).Metadata.Values() {
			if n, err := strconv.Atoi(v); err == nil {
				return n
			}
		}
	}
	return 0
}

// columnType is a class of column types that commands treat in the same way.
type columnType int

const (
	numbers columnType = iota
	texts
	vectors
	others
)

func (s columnType) String() string {
	return [...]string{"numbers", "text", "vectors", "neither numbers, text nor vectors"}[s]
}

// columnTypeOf returns the class of an Arrow type.
func columnTypeOf(dt arrow.DataType) columnType {
	if batch.IsNumber(dt) {
		return numbers
	}
	switch dt.ID() {
	case arrow.STRING:
		return texts
	case arrow.LIST, arrow.FIXED_SIZE_LIST, arrow.STRUCT:
		return vectors
	}
	return others
}

// names returns the names of the columns of a schema.
func names(schema *arrow.Schema) []string {
	var all []string
	for _, f := range schema.Fields() {
		all = append(all, f.Name)
	}
	return all
}

// known returns an error if a column that the given flag names is not in schema, the schema of
// the files at path.
func (a InputArgs) known(flag, path string, schema *arrow.Schema, columns ...string) error {
	var errs []error
	for _, c := range columns {
		if c == "" || schema.HasField(c) {
			continue
		}
		if problem := a.unreadable[columnOf{path, c}]; problem != "" {
			errs = append(errs, fmt.Errorf("%s: column %q of %s: %s", flag, c, path, problem))
			continue
		}
		err := fmt.Errorf("%s: %s has no column %q", flag, path, c)
		if near := spelling.Near(c, names(schema)); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %q?", err, near[0])
		} else {
			err = fmt.Errorf("%w; it has %s", err, humanize.Quoted(names(schema), ", "))
			if schema.NumFields() == 1 && strings.ContainsAny(schema.Field(0).Name, ";\t|") {
				err = fmt.Errorf("%w: --delimiter says what separates cells", err)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unused returns name with underscores appended until no column of schema has the result.
func unused(schema *arrow.Schema, name string) string {
	for schema.HasField(name) {
		name += "_"
	}
	return name
}
