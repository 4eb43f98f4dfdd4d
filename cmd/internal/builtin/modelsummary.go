package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/internal/humanize"
)

// modelSummary is the description of a model that superstep inspect prints as text or JSON.
type modelSummary struct {
	Kind    string          `json:"kind"`
	About   string          `json:"about,omitempty"`
	Version int             `json:"version"`
	Bytes   int             `json:"bytes"`
	Inputs  []model.Input   `json:"inputs"`
	Columns []string        `json:"features,omitempty"` // names of the first features
	Classes []string        `json:"classes,omitempty"`
	Summary json.RawMessage `json:"summary,omitempty"`
	Tables  []model.Table   `json:"tables,omitempty"`
	Stages  []*modelSummary `json:"stages,omitempty"`
	Reading model.Reading   `json:"reading,omitzero"` // format details of the files that the model was trained on

	facts     []model.Fact
	loss      []float64 // loss[i] is the training loss of iteration i
	lossName  string
	described model.Description
}

// shownColumns is the maximal number of columns of a table that are printed as text.
const shownColumns = 10

// summarizeFile returns the summary of the model in a model file of any kind.
func summarizeFile(file []byte) (*modelSummary, error) {
	m, err := pipeline.DecodeAny(file)
	if err != nil {
		return nil, err
	}
	return summarize(m, file, nil)
}

// summarize returns the summary of the model m, whose encoding is file. before has the stages
// that precede m in a pipeline.
func summarize(m model.Model, file []byte, before []model.Model) (*modelSummary, error) {
	p := &modelSummary{Kind: m.Kind(), Inputs: m.Inputs(), Bytes: len(file), Version: 1, Classes: predictionOf(m).Classes()}
	for _, k := range catalog.Kinds() {
		if k.Name == p.Kind {
			p.About = k.About
		}
	}
	// Files of version 1 have no summary: at that time each kind of model had its own format.
	if f, err := model.Decode(file, p.Kind, math.MaxInt); err == nil {
		p.Version, p.Summary, p.Reading = f.Version, f.Summary, f.Reading
	}
	if string(p.Summary) == "null" {
		p.Summary = nil
	}
	p.readSummary()
	if whole, ok := m.(*pipeline.Model); ok {
		p.About = "a chain of preparations and an estimator"
		for i, s := range whole.Stages() {
			text, err := s.Encode()
			if err != nil {
				return nil, err
			}
			stage, err := summarize(s, text, append(append([]model.Model(nil), before...), whole.Stages()[:i]...))
			if err != nil {
				return nil, err
			}
			p.Stages = append(p.Stages, stage)
		}
		return p, nil
	}
	if d, ok := m.(model.Describer); ok {
		p.described = d.Describe(featureNames(before, p.Inputs))
		p.Columns, p.Tables = p.described.Features, p.described.Tables
		p.facts = slices.Concat(p.described.Settings, p.facts, p.described.Facts)
		if p.described.Loss != "" {
			p.loss, p.lossName = p.described.Record, p.described.Loss
		}
	}
	return p, nil
}

// predictor returns the summary of the model that makes the predictions. In a pipeline that is
// the last stage.
func (p *modelSummary) predictor() *modelSummary {
	if n := len(p.Stages); n > 0 {
		return p.Stages[n-1].predictor()
	}
	return p
}

// ofPredictor returns the summary of predictor, but with the file columns that the whole
// pipeline reads as inputs.
func (p *modelSummary) ofPredictor() *modelSummary {
	last := *p.predictor()
	last.Inputs, last.Reading = p.Inputs, p.Reading
	return &last
}

// readSummary appends the scalar members of the summary and its measures to p.facts, in order. It
// also reads the loss of each iteration.
func (p *modelSummary) readSummary() {
	d := json.NewDecoder(bytes.NewReader(p.Summary))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		var value any
		if d.Decode(&value) != nil {
			return
		}
		name := strings.ReplaceAll(fmt.Sprint(key), "_", " ")
		switch v := value.(type) {
		case json.Number, bool, string:
			if name == "rows" && textOf(v) == "0" {
				continue // the training did not count its rows
			}
			p.facts = append(p.facts, model.Fact{Name: name, Value: v})
		case []any:
			p.list(name, v)
		}
	}
}

