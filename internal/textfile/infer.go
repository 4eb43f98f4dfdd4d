package textfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/spelling"
)

// DefaultSampleRows is the default number of records from which types are inferred.
const DefaultSampleRows = 10_000

// InferOptions has the facts about the columns that the caller already knows. They are not
// inferred.
type InferOptions struct {
	// SampleRows is the number of records to examine; 0 means DefaultSampleRows.
	SampleRows int
	// Names are the names of the columns in the order of the file. If there is a header, they
	// replace its names. Nil means the names in the header or, without header, c0, c1 and so
	// on.
	Names []string
	// Columns is the schema, if it is known; then nothing is inferred. With a header or Names,
	// these columns are selected by name and delivered in this order. Otherwise they must be
	// all columns in the order of the file. Columns and Types must not both be set.
	Columns []batch.Column
	// Types has the types of some columns, in text form such as "float64". The types of the
	// other columns are inferred. A column with a type given here is nullable.
	Types map[string]string
	// OrBool has names of columns that get the type bool, instead of the type in Types, if all
	// their values in the sample are true or false.
	OrBool []string
	// Others, if not empty, is the type of all columns that are neither in Types nor in Infer.
	// The types of the columns in Infer are inferred nevertheless.
	Others string
	Infer  []string
	// FS is the file system in which the files were resolved; nil means the file system of the
	// operating system.
	FS fs.FS
}

// Layout says which columns the files have and which of them to read. It is plain data. It
// depends on the contents of the files, so it is a fact of the job.
type Layout struct {
	// Header has the names in the header that every file must have; nil if files have no
	// header.
	Header []string
	// Names are the names of all columns in the order of the file.
	Names []string
	// Columns are the columns to read, in the order in which they are delivered.
	Columns []batch.Column
	// Inferred are the names of the columns whose types were inferred.
	Inferred []string
	// SampleRows is the number of records from which types were inferred. Later maps every
	// column that had no value in these records to the number of records that were examined for
	// it.
	SampleRows int
	Later      map[string]int `json:",omitempty"`
	// Mixed describes the inferred columns that are text although most of their values are
	// numbers, and those that are text because some whole numbers are too long.
	Mixed []Mixed `json:",omitempty"`
	// Trouble describes the error in the first row if no row of the sample could be read.
	Trouble string `json:",omitempty"`
}

// Select returns the layout with only the named columns, in that order.
func (l Layout) Select(names ...string) (Layout, error) {
	cols := make([]batch.Column, 0, len(names))
	for _, n := range names {
		i := slices.IndexFunc(l.Columns, func(c batch.Column) bool { return c.Name == n })
		if i < 0 {
			return Layout{}, noColumn(n, l.Names)
		}
		if slices.ContainsFunc(cols, func(c batch.Column) bool { return c.Name == n }) {
			return Layout{}, fmt.Errorf("column %q is selected twice", n)
		}
		cols = append(cols, l.Columns[i])
	}
	l.Columns = cols
	l.Mixed = slices.DeleteFunc(slices.Clone(l.Mixed), func(m Mixed) bool { return !slices.Contains(names, m.Column) })
	return l, nil
}

// noColumn returns the error for the name of a column that the files do not have.
func noColumn(name string, have []string) error {
	if near := spelling.Near(name, have); len(near) > 0 {
		return fmt.Errorf("there is no column %q; did you mean %s?", name, humanize.Quoted(near, ", "))
	}
	return fmt.Errorf("there is no column %q; the columns are %s", name, humanize.Quoted(have, ", "))
}

// InferCSV reads the headers of all files and the first records, and returns the columns. The
// type of a column is the first of bool, int64, float64 and utf8 that fits all its values; only
// true and false are values of bool. If a whole number is outside the range of int64, the
// column is float64 if float64 represents every whole number in it exactly; otherwise it is
// utf8, because such numbers are often identifiers, which rounding could make equal. Missing
// values fit every type. If a column has no value in the sample, more records are read up to
// its first value, and from there as many records as a sample has. A column without any value
// is utf8. A column is nullable if a value is missing in the sample, or if the sample does not
// include all records of the input. Malformed records are ignored here; reading reports them.
// Empty files are skipped, but it is an error if all files are empty.
func InferCSV(ctx context.Context, files []File, d Dialect, opt InferOptions) (Layout, error) {
	d, err := d.normal()
	if err != nil {
		return Layout{}, err
	}
	if opt.SampleRows < 0 {
		return Layout{}, fmt.Errorf("the number of sample rows must not be negative, but is %d", opt.SampleRows)
	}
	if opt.SampleRows == 0 {
		opt.SampleRows = DefaultSampleRows
	}
	if err := opt.explicit(d); err != nil {
		return Layout{}, err
	}
	s := sample{ctx: ctx, dialect: d, tokens: newNullTokens(d), limit: opt.SampleRows, names: opt.Names, tree: tree{opt.FS},
		known: opt.known}
	tok := newTokenizer(d, newAutomaton(d))
	sc := &scanner{tok: tok}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return Layout{}, err
		}
		if err := s.file(sc, f.Path); err != nil {
			return Layout{}, err
		}
	}
	if !s.started {
		return Layout{}, emptyInput(files, d.Header)
	}
	return s.layout(opt)
}

