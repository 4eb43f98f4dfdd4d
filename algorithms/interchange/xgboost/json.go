package xgboost

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads JSON as XGBoost writes it: RFC 8259 with the words NaN, Infinity and
// -Infinity. Numbers with a point or an exponent are rounded to float32; other numbers must be
// integers of 64 bits.
type jsonReader struct {
	text string
	at   int
}

func parseJSON(text string) (any, error) {
	r := &jsonReader{text: text}
	v, err := r.value(0)
	if err == nil {
		if r.space(); r.at < len(text) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", r.at, err)
	}
	return v, nil
}

var errEnd = errors.New("the file ends inside a value")

func (r *jsonReader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte without consuming it. It returns 0 at the
// end.
func (r *jsonReader) next() byte {
	if r.space(); r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// take consumes the byte c, which must be the next one.
func (r *jsonReader) take(c byte) error {
	if got := r.next(); got != c {
		if r.at >= len(r.text) {
			return errEnd
		}
		return fmt.Errorf("found %q, want %q", got, c)
	}
	r.at++
	return nil
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	switch c := r.next(); {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '"':
		return r.string()
	case c == 't':
		return true, r.word("true")
	case c == 'f':
		return false, r.word("false")
	case c == 'n':
		return nil, r.word("null")
	case beginsNumber(c):
		return r.number()
	case r.at >= len(r.text):
		return nil, errEnd
	default:
		return nil, fmt.Errorf("no value begins with %q", c)
	}
}

func (r *jsonReader) word(w string) error {
	if len(r.text)-r.at < len(w) || r.text[r.at:r.at+len(w)] != w {
		return fmt.Errorf("want the word %s", w)
	}
	r.at += len(w)
	return nil
}

func (r *jsonReader) object(depth int) (any, error) {
	r.at++
	made := map[string]any{}
	if r.next() == '}' {
		r.at++
		return made, nil
	}
	for {
		if c := r.next(); c != '"' {
			return nil, r.take('"')
		}
		from := r.at
		key, err := r.string()
		if err != nil {
			return nil, err
		}
		if _, ok := made[key]; ok {
			r.at = from
			return nil, fmt.Errorf("the member %s occurs twice", shorten(key))
		}
		if err := r.take(':'); err != nil {
			return nil, err
		}
		if made[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
		if r.next() == ',' {
			r.at++
			continue
		}
		return made, r.take('}')
	}
}

// array reads an array. If the array has only numbers and bools, the result is a []float64.
func (r *jsonReader) array(depth int) (any, error) {
	r.at++
	numbers := []float64{}
	var list []any
	if r.next() == ']' {
		r.at++
		return numbers, nil
	}
	for {
		if c := r.next(); list == nil && beginsNumber(c) {
			v, err := r.number()
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, v)
		} else {
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if number, ok := asNumber(v); ok && list == nil {
				numbers = append(numbers, number)
			} else {
				if list == nil {
					list = mixed(numbers)
				}
				list = append(list, v)
			}
		}
		if r.next() == ',' {
			r.at++
			continue
		}
		if err := r.take(']'); err != nil {
			return nil, err
		}
		if list != nil {
			return list, nil
		}
		return numbers, nil
	}
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// mixed returns numbers as a []any, with room for one more element.
func mixed(numbers []float64) []any {
	list := make([]any, len(numbers), len(numbers)+1)
	for i, v := range numbers {
		list[i] = v
	}
	return list
}

func beginsNumber(c byte) bool {
	return c == '-' || c == 'N' || c == 'I' || c >= '0' && c <= '9'
}

func (r *jsonReader) number() (float64, error) {
	from := r.at
	float := false
scan:
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c >= '0' && c <= '9' || c == '-' || c == '+':
		case c == '.' || c == 'e' || c == 'E':
			float = true
		case c == 'N':
			return math.NaN(), r.word("NaN")
		case c == 'I':
			if minus := r.text[from:r.at]; minus != "" {
				return math.Inf(-1), r.word("Infinity")
			}
			return math.Inf(1), r.word("Infinity")
		default:
			break scan
		}
	}
	text := r.text[from:r.at]
	if float {
		v, err := strconv.ParseFloat(text, 32)
		if err != nil {
			r.at = from
			return 0, fmt.Errorf("%s is no number of float32", shorten(text))
		}
		return v, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		r.at = from
		return 0, fmt.Errorf("%s is no integer of 64 bits", shorten(text))
	}
	return float64(v), nil
}

// string reads a string, which must be valid UTF-8.
func (r *jsonReader) string() (string, error) {
	from := r.at
	r.at++
	plain := r.at
	for r.at < len(r.text) && r.text[r.at] != '"' && r.text[r.at] != '\\' && r.text[r.at] >= ' ' {
		r.at++
	}
	if r.at < len(r.text) && r.text[r.at] == '"' {
		return r.whole(from, r.text[plain:r.at])
	}
	made := []byte(r.text[plain:r.at])
	for r.at < len(r.text) {
		c := r.text[r.at]
		switch {
		case c == '"':
			return r.whole(from, string(made))
		case c < ' ':
			return "", fmt.Errorf("a text contains the control character %d", c)
		case c != '\\':
			made = append(made, c)
			r.at++
		default:
			var err error
			if made, err = r.escape(made); err != nil {
				return "", err
			}
		}
	}
	return "", errEnd
}

// whole consumes the closing quote of the string s and returns s, which must be valid UTF-8.
// The string begins at byte from of the file.
func (r *jsonReader) whole(from int, s string) (string, error) {
	if !utf8.ValidString(s) {
		r.at = from
		return "", errors.New("the text is not UTF-8")
	}
	r.at++
	return s, nil
}

// escape appends the character of an escape sequence to made.
func (r *jsonReader) escape(made []byte) ([]byte, error) {
	if r.at+1 >= len(r.text) {
		return nil, errEnd
	}
	c := r.text[r.at+1]
	r.at += 2
	switch c {
	case '"', '\\', '/':
		return append(made, c), nil
	case 'b':
		return append(made, '\b'), nil
	case 'f':
		return append(made, '\f'), nil
	case 'n':
		return append(made, '\n'), nil
	case 'r':
		return append(made, '\r'), nil
	case 't':
		return append(made, '\t'), nil
	case 'u':
		v, err := r.unit()
		if err != nil {
			return nil, err
		}
		if utf16.IsSurrogate(v) && len(r.text)-r.at >= 6 && r.text[r.at:r.at+2] == `\u` {
			r.at += 2
			low, err := r.unit()
			if err != nil {
				return nil, err
			}
			return utf8.AppendRune(made, utf16.DecodeRune(v, low)), nil
		}
		return utf8.AppendRune(made, v), nil
	}
	return nil, fmt.Errorf("%q follows a backslash", c)
}

// unit reads the four hexadecimal digits of a UTF-16 code unit.
func (r *jsonReader) unit() (rune, error) {
	if len(r.text)-r.at < 4 {
		return 0, errEnd
	}
	v, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 16)
	if err != nil {
		return 0, fmt.Errorf("%q are no four hexadecimal digits", r.text[r.at:r.at+4])
	}
	r.at += 4
	return rune(v), nil
}

