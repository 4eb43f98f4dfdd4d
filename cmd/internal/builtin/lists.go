package builtin

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// list is a flag that holds names separated by commas, and that may be given several times. A
// name with a comma in it stands in quotes, as in CSV, or has a backslash before the comma.
type list []string

// Decode implements kong.MapperValue.
func (l *list) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("list", &text); err != nil {
		return err
	}
	words, err := wordsBetween(text, ",")
	for _, w := range words {
		*l = append(*l, w.text)
	}
	return err
}

// sets is a flag that holds lists separated by semicolons.
type sets [][]string

// Decode implements kong.MapperValue.
func (s *sets) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("sets", &text); err != nil {
		return err
	}
	words, err := wordsBetween(text, ",;")
	var set []string
	for i, w := range words {
		if set = append(set, w.text); w.end == ';' || i == len(words)-1 {
			*s = append(*s, set)
			set = nil
		}
	}
	return err
}

// word is a part of a text with the separator after it, which is 0 at the end.
type word struct {
	text string
	end  byte
}

// wordsBetween cuts a text at separators outside of quotes. The last part may be empty.
func wordsBetween(text, separators string) (words []word, err error) {
	for text != "" {
		var w word
		if text[0] == '"' {
			w.text, text, err = unquoted(text)
		} else {
			w.text, text = plain(text, separators)
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			if !strings.Contains(separators, text[:1]) {
				return nil, fmt.Errorf("%q follows a closing quote: want a comma", plainly(text, separators))
			}
			w.end, text = text[0], text[1:]
		}
		words = append(words, w)
	}
	return words, nil
}

// unquoted returns the content of the quotes that a text begins with, and the rest of the text.
// A quote in it is doubled.
func unquoted(text string) (inner, rest string, err error) {
	var b strings.Builder
	for at := 1; at < len(text); at++ {
		if text[at] != '"' {
			b.WriteByte(text[at])
			continue
		}
		if at++; at == len(text) || text[at] != '"' {
			return b.String(), text[at:], nil
		}
		b.WriteByte('"')
	}
	return "", "", fmt.Errorf("the quote that opens at %s is never closed", text)
}

// plain returns the text before the next separator without a backslash before it, and the rest.
func plain(text, separators string) (inner, rest string) {
	var b strings.Builder
	for at := 0; at < len(text); at++ {
		c := text[at]
		if strings.IndexByte(separators, c) >= 0 {
			return b.String(), text[at:]
		}
		if c == '\\' && at+1 < len(text) && strings.IndexByte(separators, text[at+1]) >= 0 {
			at++
			c = text[at]
		}
		b.WriteByte(c)
	}
	return b.String(), ""
}

// plainly returns what plain does, without the rest.
func plainly(text, separators string) string {
	inner, _ := plain(text, separators)
	return inner
}
