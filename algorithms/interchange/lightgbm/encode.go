package lightgbm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// maxLeaves is the largest number of leaves of a tree that LightGBM itself makes.
const maxLeaves = 1 << 17

// Encode returns the model in version 4 of the text format, which LightGBM 2 to 4 can read.
// LightGBM's predictions equal those of the ensemble, also for rows of float64, except for the
// order of additions. Equal models give equal bytes.
//
//   - The base is added to the leaf values of each output's first tree or, if the ensemble
//     averages, of all its trees. The weight of a tree is multiplied into its leaf values.
//   - A tree whose leaves have values for several outputs becomes one tree for each output.
//   - LightGBM sends missing values of categorical features right, to the side of the
//     categories outside the set. If the model sends them to the side of the set, an additional
//     node above this node separates the missing values, and sends them to a copy of the
//     subtree on the side of the set. It is an error if a tree would then have more than
//     131,072 leaves.
//   - Blanks in the names of features are replaced by underscores.
//   - If all categorical features have names of categories, these names are written like the
//     categories of a data frame (pandas_categorical). LightGBM in Python then takes either
//     frames whose text columns have pandas' categorical type, or codes. LightGBM in other
//     languages takes the codes.
func (m *Model) Encode() ([]byte, error) {
	b, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("lightgbm: %w", err)
	}
	return b, nil
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if err := wholefile.Write(path, data); err != nil {
		return fmt.Errorf("lightgbm: %w", err)
	}
	return nil
}

func (m *Model) encode() ([]byte, error) {
	e := m.Ensemble
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	var trees []byte
	var sizes []int
	splits := make([]int, len(e.Features))
	for i, p := range m.place() {
		from := len(trees)
		var err error
		if trees, err = p.append(trees, i, e, splits); err != nil {
			return nil, err
		}
		sizes = append(sizes, len(trees)-from)
	}
	names := m.names()
	b := []byte("tree\nversion=v4\n")
	b = fmt.Appendf(b, "num_class=%d\nnum_tree_per_iteration=%d\nlabel_index=%d\nmax_feature_idx=%d\n",
		e.Outputs, e.Outputs, m.LabelIndex, len(e.Features)-1)
	if m.Objective != "" {
		b = fmt.Appendf(b, "objective=%s\n", m.objectiveLine())
	}
	if e.Average {
		b = append(b, "average_output\n"...)
	}
	b = fmt.Appendf(b, "feature_names=%s\n", strings.Join(names, " "))
	if m.Monotone != nil {
		b = appendLine(b, "monotone_constraints", m.Monotone, appendInteger)
	}
	b = fmt.Appendf(b, "feature_infos=%s\n", strings.Join(m.ranges(), " "))
	b = append(appendLine(b, "tree_sizes", sizes, appendInteger), '\n')
	b = append(append(b, trees...), "end of trees\n\nfeature_importances:\n"...)
	for _, i := range byImportance(splits) {
		b = fmt.Appendf(b, "%s=%d\n", names[i], splits[i])
	}
	b = append(b, "\nparameters:\n"...)
	for _, line := range m.Settings {
		b = append(append(b, line...), '\n')
	}
	return m.appendPandas(append(b, "\nend of parameters\n"...))
}

// appendPandas appends the line with the names of the categories of each categorical feature,
// in the order of the features. If one of these features has no names, it appends nothing,
// because LightGBM would assign the names to the wrong features.
func (m *Model) appendPandas(b []byte) ([]byte, error) {
	e := m.Ensemble
	at := categorical(m.ranges())
	columns := make([][]any, len(at))
	for i, f := range at {
		if e.Categories == nil || e.Categories[f] == nil {
			return b, nil
		}
		columns[i] = []any{}
		for _, name := range e.Categories[f] {
			switch {
			case !utf8.ValidString(name):
				return nil, fmt.Errorf("the category %s of feature %q is not UTF-8, which the file would have to be", shorten(name), e.Features[f])
			case m.Bare != nil && m.Bare[f] && isLiteral(name):
				columns[i] = append(columns[i], json.RawMessage(name))
			default:
				columns[i] = append(columns[i], name)
			}
		}
	}
	if len(columns) == 0 {
		return b, nil
	}
	text, err := json.Marshal(columns)
	if err != nil {
		return nil, fmt.Errorf("the names of categories: %w", err)
	}
	return append(append(append(b, "\npandas_categorical:"...), text...), '\n'), nil
}

// isLiteral reports whether text is a number or a bool of JSON.
func isLiteral(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	switch v.(type) {
	case float64, bool:
		return true
	}
	return false
}

