package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Payloads of large models, such as forests, may have hundreds of megabytes. They are appended
// directly to the model's file, and decoded without a copy of their text.

// Appender is a payload, or a member of a payload, that encodes itself. AppendJSON appends
// valid JSON without white space to dst, with numbers and texts as encoding/json writes them.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// AppendApart appends the JSON of a struct, in which large encodes the value of one member. In
// value, the member must be null, and the struct must have it exactly once.
func AppendApart(dst []byte, value any, member string, large Appender) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// Quotes inside strings are escaped, so this text cannot occur inside a string.
	head, tail, ok := bytes.Cut(text, []byte(`"`+member+`":null`))
	if !ok {
		return nil, fmt.Errorf("there is no member %q that is null", member)
	}
	dst = append(append(append(dst, head...), '"'), member...)
	if dst, err = large.AppendJSON(append(dst, `":`...)); err != nil {
		return nil, err
	}
	return append(dst, tail...), nil
}

// UnmarshalApart does what Unmarshal does, for an object in which large decodes one member. If
// the object does not have this member, large is not called.
func UnmarshalApart(text json.RawMessage, into any, member string, large json.Unmarshaler) error {
	if !bytes.HasPrefix(text, []byte("{")) || spaced(text) || !json.Valid(text) {
		return errors.New("it is no JSON object without white space")
	}
	for _, m := range cut(text) {
		if m.name != member {
			continue
		}
		if string(text[m.begin:m.end]) == "null" {
			return fmt.Errorf("%s is null", member)
		}
		small := append(append(append(json.RawMessage(nil), text[:m.begin]...), "null"...), text[m.end:]...)
		if err := Unmarshal(small, into); err != nil {
			return err
		}
		return large.UnmarshalJSON(text[m.begin:m.end])
	}
	return Unmarshal(text, into)
}

// spaced reports whether text has white space outside of strings.
func spaced(text []byte) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			return true
		case '"':
			i, _ = stringEnd(text, i)
		}
	}
	return false
}

// place has the name of a member of an object, and the range of the member's value in the text.
type place struct {
	name       string
	begin, end int
}

// cut returns the members of an object. text must be valid JSON without white space.
func cut(text []byte) (found []place) {
	for i := 1; i < len(text) && text[i] != '}'; {
		end, _ := stringEnd(text, i)
		m := place{begin: end + 2}
		_ = json.Unmarshal(text[i:end+1], &m.name) // the text is valid JSON
		m.end = valueEnd(text, m.begin)
		found = append(found, m)
		if i = m.end; text[i] == ',' {
			i++
		}
	}
	return found
}

// valueEnd returns the index after the value that begins at index at.
func valueEnd(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		case '"':
			at, _ = stringEnd(text, at)
		}
	}
	return at
}
