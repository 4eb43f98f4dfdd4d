package lightgbm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

const (
	// MaxFile is the largest file that Load reads, in bytes.
	MaxFile = 1<<31 - 1
	// maxOutputs is the largest number of trees in an iteration.
	maxOutputs = 1 << 16
)

// Load reads a model file that Booster.save_model of LightGBM 2 to 4 wrote.
func Load(path string) (*Model, error) {
	data, err := wholefile.Read(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("lightgbm: %w", err)
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return m, nil
}

// Decode reads a model. Errors contain the number of the line. Trees with linear models in
// their leaves are refused. The model keeps no reference to data.
func Decode(data []byte) (*Model, error) {
	r := &reader{rest: string(data)}
	m, err := r.model()
	if err != nil {
		return nil, fmt.Errorf("lightgbm: line %d: %w", r.line, err)
	}
	return m, nil
}

// reader reads the lines of a file.
type reader struct {
	rest string
	line int // number of the last line that was read, from 1
	ends bool
}

// next returns the next line without its line end. It returns false after the last line.
func (r *reader) next() (string, bool) {
	if r.rest == "" {
		r.ends = true
		return "", false
	}
	line, rest, _ := strings.Cut(r.rest, "\n")
	r.rest = rest
	r.line++
	return strings.TrimSuffix(line, "\r"), true
}

// header has the lines before the trees, and the numbers of these lines. Its keys are the names
// at the beginning of the lines.
type header struct {
	values map[string]string
	lines  map[string]int
}

func (r *reader) model() (*Model, error) {
	first, ok := r.next()
	switch {
	case !ok:
		return nil, errors.New("the file is empty")
	case first != "tree":
		return nil, fmt.Errorf("it is %s: the first line of a model is \"tree\"", shorten(first))
	}
	h := header{map[string]string{}, map[string]int{}}
	line, err := r.header(h)
	if err != nil {
		return nil, err
	}
	m := &Model{Ensemble: &tree.Ensemble{}, Version: h.values["version"]}
	if at, err := m.head(h); err != nil {
		if at > 0 {
			r.line = at
		}
		return nil, err
	}
	e := m.Ensemble
	for strings.HasPrefix(line, "Tree=") {
		if want := "Tree=" + strconv.Itoa(len(e.Trees)); line != want {
			return nil, fmt.Errorf("it is %s: want %s", shorten(line), want)
		}
		var t tree.Tree
		if line, err = r.tree(&t, len(e.Features)); err != nil {
			return nil, fmt.Errorf("tree %d: %w", len(e.Trees), err)
		}
		t.Output, t.Weight = int32(len(e.Trees)%e.Outputs), 1
		e.Trees = append(e.Trees, t)
	}
	switch {
	case line != "end of trees" && (!r.ends || h.lines["tree_sizes"] > 0 || len(e.Trees) == 0):
		// Files of versions before 2.2 end with the last tree, or with lines about features.
		return nil, fmt.Errorf("it is %s: want \"end of trees\"", shorten(line))
	case len(e.Trees)%e.Outputs != 0:
		return nil, fmt.Errorf("there are %d trees, and %d in each iteration", len(e.Trees), e.Outputs)
	}
	if sizes, ok := h.values["tree_sizes"]; ok {
		if n := len(strings.Fields(sizes)); n != len(e.Trees) {
			return nil, fmt.Errorf("there are %d trees, and tree_sizes has %d", len(e.Trees), n)
		}
	}
	if err := r.tail(m); err != nil {
		return nil, err
	}
	return m, e.Validate()
}

// header reads the lines up to the first tree into h, and returns the first line of that tree.
func (r *reader) header(h header) (string, error) {
	for {
		line, ok := r.next()
		if !ok || line == "end of trees" || strings.HasPrefix(line, "Tree=") {
			return line, nil
		}
		name, value, _ := strings.Cut(line, "=")
		if name == "" {
			continue
		}
		if h.lines[name] > 0 {
			return "", fmt.Errorf("%s occurs twice", shorten(name))
		}
		h.values[name], h.lines[name] = value, r.line
	}
}

// head sets the fields of the model from the header. If it returns an error, the integer is the
// number of the line with the error, or 0.
func (m *Model) head(h header) (int, error) {
	e := m.Ensemble
	count := func(name string, least, most int) (int, error) {
		text, ok := h.values[name]
		if !ok {
			return 0, fmt.Errorf("there is no %s before the trees", name)
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s is %s: want an integer from %d to %d", name, shorten(text), least, most)
		}
		return n, nil
	}
	classes, err := count("num_class", 1, maxOutputs)
	if err != nil {
		return h.lines["num_class"], err
	}
	e.Outputs = classes
	if h.lines["num_tree_per_iteration"] > 0 {
		if e.Outputs, err = count("num_tree_per_iteration", 1, maxOutputs); err != nil {
			return h.lines["num_tree_per_iteration"], err
		}
	}
	e.Base = make([]float64, e.Outputs)
	if m.LabelIndex, err = count("label_index", -1, math.MaxInt32); err != nil {
		return h.lines["label_index"], err
	}
	last, err := count("max_feature_idx", 0, math.MaxInt32-1)
	if err != nil {
		return h.lines["max_feature_idx"], err
	}
	e.Features = strings.Fields(h.values["feature_names"])
	if len(e.Features) != last+1 {
		return h.lines["feature_names"], fmt.Errorf("feature_names has %d names, and max_feature_idx is %d", len(e.Features), last)
	}
	m.Ranges = strings.Fields(h.values["feature_infos"])
	if len(m.Ranges) != last+1 {
		return h.lines["feature_infos"], fmt.Errorf("feature_infos has %d features: there are %d", len(m.Ranges), last+1)
	}
	_, e.Average = h.values["average_output"]
	if err := m.monotone(h.values["monotone_constraints"]); err != nil {
		return h.lines["monotone_constraints"], err
	}
	return h.lines["objective"], m.objective(h.values["objective"])
}

func (m *Model) monotone(text string) error {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil
	}
	if n := len(m.Ensemble.Features); len(fields) != n {
		return fmt.Errorf("monotone_constraints has %d features: there are %d", len(fields), n)
	}
	for _, f := range fields {
		v, err := strconv.ParseInt(f, 10, 8)
		if err != nil || v < -1 || v > 1 {
			return fmt.Errorf("the constraint %s is not one of -1, 0 and 1", shorten(f))
		}
		m.Monotone = append(m.Monotone, int8(v))
	}
	return nil
}

