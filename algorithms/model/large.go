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

// Apart is a payload with a large member, which Writer writes and Reader reads. Value is a
// struct in which this member is null, or a pointer to one for reading.
type Apart struct {
	Value  any
	Member string
	Writer Appender
	Reader json.Unmarshaler
}

// AppendJSON implements Appender. The member must be in the struct exactly once.
func (a Apart) AppendJSON(dst []byte) ([]byte, error) {
	text, err := json.Marshal(a.Value)
	if err != nil {
		return nil, err
	}
	// Quotes within texts are escaped, so this cannot be found inside one.
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

// UnmarshalApart does what Unmarshal does, for an object in which large decodes one member. If
// the object does not have this member, large is not called.
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