// known reports whether the type of a column is given, so that it is not inferred.
func (o *InferOptions) known(column string) bool {
	return o.typeOf(column) != "" || o.Columns != nil
}

// typeOf returns the given type of a column, or "" if its type must be inferred.
func (o *InferOptions) typeOf(column string) string {
	if text, ok := o.Types[column]; ok {
		return text
	}
	if slices.Contains(o.Infer, column) {
		return ""
	}
	return o.Others
}

// explicit does nothing if o.Columns is not set. Otherwise it checks o.Columns, and limits the
// sample to one record, which suffices to determine the number of columns.
func (o *InferOptions) explicit(d Dialect) error {
	if o.Columns == nil {
		return nil
	}
	if o.Types != nil {
		return errors.New("a schema and types of single columns cannot be given together")
	}
	if _, err := batch.Schema(o.Columns); err != nil {
		return err
	}
	o.SampleRows = 1
	if !d.Header && o.Names == nil {
		for _, c := range o.Columns {
			o.Names = append(o.Names, c.Name)
		}
	}
	return nil
}

// emptyInput returns the error for files without a record or header.
func emptyInput(files []File, header bool) error {
	what := "records"
	if header {
		what = "header"
	}
	switch len(files) {
	case 0:
		return errors.New("no input files")
	case 1:
		return fmt.Errorf("input %s %w: it has no %s", files[0].Path, ErrEmpty, what)
	}
	return fmt.Errorf("input %w: none of the %d files from %s to %s has %s",
		ErrEmpty, len(files), files[0].Path, files[len(files)-1].Path, what)
}

// sample collects evidence from the first records.
type sample struct {
	ctx     context.Context
	dialect Dialect
	tree    tree
	tokens  *nullTokens
	limit   int

	started bool // a header or record was found
	passed  bool // lines before the first record were passed over
	header  []string
	from    string // the file with the header
	names   []string
	seen    []evidence
	rows    int
	partial bool   // there are records that were not examined
	problem string // description of the error in the first record, if it is bad
	scratch []byte

	known  func(column string) bool // whether the type of the column is given
	late   []lateColumn             // columns that are still examined after the sample
	wanted []bool                   // wanted[c] says whether column c is in late
	later  map[string]int           // late column with a value -> number of rows that were examined for it
}

// file examines the header of one file, and its records as long as more records are needed.
func (s *sample) file(sc *scanner, path string) (err error) {
	if !s.dialect.Header && s.full() {
		s.partial = true
		return nil
	}
	r, err := openPlain(s.tree, s.dialect.Encoding, path)
	if err != nil {
		return err
	}
	defer func() { err = also(err, r.Close()) }()
	sc.tok.fields, sc.tok.keep = 0, nil
	if err := sc.start(r, readChunk, s.dialect.SkipLines); err != nil {
		return fmt.Errorf("input %s: %w", path, err)
	}
	if s.dialect.Header {
		h, ok, err := readHeader(path, sc)
		if err != nil || !ok {
			return err
		}
		if err := s.takeHeader(h); err != nil {
			return err
		}
	}
	return s.records(sc, path)
}

func (s *sample) takeHeader(h header) error {
	if s.started {
		return h.agree(s.from, s.header)
	}
	s.header, s.from = h.names, h.path
	if s.names != nil && len(s.names) != len(h.names) {
		return fmt.Errorf("%s has %s, but %s given", h.path, humanize.Count(len(h.names), "column"), namesAre(len(s.names)))
	}
	if s.names == nil {
		s.names = h.names
	}
	return s.start(len(h.names), h.path)
}

// start sets the number of columns, and their names if they have no names yet.
func (s *sample) start(n int, path string) error {
	if s.names == nil {
		for i := range n {
			s.names = append(s.names, fmt.Sprintf("c%d", i))
		}
	}
	if len(s.names) != n {
		return fmt.Errorf("the first row of %s has %s, but %s given", path, humanize.Count(n, "field"), namesAre(len(s.names)))
	}
	s.started = true
	s.seen = make([]evidence, n)
	if n == 1 && s.passed { // the lines passed over are records with an empty cell
		s.seen[0].missing = true
	}
	return checkNames(s.names, "the list of names")
}

// namesAre returns a subject and a verb for n names, for a sentence.
func namesAre(n int) string {
	if n == 1 {
		return "1 name is"
	}
	return fmt.Sprintf("%d names are", n)
}

