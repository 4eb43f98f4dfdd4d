package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/textfile"
	"github.com/superstep-ml/superstep/operators"
)

// Forms are the formats of files with rows.
const (
	csvForm     = "csv"
	tsvForm     = "tsv" // CSV with tabs between cells; --format=csv includes it
	libsvmForm  = "libsvm"
	arrowForm   = "arrow"
	parquetForm = "parquet"
)

// formOf returns the form that belongs to the ending of a file name, or "" if the ending
// belongs to no form.
func formOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return csvForm
	case ".tsv":
		return tsvForm
	case ".libsvm", ".svm":
		return libsvmForm
	case ".arrow", ".arrows", ".feather":
		return arrowForm
	case ".parquet":
		return parquetForm
	}
	return ""
}

// outputForm returns the form in which a file with the given name is written.
func outputForm(name string) string {
	if form := formOf(name); form != "" && form != tsvForm {
		return form
	}
	return csvForm
}

// unpacked splits a file name into the name without the ending of a compressed file, such as
// .gz, and that ending.
func unpacked(name string) (bare, ending string) {
	switch ext := filepath.Ext(name); strings.ToLower(ext) {
	case ".gz", ".gzip", ".zst", ".zstd":
		return strings.TrimSuffix(name, ext), ext
	}
	return name, ""
}

// inputForm returns the form that belongs to name after removing the ending of a compressed
// file.
func inputForm(name string) string {
	bare, _ := unpacked(name)
	return formOf(bare)
}

// commonForm returns the form to which all names in files belong. It returns an error if they
// belong to different forms. files are the files of path, a directory or a glob. A name without
// the ending of a form counts as CSV.
func commonForm(path string, files []string) (string, error) {
	common := ""
	for _, f := range files {
		form := inputForm(f)
		if form == "" {
			form = csvForm
		}
		if common != "" && form != common {
			advice := ", or say with --format how all are written"
			if common == tsvForm && form == csvForm || common == csvForm && form == tsvForm {
				advice = ""
			}
			return "", fmt.Errorf("%s names files in several forms: by its name %s is %s, and %s is %s; name those of one form, such as %s%s",
				path, filepath.Base(files[0]), common, filepath.Base(f), form, globOf(files[0], f), advice)
		}
		common = form
	}
	return common, nil
}

// globOf returns a glob for files with the same ending as the name first. If that ending
// belongs to no form, it returns a glob for the ending of the name second.
func globOf(first, second string) string {
	name := first
	if inputForm(first) == "" {
		name = second
	}
	bare, packed := unpacked(name)
	return filepath.Join(filepath.Dir(name), "*"+filepath.Ext(bare)+packed)
}

// form returns the form of the files at a path. This is the value of --format or, without that
// flag, the form that belongs to the ending of the path or, for a directory or a glob, to the
// names of its files. form returns csv for tsv files.
func (a InputArgs) form(path string) string {
	if a.Format != "auto" && a.Format != "" {
		return a.Format
	}
	if form := a.formByName(path); form != tsvForm {
		return form
	}
	return csvForm
}

// formByName returns the form that belongs to the name of the path or to the names of its
// files. The result may be tsv.
func (a InputArgs) formByName(path string) string {
	if form := inputForm(filepath.Clean(path)); form != "" {
		return form
	}
	if form := a.forms[path]; form != "" {
		return form
	}
	form, err := commonForm(path, filesAt(path))
	if err != nil || form == "" {
		return csvForm // the job reports the error
	}
	return form
}

// filesAt returns the files of a directory or a glob, and nil for other paths.
func filesAt(path string) []string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() || err != nil && !strings.ContainsAny(path, "*?[") {
		return nil
	}
	files, err := textfile.Resolve(path)
	if err != nil {
		return nil
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

// resolved returns a with the forms of the files at paths. The forms are determined only once,
// so that all processes of the job use the same forms. resolved returns an error if the files
// of a path have different forms.
func (a InputArgs) resolved(b *engine.Builder, paths ...string) (InputArgs, error) {
	a.forms = map[string]string{}
	if a.Format != "auto" && a.Format != "" {
		return a, nil
	}
	for _, path := range slices.Compact(paths) {
		if path == "" || inputForm(filepath.Clean(path)) != "" {
			continue
		}
		a.forms[path] = csvForm
		in, err := operators.ResolveInput(b, nil, path)
		if err != nil {
			continue // reading reports the error
		}
		if a.forms[path], err = commonForm(path, in.Paths()); err != nil {
			return a, err
		}
	}
	return a, nil
}
