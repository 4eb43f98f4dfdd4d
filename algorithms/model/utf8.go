package model

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// replaced is the escape sequence that encoding/json writes instead of a byte that is not
// UTF-8. If a text contains the character U+FFFD itself, encoding/json writes its three bytes.
const replaced = `\ufffd`

// checkUTF8 returns an error if text, which must be valid JSON without white space, has bytes
// that are not UTF-8. written is set if encoding/json has written the text. The escape sequence
// replaced is then an error too, since it means that the encoded value had bytes that are not
// UTF-8. The error names the member.
func checkUTF8(text []byte, written bool) error {
	at := -1
	if !utf8.Valid(text) {
		for at = 0; ; {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
	}
	if written {
		if i := findReplaced(text); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	begin, member := stringAround(text, at)
	end, _ := stringEnd(text, begin)
	value := text[begin : end+1]
	const most = 60
	more := ""
	if len(value) > most {
		value, more = value[:most], "..."
	}
	where := "the text"
	if member != "" {
		where = fmt.Sprintf("member %q: the text", member)
	}
	return fmt.Errorf("%s %s%s has bytes that are not UTF-8, which no model's file can hold: write it in UTF-8", where, bytes.ToValidUTF8(value, []byte(replaced)), more)
}

// findReplaced returns the index of the first escape sequence of a replaced byte, or -1 if
// there is none. After an odd number of backslashes, the text `\ufffd` is not an escape
// sequence, because its own backslash is escaped.
func findReplaced(text []byte) int {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(replaced))
		if i < 0 {
			return -1
		}
		at += i
		before := at
		for before > 0 && text[before-1] == '\\' {
			before--
		}
		if (at-before)%2 == 0 {
			return at
		}
		at += len(replaced)
	}
}

// stringAround finds the string that contains the byte with index at. It returns the index at
// which the string begins, and the path of keys that leads to the string, such as
// "params.columns".
func stringAround(text []byte, at int) (begin int, member string) {
	var path []string // for each open bracket, the current key; "" for an array
	var object []bool
	key := false
	for i := 0; i < at; i++ {
		switch text[i] {
		case '{', '[':
			key = text[i] == '{'
			path, object = append(path, ""), append(object, key)
		case '}', ']':
			path, object, key = path[:len(path)-1], object[:len(object)-1], false
		case ',':
			key = object[len(object)-1]
		case '"':
			end, _ := stringEnd(text, i)
			if end > at {
				begin, at = i, i // at = i ends the loop
				break
			}
			if key {
				path[len(path)-1], key = string(text[i+1:end]), false
			}
			i = end
		}
	}
	if key && len(path) > 0 {
		path = path[:len(path)-1] // the string is a key itself
	}
	var names []string
	for _, name := range path {
		if name != "" {
			names = append(names, name)
		}
	}
	return begin, strings.Join(names, ".")
}