// records examines records. It ignores bad records, such as those with a byte of 0, because
// reading reports or skips them.
func (s *sample) records(sc *scanner, path string) error {
	// After a header, which was checked for a lone CR, a CR in a cell is text.
	first := !s.dialect.Header
	for {
		if s.started {
			sc.tok.fields = len(s.names)
			sc.tok.keep = s.lateCells()
		}
		from := sc.held()
		what, err := sc.next()
		if err == nil && first && what != foundNothing && what != foundEnd {
			first = false
			// A CR may be part of the text of a cell. But if a file is a single line with a CR,
			// its lines end in CR.
			if row := sc.since(from); !bytes.HasSuffix(row, []byte{'\n'}) && sc.tok.auto.loneCR(row) {
				return errLoneCR(path, "first row")
			}
		}
		switch {
		case err != nil:
			return err
		case what == foundEnd:
			return nil
		case what > needMore && s.started && s.rows == 0 && s.problem == "":
			s.problem = path + ": " + sc.tok.problem(what, s.dialect.Header)
		}
		switch {
		case what.tooLarge() && s.started:
			s.partial = true
			return nil
		case what.tooLarge():
			return fmt.Errorf("%s: a cell is larger than %d bytes; a quote that is never closed?", path, sc.tok.maxCell)
		case what != foundNothing && s.full():
			s.partial = true
			return nil
		case what == foundNothing && !s.started:
			s.passed = true
		case what == foundRecord:
			if !s.started {
				if err := s.start(len(sc.tok.cells), path); err != nil {
					return err
				}
			}
			if zero := bytes.IndexByte(sc.since(from), 0); zero < 0 {
				s.record(sc, path)
			} else if s.rows == 0 && s.problem == "" {
				s.problem = fmt.Sprintf("%s: the byte at offset %d is %s", path, sc.place(from+zero), noText)
			}
			if s.rows%1024 == 0 && s.ctx.Err() != nil {
				return s.ctx.Err()
			}
		}
		sc.cut()
	}
}

// record adds the evidence of one record.
func (s *sample) record(sc *scanner, path string) {
	s.rows++
	late := s.rows > s.limit
	for i, c := range sc.tok.cells {
		if late {
			i = s.late[i].at
		}
		b := sc.batch()[c.off:][:c.size()]
		if c.escaped() {
			s.scratch = unescape(s.scratch[:0], b, sc.tok.quote)
			b = s.scratch
		}
		at := place{path, sc.place(int(c.off))}
		s.seen[i].add(b, c.quoted(), s.tokens, at)
	}
	s.advance()
}

// layout returns the layout that follows from the evidence.
func (s *sample) layout(opt InferOptions) (Layout, error) {
	l := Layout{Header: s.header, Names: s.names, SampleRows: min(s.rows, s.limit), Later: s.later}
	if s.rows == 0 {
		l.Trouble = s.problem
	}
	if opt.Columns != nil {
		for _, c := range opt.Columns {
			if !slices.Contains(s.names, c.Name) {
				return Layout{}, noColumn(c.Name, s.names)
			}
		}
		l.Columns, l.SampleRows = slices.Clone(opt.Columns), 0
		return l, nil
	}
	for name := range opt.Types {
		if !slices.Contains(s.names, name) {
			return Layout{}, unknownTyped(opt.Types, s.names)
		}
	}
	for i, name := range s.names {
		c := batch.Column{Name: name, Nullable: true}
		if text := opt.typeOf(name); text != "" {
			typ, err := batch.ParseType(text)
			if err != nil {
				return Layout{}, fmt.Errorf("type of column %q: %w", name, err)
			}
			c.Type = batch.TypeName(typ)
			if slices.Contains(opt.OrBool, name) && s.seen[i].typeName() == "bool" {
				c.Type = "bool"
			}
		} else {
			c.Type = s.seen[i].typeName()
			c.Nullable = s.partial || s.seen[i].nullable()
			l.Inferred = append(l.Inferred, name)
		}
		if err := s.tell(&l, c, &s.seen[i], !opt.known(name)); err != nil {
			return Layout{}, err
		}
		l.Columns = append(l.Columns, c)
	}
	return l, nil
}

// lineOf returns the line number, counted from 1, of the byte at an offset in the plain text of
// a file.
func (s *sample) lineOf(path string, offset int64) (line int64, err error) {
	r, err := openPlain(s.tree, s.dialect.Encoding, path)
	if err != nil {
		return 0, err
	}
	defer func() { err = also(err, r.Close()) }()
	lines := lineCounter(1)
	if _, err := io.CopyN(&lines, r, offset); err != nil {
		return 0, err
	}
	return int64(lines), nil
}

// lineCounter counts lines. Its value is the number of the line that contains the next byte
// written to it.
type lineCounter int64

func (n *lineCounter) Write(b []byte) (int, error) {
	*n += lineCounter(bytes.Count(b, []byte{'\n'}))
	return len(b), nil
}

// unknownTyped returns an error that lists all columns in types that do not exist.
func unknownTyped(types map[string]string, names []string) error {
	var unknown []string
	for name := range types {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	errs := make([]string, len(unknown))
	for i, name := range unknown {
		errs[i] = noColumn(name, names).Error()
	}
	return fmt.Errorf("columns that a type is given for, or a model reads, are missing: %s", strings.Join(errs, "; "))
}
