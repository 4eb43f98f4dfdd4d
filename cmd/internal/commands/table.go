package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// outputForm is the value of --output.
type outputForm string

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table is text in rows and columns. It is printed with aligned columns.
type table struct {
	head []string
	rows [][]string
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = plain(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// write writes the table, with two spaces between columns. The last column is not padded.
func (t *table) write(w io.Writer) error {
	head := make([]string, len(t.head))
	width := make([]int, len(t.head))
	for i, h := range t.head {
		head[i] = strings.ToUpper(h)
	}
	for _, r := range append([][]string{head}, t.rows...) {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range append([][]string{head}, t.rows...) {
		var line strings.Builder
		for i, cell := range r {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// plain returns s as one line that cannot control a terminal: line breaks and tabs become
// spaces, and other characters that are not printable become question marks. It is for text
// that users or other machines wrote.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// ago returns a text for the duration from then to now, or "-" if then is zero.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return span(now.Sub(then)) + " ago"
}

// span returns d as text with at most two units. A negative d counts as 0.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
