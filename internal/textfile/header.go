package textfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/humanize"
)

// header is the first record of a file.
type header struct {
	path  string
	names []string
	// body is the offset of the byte after the header.
	body int64
}

// readHeader reads a header at the position of the scanner. Blanks around unquoted names are
// removed even if the dialect keeps blanks around cells, because blanks around names are never
// intended. ok is false if the stream has no record.
func readHeader(path string, sc *scanner) (h header, ok bool, err error) {
	for {
		from := sc.held()
		what, err := sc.next()
		if err != nil {
			return h, false, err
		}
		if what != foundNothing && sc.tok.auto.loneCR(sc.since(from)) {
			return h, false, errLoneCR(path, "header")
		}
		switch what {
		case foundNothing:
			continue
		case foundEnd:
			return h, false, nil
		case foundRecord:
			h = header{path: path, names: sc.texts(), body: sc.offset()}
			if err := h.readable(sc.since(from), sc.place(from)); err != nil {
				return h, false, err
			}
			sc.cut()
			return h, true, h.check()
		case badSize, badLength:
			return h, false, fmt.Errorf("%s: a name in the header is larger than %d bytes", path, sc.tok.maxCell)
		case badUnclosed:
			return h, false, fmt.Errorf("%s: a quote opened in the header is never closed", path)
		default:
			return h, false, fmt.Errorf("%s: text follows a closing quote in the header", path)
		}
	}
}

// texts returns the cells since the last cut. Unquoted cells are returned without surrounding
// blanks.
func (s *scanner) texts() []string {
	names := make([]string, len(s.tok.cells))
	for i, c := range s.tok.cells {
		b := s.batch()[c.off:][:c.size()]
		if c.escaped() {
			b = unescape(nil, b, s.tok.quote)
		}
		names[i] = string(b)
		if !c.quoted() {
			names[i] = strings.Trim(names[i], " \t")
		}
	}
	return names
}

// loneCR reports whether a record has a CR outside quotes. The CR of a CR LF, and a CR at the
// end of a last line without LF, are ignored.
func (a *automaton) loneCR(record []byte) bool {
	at := stateRecord
	for i, c := range record {
		if c == '\r' && at != stateQuoted && i+1 < len(record) && record[i+1] != '\n' {
			return true
		}
		at = a.next[at][c]
	}
	return false
}

// errLoneCR returns the error for lines that seem to end in CR alone. Such lines are not
// supported, because the beginning of a shard would depend on the line ends of the whole file.
func errLoneCR(path, where string) error {
	return fmt.Errorf("%s: the %s has a CR outside quotes with no LF behind it: if lines end in CR alone, "+
		"as old Macintosh files have them, convert the line ends to LF; a CR within text must be in quotes", path, where)
}

// readable returns an error if a header is not UTF-8 or has a byte of 0. offset is the offset
// of the header in the file.
func (h header) readable(record []byte, offset int64) error {
	if err := notUTF8(record, offset); err != nil {
		return fmt.Errorf("%s: the header cannot be read: %w", h.path, err)
	}
	if i := bytes.IndexByte(record, 0); i >= 0 {
		return fmt.Errorf("%s: the header cannot be read: the byte at offset %d is 0, which no text has: "+
			"if the text is in another encoding, such as utf-16, set Encoding", h.path, offset+int64(i))
	}
	return nil
}

// check returns an error if a name is empty or occurs twice.
func (h header) check() error {
	return checkNames(h.names, h.path+": the header")
}

func checkNames(names []string, where string) error {
	seen := make(map[string]int, len(names))
	for i, n := range names {
		if n == "" {
			return fmt.Errorf("%s has no name for column %d; name it, or read without header and give names", where, i+1)
		}
		if first, dup := seen[n]; dup {
			return fmt.Errorf("%s names columns %d and %d both %q; rename one, or read without header and give names",
				where, first+1, i+1, n)
		}
		seen[n] = i
	}
	return nil
}

// agree returns an error that describes how the header differs from names, the header of the
// first file.
func (h header) agree(path string, names []string) error {
	if slices.Equal(h.names, names) {
		return nil
	}
	for i := range min(len(h.names), len(names)) {
		if h.names[i] != names[i] {
			return fmt.Errorf("the headers of %s and %s differ: column %d is %q in the first and %q in the second",
				path, h.path, i+1, names[i], h.names[i])
		}
	}
	return fmt.Errorf("the headers of %s and %s differ: the first has %s, the second %d",
		path, h.path, humanize.Count(len(names), "column"), len(h.names))
}

// start begins to read a file, and skips its byte order mark and the given number of lines.
func (s *scanner) start(src io.Reader, expect int64, skip int) error {
	s.reset(src, 0, expect)
	if err := s.read(); err != nil {
		return err
	}
	if err := checkStart(s.buf[:s.fill]); err != nil {
		return err
	}
	if hasMark(s.buf[:s.fill]) {
		s.pos += 3
	}
	for ; skip > 0; skip-- {
		if err := s.skipLine(); err != nil {
			return err
		}
	}
	s.base = s.pos
	return nil
}

// skipLine skips the rest of a line.
func (s *scanner) skipLine() error {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:s.fill], '\n'); i >= 0 {
			s.pos += i + 1
			return nil
		}
		s.pos, s.base = s.fill, s.fill
		if s.eof {
			return nil
		}
		if err := s.read(); err != nil {
			return err
		}
	}
}

// takeHeaders sets the body of every part to the byte after its header, and checks that every
// header agrees with names, the header of the layout. The body of a file without a record is
// empty.
func (t *text) takeHeaders(ctx context.Context, sc *scanner, names []string) error {
	first := ""
	for i := range t.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := &t.parts[i]
		h, ok, err := p.header(sc)
		if err != nil {
			return err
		}
		if !ok {
			p.body = p.size
			continue
		}
		if first == "" {
			first = h.path
		}
		if first == h.path && !slices.Equal(h.names, names) {
			return fmt.Errorf("input %s %w: its header was %s, now it is %s",
				p.path, ErrChanged, humanize.Quoted(names, ", "), humanize.Quoted(h.names, ", "))
		}
		if err := h.agree(first, names); err != nil {
			return err
		}
		p.body = h.body
	}
	return nil
}

func (p *part) header(sc *scanner) (h header, ok bool, err error) {
	f, err := p.open()
	if err != nil {
		return h, false, err
	}
	defer func() { err = also(err, f.close()) }()
	sc.reset(&section{part: p, from: f, at: p.body}, p.body, 4<<10)
	return readHeader(p.path, sc)
}
