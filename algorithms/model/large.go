package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Payloads of large models, such as forests, may have hundreds of megabytes. Such a payload is
// appended directly to the model's file, and is decoded without a copy of its text.

// Appender is a payload, or a member of a payload, that encodes itself. AppendJSON appends
// valid JSON without white space to dst, with numbers and texts as encoding/json writes them.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// Apart is a payload with one large member, which Writer encodes and Reader decodes. Value has
// the other members: it is a struct in which the large member is null, or for decoding a
// pointer to such a struct.
type Apart struct {
	Value  any
	Member string
	Writer Appender
	Reader json.Unmarshaler
}

// AppendJSON implements Appender. It returns an error unless the JSON of Value has the large
// member exactly once, as null.
func (a Apart) AppendJSON(dst []byte) ([]byte, error) {
	text, err := json.Marshal(a.Value)
	if err != nil {
		return nil, err
	}
	// Quotes within texts are escaped, so the key and null cannot be found inside of a text.
	head, tail, ok := bytes.Cut(text, []byte(`"`+a.Member+`":null`))
	if !ok {
		return nil, fmt.Errorf("there is no member %q that is null", a.Member)
	}
	dst = append(append(append(dst, head...), '"'), a.Member...)
	if dst, err = a.Writer.AppendJSON(append(dst, `":`...)); err != nil {
		return nil, err
	}
	return append(dst, tail...), nil
}

// UnmarshalJSON decodes an object: the large member into Reader, the other members into Value.
// If the object does not have the large member, Reader is not called.
func (a Apart) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) || spaced(text) || !json.Valid(text) {
		return errors.New("it is no JSON object without white space")
	}
	for _, m := range cut(text) {
		if m.name != a.Member {
			continue
		}
		if string(text[m.begin:m.end]) == "null" {
			return fmt.Errorf("%s is null", a.Member)
		}
		small := append(append(append(json.RawMessage(nil), text[:m.begin]...), "null"...), text[m.end:]...)
		if err := Unmarshal(small, a.Value); err != nil {
			return err
		}
		return a.Reader.UnmarshalJSON(text[m.begin:m.end])
	}
	return Unmarshal(text, a.Value)
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