// appendJSON appends a value in the form that XGBoost's parser reads. Numbers of float32 have
// an exponent and integers have none, because the parser reads a number without an exponent as
// an integer.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case float32:
		return appendFloat(b, v)
	case []float32:
		return appendList(b, v, appendFloat)
	case []int32:
		return appendList(b, v, appendInteger)
	case []int64:
		return appendList(b, v, appendInteger)
	case []int:
		return appendList(b, v, appendInteger)
	case []uint8:
		return appendList(b, v, appendInteger)
	case []string:
		return appendList(b, v, appendText)
	case []any:
		return appendList(b, v, appendJSON)
	}
	b = append(b, '{')
	for i, m := range v.(members) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, m.name), ':')
		b = appendJSON(b, m.value)
	}
	return append(b, '}')
}

func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

func appendInteger[T int | int32 | int64 | uint8](b []byte, v T) []byte {
	return strconv.AppendInt(b, int64(v), 10)
}

// appendFloat appends the shortest decimal that parses to v, with an exponent, such as 1.5E0.
func appendFloat(b []byte, v float32) []byte {
	switch {
	case v != v:
		return append(b, "NaN"...)
	case math.IsInf(float64(v), 1):
		return append(b, "Infinity"...)
	case math.IsInf(float64(v), -1):
		return append(b, "-Infinity"...)
	}
	from := len(b)
	b = strconv.AppendFloat(b, float64(v), 'E', -1, 32)
	// Go writes E+00 and E-07 where XGBoost writes E0 and E-7.
	at := from
	for b[at] != 'E' {
		at++
	}
	exponent := b[at+1:]
	kept := b[:at+1]
	if exponent[0] == '-' {
		kept = append(kept, '-')
	}
	digits := exponent[1:]
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	return append(kept, digits...)
}

// appendText appends a JSON string. It escapes only characters that must be escaped, with
// escape sequences that XGBoost's parser supports. The parser supports \u only for control
// characters.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c < ' ':
			b = append(b, fmt.Sprintf(`\u%04x`, c)...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
