package builtin

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// list is the value of a flag with names separated by commas. The flag may be given several times. A
// name that contains a comma is quoted, as in CSV, or has a backslash before the comma.
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

// sets is the value of a flag with lists separated by semicolons.
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

// word is a part of a text. The field end is the separator after the part, or 0 at the end of
// the text.
type word struct {
	text string
	end  byte
}

// wordsBetween splits a text at separators outside quotes. The last part may be empty.
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

// unquoted returns the quoted string at the beginning of a text without its quotes, and the rest of
// the text. Two consecutive quotes in the string represent one quote.
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

// plain splits a text at the first separator that has no backslash before it. In inner, the
// backslashes before separators are removed. rest begins with the separator.
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

// plainly returns inner of plain.
func plainly(text, separators string) string {
	inner, _ := plain(text, separators)
	return inner
}