// objective sets the name and the parameters of the objective from the text of its line.
func (m *Model) objective(text string) error {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil
	}
	m.Objective = fields[0]
	o, err := objectiveOf(m.Objective)
	if err != nil {
		return err
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, ":")
		if m.Parameters == nil {
			m.Parameters = map[string]string{}
		}
		m.Parameters[name] = value
	}
	if text, ok := m.Parameters["sigmoid"]; ok {
		if v, err := strconv.ParseFloat(text, 64); err != nil || !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("sigmoid is %s: want a number above 0", shorten(text))
		}
	}
	n := m.Ensemble.Outputs
	classes, ok := m.Parameters["num_class"]
	switch {
	case o.classes && ok && classes != strconv.Itoa(n):
		return fmt.Errorf("num_class is %s, and there are %d trees in each iteration", shorten(classes), n)
	case !o.classes && n > 1 && m.Objective != "custom":
		return fmt.Errorf("%s has %d trees in each iteration: want 1", m.Objective, n)
	}
	return nil
}

// tail reads the lines after the trees.
func (r *reader) tail(m *Model) error {
	within := false
	for {
		line, ok := r.next()
		switch {
		case !ok && within:
			return errors.New("the parameters have no end")
		case !ok:
			return nil
		case line == "parameters:":
			within = true
		case line == "end of parameters":
			within = false
		case within && line == "":
		case within:
			m.Settings = append(m.Settings, line)
		case strings.HasPrefix(line, "pandas_categorical:"):
			if err := m.pandas(strings.TrimPrefix(line, "pandas_categorical:")); err != nil {
				return err
			}
		}
	}
}

// shorten shortens text for messages.
func shorten(s string) string {
	if len(s) > 40 {
		return strconv.Quote(strings.ToValidUTF8(s[:40], "")) + "…"
	}
	return strconv.Quote(s)
}

// categorical returns the numbers of the features whose range is a list of categories.
func categorical(ranges []string) []int {
	var made []int
	for i, text := range ranges {
		if text != "none" && !strings.HasPrefix(text, "[") {
			made = append(made, i)
		}
	}
	return slices.Clip(made)
}