// check returns an error about facts that a file cannot express.
func (m *Model) check() error {
	e := m.Ensemble
	o, err := objectiveOf(m.Objective)
	switch {
	case err != nil:
		return err
	case len(e.Features) == 0:
		return errors.New("the ensemble has no features: LightGBM reads no model without")
	case !o.classes && e.Outputs > 1 && m.Objective != "" && m.Objective != "custom":
		return fmt.Errorf("the ensemble has %d outputs, and %s has one", e.Outputs, m.Objective)
	case m.Ranges != nil && len(m.Ranges) != len(e.Features):
		return fmt.Errorf("there are %d ranges of %d features", len(m.Ranges), len(e.Features))
	case m.Bare != nil && len(m.Bare) != len(e.Features):
		return fmt.Errorf("there are %d elements of Bare, and %d features", len(m.Bare), len(e.Features))
	case m.Monotone != nil && len(m.Monotone) != len(e.Features):
		return fmt.Errorf("there are %d constraints of %d features", len(m.Monotone), len(e.Features))
	}
	for _, line := range m.Settings {
		if strings.ContainsAny(line, "\n\r") || line == "end of parameters" {
			return fmt.Errorf("the setting %s is not a single line", shorten(line))
		}
	}
	for _, text := range m.Ranges {
		if text == "" || strings.ContainsFunc(text, unicode.IsSpace) {
			return fmt.Errorf("the range %s is empty or has blanks", shorten(text))
		}
	}
	for name, value := range m.Parameters {
		if strings.ContainsFunc(name+value, unicode.IsSpace) || strings.Contains(name+value, "=") {
			return fmt.Errorf("the parameter %s has blanks or =", shorten(name))
		}
	}
	return nil
}

// names returns the names of the features, in which blanks are replaced because a blank would
// end a name.
func (m *Model) names() []string {
	made := slices.Clone(m.Ensemble.Features)
	for i, name := range made {
		if made[i] = strings.Join(strings.Fields(name), "_"); made[i] == "" {
			made[i] = "Column_" + strconv.Itoa(i)
		}
	}
	return made
}

func (m *Model) objectiveLine() string {
	parameters := maps.Clone(m.Parameters)
	if parameters == nil {
		parameters = map[string]string{}
	}
	o, _ := objectiveOf(m.Objective) // no error: check has found the objective
	if o.classes {
		parameters["num_class"] = strconv.Itoa(m.Ensemble.Outputs)
	}
	if o.link == logistic && parameters["sigmoid"] == "" {
		parameters["sigmoid"] = "1"
	}
	line := m.Objective
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if line += " " + name; parameters[name] != "" {
			line += ":" + parameters[name]
		}
	}
	return line
}

// ranges returns the ranges of features. If they are not known, they are derived from the
// splits, because LightGBM requires ranges.
func (m *Model) ranges() []string {
	if m.Ranges != nil {
		return m.Ranges
	}
	e := m.Ensemble
	made := make([]string, len(e.Features))
	least, most := make([]float64, len(made)), make([]float64, len(made))
	largest := make([]int32, len(made))
	for i := range made {
		least[i], most[i], largest[i] = math.Inf(1), math.Inf(-1), -1
		if e.Categories != nil && e.Categories[i] != nil {
			largest[i] = int32(max(1, len(e.Categories[i])-1))
		}
	}
	for t := range e.Trees {
		for i := range e.Trees[t].Nodes {
			n := &e.Trees[t].Nodes[i]
			switch {
			case n.Leaf():
			case n.Flags&tree.Categorical != 0 && e.Categories != nil && e.Categories[n.Feature] != nil:
			case n.Flags&tree.Categorical != 0:
				largest[n.Feature] = max(largest[n.Feature], 32*n.SetWords-1, 0)
			case !math.IsInf(n.Threshold, 0):
				least[n.Feature], most[n.Feature] = min(least[n.Feature], n.Threshold), max(most[n.Feature], n.Threshold)
			}
		}
	}
	for i := range made {
		switch {
		case largest[i] >= 0:
			made[i] = "0:" + strconv.Itoa(int(max(1, largest[i])))
		case least[i] <= most[i]:
			made[i] = "[" + string(appendNumber(nil, least[i])) + ":" + string(appendNumber(nil, most[i])) + "]"
		default:
			made[i] = "none"
		}
	}
	return made
}

// byImportance returns the features with splits, ordered by descending number of splits.
func byImportance(splits []int) []int {
	var made []int
	for i, n := range splits {
		if n > 0 {
			made = append(made, i)
		}
	}
	slices.SortStableFunc(made, func(a, b int) int { return splits[b] - splits[a] })
	return made
}

// appendLine appends a line with a name and numbers.
func appendLine[T any](b []byte, name string, list []T, one func([]byte, T) []byte) []byte {
	b = append(append(b, name...), '=')
	for i, v := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = one(b, v)
	}
	return append(b, '\n')
}

func appendInteger[T int | int8 | int32 | int64 | uint32](b []byte, v T) []byte {
	return strconv.AppendInt(b, int64(v), 10)
}

// smallest is the smallest normal float64. Versions of LightGBM before 3 abort on a file with a
// smaller number.
const smallest = 0x1p-1022

// appendNumber appends a number. A number that is too small is written as 0.
func appendNumber(b []byte, v float64) []byte {
	if math.Abs(v) < smallest {
		v = 0
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
