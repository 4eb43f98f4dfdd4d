package operators

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// PrintOptions are the options of Print. The zero value is usable.
type PrintOptions struct {
	// Rows is the number of rows to show; 0 means 20.
	Rows int
	// Width is the largest number of characters to show of a value; 0 means 40.
	Width int
	// Title is printed above the table, if it is not empty.
	Title string
	// Writer is where the table is written; nil means standard output.
	Writer io.Writer
}

// Print writes a table of the first rows, in the order of the dataset, when the job has
// succeeded. The table is meant for people to read; its format may change between versions.
// Tables of several Prints appear in the order of the calls.
func Print(d *engine.Dataset, opts PrintOptions) {
	const op = "Print"
	b := builderOf(op, d)
	if opts.Rows == 0 {
		opts.Rows = 20
	}
	if opts.Width == 0 {
		opts.Width = 40
	}
	if opts.Rows < 0 || opts.Width < 0 {
		b.Errorf("%s: %d rows of values of %d characters: want at least 1 of both, or 0 for the default", op, opts.Rows, opts.Width)
		return
	}
	if !usable(d) {
		return
	}
	if opts.Writer == nil {
		opts.Writer = b.Stdout()
	}
	p := &printer{opts: opts, schema: arrowrows.Arrow(d.Schema())}
	more := int64(opts.Rows) + 1 // one row more shows whether there are more rows
	b.Add(engine.Spec{
		Op:       op,
		Name:     opts.Title,
		Attrs:    []engine.Attr{{Key: "rows", Value: strconv.Itoa(opts.Rows)}, {Key: "width", Value: strconv.Itoa(opts.Width)}},
		Inputs:   []engine.Port{{From: firstOfShards(op, d, more)}},
		Single:   true,
		Operator: func() engine.Operator { return &printing{table: p} },
		Sink:     p,
	})
}

// printing is the operator behind Print.
type printing struct {
	engine.BaseOperator
	table *printer
	index rowIndex
}

func (o *printing) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := needText(rows, o.index.batch(rows.NumRows())); err != nil {
		return err
	}
	o.table.add(rows)
	return nil
}

func (o *printing) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}

// printer gathers the table. One subtask adds to it; the table is written when
// the job has succeeded.
type printer struct {
	opts   PrintOptions
	schema *arrow.Schema
	cells  [][]string // rows of the table, without the header
	more   bool       // the dataset has more than opts.Rows rows
}

func (p *printer) add(rows arrow.Record) {
	for i := range int(rows.NumRows()) {
		if len(p.cells) == p.opts.Rows {
			p.more = true
			return
		}
		cells := make([]string, rows.NumCols())
		for c := range cells {
			if col := rows.Column(c); col.IsNull(i) {
				cells[c] = "null"
			} else {
				cells[c] = plainText(batch.FormatValue(col, i), p.opts.Width)
			}
		}
		p.cells = append(p.cells, cells)
	}
}

// plainText returns s as one line of at most width characters. It escapes characters that are
// not printable, so that data cannot control the terminal.
func plainText(s string, width int) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		if b.Len() > width*utf8.UTFMax {
			break // the text after width characters is cut off below
		}
	}
	if text := []rune(b.String()); len(text) > width {
		return string(text[:width-1]) + "…"
	}
	return b.String()
}

// Begin drops the rows that were gathered by an earlier attempt.
func (p *printer) Begin() error {
	p.cells, p.more = nil, false
	return nil
}

// Overlaps reports that the next attempt may begin while this one still runs, as only an attempt
// that commits writes the table.
func (p *printer) Overlaps() bool { return true }

// Commit writes the table.
func (p *printer) Commit() error {
	if _, err := io.WriteString(p.opts.Writer, p.table()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Resume prints that the table is not shown again. The rows were in the memory of a process
// that has ended, and it is unknown whether that process printed them.
func (p *printer) Resume() error {
	title := p.opts.Title
	if title == "" {
		title = "a table"
	}
	_, err := fmt.Fprintf(p.opts.Writer, "(%s is not shown again: if it is not above, it was lost when the job's results were about to be shown)\n", plainText(title, 1000))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Abort drops the table.
func (p *printer) Abort() error { return p.Begin() }

// table returns the header, a rule and the rows as text in aligned columns.
func (p *printer) table() string {
	header := make([]string, p.schema.NumFields())
	widths := make([]int, len(header))
	rule := make([]string, len(header))
	for c := range header {
		header[c] = plainText(p.schema.Field(c).Name, p.opts.Width)
		widths[c] = utf8.RuneCountInString(header[c])
		for _, row := range p.cells {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
		rule[c] = strings.Repeat("─", widths[c])
	}
	var b strings.Builder
	if p.opts.Title != "" {
		b.WriteString(plainText(p.opts.Title, 1000) + "\n")
	}
	p.line(&b, header, widths)
	p.line(&b, rule, widths)
	for _, row := range p.cells {
		p.line(&b, row, widths)
	}
	switch {
	case p.more:
		fmt.Fprintf(&b, "(the first %d rows)\n", len(p.cells))
	case len(p.cells) == 1:
		b.WriteString("(1 row)\n")
	default:
		fmt.Fprintf(&b, "(%d rows)\n", len(p.cells))
	}
	return b.String()
}

// line writes one row, with numbers aligned to the right and other cells to the left.
func (p *printer) line(b *strings.Builder, cells []string, widths []int) {
	var l strings.Builder
	for c, cell := range cells {
		if c > 0 {
			l.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
		if componentsOf(p.schema.Field(c).Type) == 1 && p.schema.Field(c).Type.ID() != arrow.BOOL {
			l.WriteString(pad + cell)
		} else {
			l.WriteString(cell + pad)
		}
	}
	b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
}