// list reads the list all, which the summary has under the given name, if the name is measures
// or record.
func (p *modelSummary) list(name string, all []any) {
	for _, v := range all {
		entry, _ := v.(map[string]any)
		switch {
		case name == "measures" && entry != nil:
			p.facts = append(p.facts, model.Fact{Name: strings.ReplaceAll(fmt.Sprint(entry["name"]), "_", " "), Value: entry["value"]})
		case name == "record" && entry != nil:
			p.loss, p.lossName = append(p.loss, numberOf(entry["loss"])), "loss"
		}
	}
}

func numberOf(v any) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return math.NaN()
	}
	f, _ := n.Float64()
	return f
}

// textOf formats a value as text.
func textOf(v any) string {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return strconv.FormatInt(i, 10)
		}
		f, _ := v.Float64()
		return textOf(f)
	case float64:
		if math.IsNaN(v) {
			return "-"
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case nil:
		return "-"
	}
	return printable(fmt.Sprint(v))
}

// printable replaces characters of s that are not printable, line breaks among them, by question
// marks, because text from a file may contain control sequences of terminals.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// write prints the summary, with at most rows rows of each table.
func (p *modelSummary) write(w io.Writer, rows int) error {
	var b strings.Builder
	p.print(&b, "", rows)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *modelSummary) print(b *strings.Builder, number string, rows int) {
	title := p.Kind
	if p.About != "" {
		title += ": " + p.About
	}
	if number != "" {
		title = number + " " + title
	}
	fmt.Fprintf(b, "%s\n", title)
	facts := []model.Fact{{Name: "version", Value: p.Version}, {Name: "inputs", Value: inputsText(p.Inputs)}}
	if len(p.Classes) > 0 {
		facts = append(facts, model.Fact{Name: "classes", Value: strings.Join(p.Classes[:min(len(p.Classes), model.ShownRows)], ", ")})
	}
	if nulls := p.Reading.Nulls; len(nulls) > 0 {
		facts = append(facts, model.Fact{Name: "missing values", Value: strings.Join(nulls, ", ")})
	}
	if p.Reading.ZeroBased {
		facts = append(facts, model.Fact{Name: "indices", Value: "from 0"})
	}
	facts = append(facts, p.facts...)
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	for _, f := range facts {
		fmt.Fprintf(b, "  %-*s  %s\n", width, f.Name, textOf(f.Value))
	}
	for _, t := range p.Tables {
		printTable(b, t, rows)
	}
	for i, s := range p.Stages {
		b.WriteString("\n")
		s.print(b, number+strconv.Itoa(i+1)+".", rows)
	}
}

// inputsText returns a text that lists the columns that a model reads, grouped by type.
func inputsText(inputs []model.Input) string {
	parts := make([]string, len(inputs))
	for i, in := range inputs {
		parts[i] = fmt.Sprintf("%s %s", printable(in.Column), in.Type)
	}
	return humanize.List(parts, ", ", 8)
}

// printTable prints at most most rows of a table with aligned columns. Numbers are
// right-aligned.
func printTable(b *strings.Builder, t model.Table, most int) {
	fmt.Fprintf(b, "\n%s\n", t.Title)
	columns := min(len(t.Columns), shownColumns+1)
	cells := [][]string{t.Columns[:columns]}
	for _, r := range t.Rows[:min(len(t.Rows), most)] {
		var line []string
		for _, v := range r[:columns] {
			line = append(line, textOf(v))
		}
		cells = append(cells, line)
	}
	width := make([]int, columns)
	for _, line := range cells {
		for i, c := range line {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, line := range cells {
		for i, c := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				fmt.Fprintf(b, "  %s%s", c, pad)
			} else {
				fmt.Fprintf(b, "  %s%s", pad, c)
			}
		}
		b.WriteString("\n")
	}
	if n := len(t.Rows) - most; n > 0 {
		fmt.Fprintf(b, "  … and %d more rows\n", n)
	}
	if n := len(t.Columns) - columns; n > 0 {
		fmt.Fprintf(b, "  … and %d more columns\n", n)
	}
}
