package xgboost

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/wholefile"
)

// These are limits of files, so that a small file cannot make the reader allocate much memory.
// Every other size is bounded by the size of the file.
const (
	// MaxFile is the largest file that Load reads, in bytes.
	MaxFile = 1<<31 - 1
	// maxOutputs is the largest number of classes or targets.
	maxOutputs = 1 << 16
	// maxUnnamed is the largest number of features without names, unless the number of bytes of
	// the file is larger.
	maxUnnamed = 1 << 20
	// wordsForAll and wordsForByte bound the total number of words of all sets of categories:
	// wordsForAll, and wordsForByte more for each byte of the file.
	wordsForAll, wordsForByte = 1 << 20, 32
	// maxCategory is the first category that XGBoost cannot represent.
	maxCategory = 1 << 24
)

// noParent is the number that files have for the parent of a root or of a pruned node.
const noParent = math.MaxInt32

// Load reads a model file, JSON or UBJSON, that Booster.save_model of XGBoost 1.0 to 3.x wrote.
func Load(path string) (*Model, error) {
	data, err := wholefile.Read(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("xgboost: %w", err)
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return m, nil
}

// Decode reads a model in JSON or in UBJSON, which it recognises by the first bytes. Errors
// contain the offset of the byte, or the member. Everything that an ensemble of trees cannot
// express, such as a linear booster, is refused with an error that names it. The model keeps no
// reference to data.
func Decode(data []byte) (*Model, error) {
	root, err := parse(data)
	if err == nil {
		var m *Model
		if m, err = decode(root, len(data)); err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("xgboost: %w", err)
}

func parse(data []byte) (any, error) {
	head := string(data[:min(len(data), 64)])
	switch {
	case len(data) == 0:
		return nil, errors.New("the file is empty")
	case strings.HasPrefix(head, "binf") || strings.HasPrefix(head, "bs64"):
		return nil, errors.New("the file is in the binary format of XGBoost before 3.1: have that version save it as .json")
	case strings.HasPrefix(head, "CONFIG-offset:"):
		return nil, errors.New("the file is a snapshot of XGBoost's memory (pickled): have save_model write it as .json")
	}
	// In JSON, the first brace is followed, after white space, by a quote or a brace. In
	// UBJSON, it is followed by the type of a length.
	rest := strings.TrimLeft(head, " \t\r\n")
	if strings.HasPrefix(rest, "{") {
		if rest = strings.TrimLeft(rest[1:], " \t\r\n"); rest == "" || rest[0] == '"' || rest[0] == '}' {
			return parseJSON(string(data))
		}
		return parseUBJSON(data)
	}
	return nil, errors.New("byte 0: a model begins with a brace")
}

// decode returns the model in the root value of a file with the given number of bytes.
func decode(root any, bytes int) (*Model, error) {
	r := &reader{words: wordsForAll + wordsForByte*bytes}
	top := &node{value: root}
	learner := r.member(top, "learner")
	m := &Model{Objective: r.text(r.member(learner, "objective", "name"))}
	if r.err != nil {
		return nil, r.err
	}
	o, err := objectiveOf(m.Objective)
	if err != nil {
		return nil, r.member(learner, "objective").fail("%w", err)
	}
	r.version(m, top)
	r.parameters(m, r.member(learner, "objective"))
	if n := learner.find("attributes"); n != nil {
		m.Attributes = r.pairs(n)
	}
	e := &tree.Ensemble{Single: true}
	m.Ensemble = e
	r.shape(m, o, learner, bytes)
	r.trees(m, r.member(learner, "gradient_booster"))
	if r.err != nil {
		return nil, r.err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

func (r *reader) version(m *Model, top *node) {
	n := top.find("version")
	if n == nil {
		return
	}
	list := r.integers(n, -1, 0, math.MaxInt32)
	for i := range min(len(list), len(m.Version)) {
		m.Version[i] = int(list[i])
	}
}

// parameters reads all blocks with parameters of the objective. The names of these blocks
// differ between versions.
func (r *reader) parameters(m *Model, n *node) {
	if r.err != nil {
		return
	}
	object, ok := n.value.(map[string]any)
	if !ok {
		r.fail(n, "it is %s: want an object", kindOf(n.value))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !strings.HasSuffix(key, "_param") {
			continue
		}
		if m.Parameters == nil {
			m.Parameters = map[string]string{}
		}
		maps.Copy(m.Parameters, r.pairs(n.find(key)))
	}
}

// shape reads the numbers of features and outputs, the base, and the names.
func (r *reader) shape(m *Model, o objective, learner *node, bytes int) {
	e := m.Ensemble
	param := r.member(learner, "learner_model_param")
	features := r.count(r.member(param, "num_feature"), math.MaxInt32)
	e.Outputs = 1
	if n := param.find("num_class"); n != nil {
		e.Outputs = max(1, r.count(n, maxOutputs))
	}
	if n := param.find("num_target"); n != nil {
		if targets := r.count(n, maxOutputs); targets > 1 {
			if e.Outputs > 1 {
				r.fail(n, "there are %d targets and %d classes", targets, e.Outputs)
			}
			e.Outputs = targets
		}
	}
	r.base(e, o, r.member(param, "base_score"))
	if n := learner.find("feature_names"); n != nil {
		e.Features = r.texts(n)
	}
	if n := learner.find("feature_types"); n != nil {
		m.Types = r.texts(n)
		if len(m.Types) == 0 {
			m.Types = nil
		} else if len(m.Types) != features {
			r.fail(n, "it has %d types: there are %d features", len(m.Types), features)
		}
	}
	switch {
	case r.err != nil:
	case len(e.Features) == 0:
		if features > max(maxUnnamed, bytes) {
			r.fail(param, "num_feature is %d: the limit is %d where features have no names", features, maxUnnamed)
			return
		}
		e.Features = make([]string, features)
		for i := range e.Features {
			e.Features[i] = unnamed(i)
		}
	case len(e.Features) != features:
		r.fail(learner, "feature_names has %d names: there are %d features", len(e.Features), features)
	}
}

// unnamed returns the name that XGBoost uses for feature i if it has no name.
func unnamed(i int) string { return "f" + strconv.Itoa(i) }

// base reads base_score, which is one number (in brackets since 3.1) or a number for each
// output.
func (r *reader) base(e *tree.Ensemble, o objective, n *node) {
	text := strings.TrimSpace(r.text(n))
	if r.err != nil {
		return
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			r.fail(n, "%s has no closing bracket", shorten(n.value))
			return
		}
	}
	if len(text) > 32*(e.Outputs+1) {
		r.fail(n, "it is %d characters long: there are %d outputs", len(text), e.Outputs)
		return
	}
	parts := strings.Split(text, ",")
	if len(parts) != 1 && len(parts) != e.Outputs {
		r.fail(n, "it has %d numbers: there are %d outputs", len(parts), e.Outputs)
		return
	}
	e.Base = make([]float64, e.Outputs)
	for i := range e.Base {
		score, err := strconv.ParseFloat(strings.TrimSpace(parts[min(i, len(parts)-1)]), 32)
		if err == nil {
			e.Base[i], err = o.link.margin(score)
		}
		if err != nil {
			r.fail(n, "%w", err)
			return
		}
	}
}

// trees reads the trees of the booster.
func (r *reader) trees(m *Model, booster *node) {
	name := r.text(r.member(booster, "name"))
	var weights []float64
	if name == "dart" { // since 3.5 the weights are inside the member model
		if n := booster.find("weight_drop"); n != nil {
			weights = r.numbers(n, -1)
		}
		booster = r.member(booster, "gbtree")
	} else if name != "gbtree" && r.err == nil {
		r.fail(booster, "the booster is %s: only gbtree and dart have trees", shorten(name))
	}
	model := r.member(booster, "model")
	list := r.member(model, "trees")
	trees := r.array(list)
	r.scalar(list, trees)
	param := r.member(model, "gbtree_model_param")
	if n := param.find("num_parallel_tree"); n != nil {
		if m.ParallelTrees = r.count(n, math.MaxInt32); m.ParallelTrees == 1 {
			m.ParallelTrees = 0
		}
	}
	if n := r.count(r.member(param, "num_trees"), math.MaxInt32); r.err == nil && n != len(trees) {
		r.fail(list, "it has %d trees: num_trees says %d", len(trees), n)
	}
	if round := max(1, m.ParallelTrees) * m.Ensemble.Outputs; r.err == nil && len(trees)%round != 0 {
		r.fail(list, "it has %d trees, and a round of %d outputs has %d", len(trees), m.Ensemble.Outputs, round)
	}
	info := r.member(model, "tree_info")
	outputs := r.integers(info, len(trees), 0, float64(m.Ensemble.Outputs-1))
	if r.err == nil {
		if n := model.find("weight_drop"); n != nil {
			weights = r.numbers(n, -1)
		}
		if n := model.find("cats"); n != nil {
			r.categories(m.Ensemble, n)
		}
	}
	if weights != nil && len(weights) != len(trees) {
		r.fail(model, "there are %d weights of %d trees", len(weights), len(trees))
	}
	if r.err != nil {
		return
	}
	m.Ensemble.Trees = make([]tree.Tree, len(trees))
	for i := range trees {
		t := &m.Ensemble.Trees[i]
		r.tree(t, &node{up: list, index: i, value: trees[i]}, m.Ensemble)
		t.Output, t.Weight = int32(outputs[i]), 1
		if weights != nil {
			t.Weight = weights[i]
		}
		if r.err != nil {
			return
		}
	}
}

// categories reads the names of categories, in the order of their codes. XGBoost 3.1 and later
// store them for data frames.
func (r *reader) categories(e *tree.Ensemble, n *node) {
	list := r.member(n, "enc")
	columns := r.array(list)
	if r.err != nil || len(columns) == 0 {
		return
	}
	if len(columns) != len(e.Features) {
		r.fail(list, "it has %d columns: there are %d features", len(columns), len(e.Features))
		return
	}
	e.Categories = make([][]string, len(columns))
	any := false
	for i := range columns {
		c := &node{up: list, index: i, value: columns[i]}
		if c.find("offsets") != nil {
			e.Categories[i] = r.names(c)
		} else {
			for _, v := range r.numbers(r.member(c, "values"), -1) {
				e.Categories[i] = append(e.Categories[i], strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
		any = any || len(e.Categories[i]) > 0
	}
	if !any {
		e.Categories = nil
	}
}

// names returns the names of a column's categories, which the file has as concatenated bytes.
func (r *reader) names(c *node) []string {
	place := r.member(c, "values")
	values := r.integers(place, -1, -128, 255)
	bytes := make([]byte, len(values))
	for i, v := range values {
		bytes[i] = byte(int(v))
	}
	offsets := r.integers(r.member(c, "offsets"), -1, 0, float64(len(bytes)))
	if r.err != nil || len(offsets) == 0 {
		return nil
	}
	made := make([]string, 0, len(offsets)-1)
	for i := 1; i < len(offsets); i++ {
		if offsets[i] < offsets[i-1] {
			r.fail(c, "offset %d is below the one before", i)
			return nil
		}
		made = append(made, strings.ToValidUTF8(string(bytes[int(offsets[i-1]):int(offsets[i])]), "\uFFFD"))
	}
	return made
}
