package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/spelling"
)

// Format is the value of the member "format" in every model's file.
const Format = "superstep/model"

// MaxFile is the largest size of a model's file in bytes. In jobs, models are values of a text
// column, which cannot be larger.
const MaxFile = 1<<31 - 1

// members are the required keys of the object, in the order in which they are hashed. The
// checksum, which is not hashed, comes last.
var members = []string{"format", "kind", "version", "inputs", "summary", "payload", "checksum"}

// File is a model's file after the checks that are common to all kinds.
type File struct {
	Kind    string
	Version int
	Inputs  []Input
	// Summary and Payload are the members as written, without white space; see Unmarshal.
	// Summary is "null" if there is none. If the decoded text had no white space, Summary and
	// Payload are slices of that text, and are valid as long as the text is not modified.
	Summary, Payload json.RawMessage
	// Reading is the zero value if the file does not have the member.
	Reading Reading
}

// Encode returns the file of a model. It returns the same bytes for the same arguments. version
// is the version of the payload's format for this kind, at least 1. summary, which may be nil,
// and payload are encoded by encoding/json; a payload that implements Appender encodes itself.
// Encode returns an error if summary or payload contains a NaN, an infinity, or text that is
// not UTF-8, because JSON cannot represent them.
func Encode(kind string, version int, inputs []Input, summary, payload any) ([]byte, error) {
	switch {
	case kind == "":
		return nil, errors.New("model: the kind is empty")
	case version < 1:
		return nil, fmt.Errorf("model of kind %q: version %d: versions begin at 1", kind, version)
	}
	if inputs == nil {
		inputs = []Input{}
	}
	text := []byte{'{'}
	for i, v := range []any{Format, kind, version, inputs, summary, payload} {
		text = appendKey(text, i)
		begin := len(text)
		var err error
		if text, err = appendValue(text, v); err != nil {
			return nil, fmt.Errorf("model of kind %q: %s: %w", kind, members[i], err)
		}
		for _, err := range []error{checkKeys(text[begin:]), checkUTF8(text[begin:], true)} {
			if err != nil {
				return nil, fmt.Errorf("model of kind %q: %s: %w", kind, members[i], err)
			}
		}
		if members[i] == "payload" && string(text[begin:]) == "null" {
			return nil, fmt.Errorf("model of kind %q: there is no payload", kind)
		}
	}
	text = append(text, '}')
	sum := checksum(xxh3.Hash(text))
	text = append(text[:len(text)-1], `,"checksum":"`+sum+`"}`...)
	if len(text) > MaxFile {
		return nil, fmt.Errorf("model of kind %q: it takes %d bytes, a model's file at most %d", kind, len(text), MaxFile)
	}
	return text, nil
}

// appendKey appends the key of a member, which is given by its index in members.
func appendKey(text []byte, member int) []byte {
	if member > 0 {
		text = append(text, ',')
	}
	return append(append(append(text, '"'), members[member]...), `":`...)
}

// appendValue appends the JSON of a value.
func appendValue(text []byte, v any) ([]byte, error) {
	if a, ok := v.(Appender); ok {
		return a.AppendJSON(text)
	}
	own, err := json.Marshal(v)
	return append(text, own...), err
}

// checksumOf returns the checksum of a file. values has the value of each key in members except
// the checksum, without white space. reading is the value of the member reading, or nil if
// there is none.
func checksumOf(values []json.RawMessage, reading json.RawMessage) string {
	h := xxh3.New()
	_, _ = h.WriteString("{")
	for i, v := range values {
		_, _ = h.Write(appendKey(nil, i))
		_, _ = h.Write(v)
	}
	if reading != nil {
		_, _ = h.WriteString(`,"` + readingMember + `":`)
		_, _ = h.Write(reading)
	}
	_, _ = h.WriteString("}")
	return checksum(h.Sum64())
}

func checksum(hash uint64) string { return fmt.Sprintf("xxh3:%016x", hash) }

// Decode decodes a file of the given kind that Encode returned. newest is the newest version
// that the caller understands. Decode returns an error that states the problem if the file is
// truncated, altered, not a model, of another kind or of a newer version.
func Decode(file []byte, kind string, newest int) (*File, error) {
	object, err := split(file)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if f.Kind, err = object.kind(); err != nil {
		return nil, err
	}
	if f.Kind != kind {
		return nil, fmt.Errorf("model of kind %q: want one of kind %q", f.Kind, kind)
	}
	if object["version"] == nil {
		return nil, errors.New(`model is damaged: it has no "version"`)
	}
	if err := json.Unmarshal(object["version"], &f.Version); err != nil {
		return nil, fmt.Errorf("model is damaged: version: %w", err)
	}
	switch {
	case f.Version > newest:
		return nil, fmt.Errorf("model of kind %q and version %d: this program reads up to version %d and must be updated to read it", kind, f.Version, newest)
	case f.Version < 1:
		return nil, fmt.Errorf("model is damaged: version is %d, versions begin at 1", f.Version)
	}
	if err := object.verify(); err != nil {
		return nil, err
	}
	if err := Unmarshal(object["inputs"], &f.Inputs); err != nil {
		return nil, fmt.Errorf("model is damaged: inputs: %w", err)
	}
	if f.Reading, err = object.reading(); err != nil {
		return nil, err
	}
	f.Summary, f.Payload = object["summary"], object["payload"]
	return f, nil
}

// DecodeParts does what Decode does, for kinds with a summary in every file. It also decodes
// the summary and the payload into the values to which summary and payload point, as Unmarshal
// does.
func DecodeParts(file []byte, kind string, newest int, summary, payload any) (*File, error) {
	f, err := Decode(file, kind, newest)
	if err != nil {
		return nil, err
	}
	if err := Unmarshal(f.Summary, summary); err != nil {
		return nil, fmt.Errorf("model of kind %q is damaged: summary: %w", kind, err)
	}
	if err := Unmarshal(f.Payload, payload); err != nil {
		return nil, fmt.Errorf("model of kind %q is damaged: payload: %w", kind, err)
	}
	return f, nil
}

// EncodeWhole does what Encode does, for a model that has been checked. problem is the result
// of the check; if it is not nil, EncodeWhole returns it as an error.
func EncodeWhole(problem error, kind string, version int, inputs []Input, summary, payload any) ([]byte, error) {
	if problem != nil {
		return nil, fmt.Errorf("model of kind %q: %w", kind, problem)
	}
	return Encode(kind, version, inputs, summary, payload)
}

// Whole returns the decoded model m if problem, the result of the model's check, is nil.
// Otherwise it returns an error about the problem.
func Whole[M any](m *M, problem error) (*M, error) {
	if problem != nil {
		return nil, fmt.Errorf("model is damaged: %w", problem)
	}
	return m, nil
}

// KindOf returns the kind of a model's file. It does not check version, checksum and payload.
func KindOf(file []byte) (string, error) {
	object, err := split(file)
	if err != nil {
		return "", err
	}
	return object.kind()
}

// space has the characters that are white space in JSON.
const space = " \t\r\n"

// object has the members of a model's file by key, without white space.
type object map[string]json.RawMessage

// split splits a file into its members. It returns an error if the file is not a JSON object,
// or if an object in the file, at any depth, has a key twice.
func split(file []byte) (object, error) {
	if len(file) > MaxFile {
		return nil, fmt.Errorf("model has %d bytes: a model's file has at most %d", len(file), MaxFile)
	}
	// Removing white space around the object takes no memory.
	lead := len(file) - len(bytes.TrimLeft(file, space))
	whole := len(file)
	file = bytes.TrimRight(file[lead:], space)
	if len(file) == 0 {
		return nil, errors.New("model is empty")
	}
	switch first := file[0]; {
	case first == '{':
	case bytes.IndexByte([]byte(`["-0123456789tfn`), first) >= 0: // another JSON value
		return nil, errors.New("not a model: it is no JSON object")
	default:
		return nil, fmt.Errorf("model is damaged: it is no JSON object: it begins with %+q", file[:1])
	}
	if spaced(file) || !json.Valid(file) {
		var compact bytes.Buffer
		compact.Grow(len(file))
		if err := json.Compact(&compact, file); err != nil {
			return nil, syntaxError(file, lead, whole, err)
		}
		file = compact.Bytes()
	}
	for _, err := range []error{checkKeys(file), checkUTF8(file, false)} {
		if err != nil {
			return nil, fmt.Errorf("model is damaged: %w", err)
		}
	}
	o := object{}
	for _, m := range cut(file) {
		o[m.name] = file[m.begin:m.end:m.end]
	}
	return o, nil
}

// syntaxError returns the error about input that is not valid JSON. The error says whether the
// input is truncated or has text after the object. file is the input without leading and
// trailing white space. lead is the number of bytes of leading white space, and whole is the
// number of bytes of the input with all white space.
func syntaxError(file []byte, lead, whole int, err error) error {
	var syntax *json.SyntaxError
	reader := json.NewDecoder(bytes.NewReader(file))
	switch wrong := reader.Decode(new(json.RawMessage)); {
	case wrong == nil:
		return fmt.Errorf("model is damaged: it ends after %d of %d bytes, and something else follows it: %w", lead+int(reader.InputOffset()), whole, err)
	case errors.Is(wrong, io.ErrUnexpectedEOF), errors.Is(wrong, io.EOF):
		return fmt.Errorf("model is truncated after %d bytes: %w", whole, err)
	case errors.As(wrong, &syntax) && syntax.Offset >= int64(len(file)):
		return fmt.Errorf("model is truncated after %d bytes: %w", whole, err)
	}
	return fmt.Errorf("model is damaged: %w", err)
}

// kind checks the member format and returns the member kind.
func (o object) kind() (string, error) {
	var format, kind string
	if err := json.Unmarshal(o["format"], &format); err != nil {
		return "", errors.New(`not a model: it has no text "format"`)
	}
	if format != Format {
		return "", fmt.Errorf("not a model: format is %q, want %q", format, Format)
	}
	if err := json.Unmarshal(o["kind"], &kind); err != nil || kind == "" {
		return "", errors.New(`model is damaged: it has no "kind"`)
	}
	return kind, nil
}

// verify checks that all required members and no unknown members are present, and that the
// checksum is right.
func (o object) verify() error {
	values := make([]json.RawMessage, len(members)-1)
	for i, name := range members {
		value, ok := o[name]
		if !ok || string(value) == "null" && name != "summary" {
			return fmt.Errorf("model is damaged: it has no %q", name)
		}
		if i < len(values) {
			values[i] = value
		}
	}
	want := len(members)
	if _, ok := o[readingMember]; ok {
		want++
	}
	if len(o) > want {
		return fmt.Errorf("model is damaged: %w", o.unknown())
	}
	var written string
	if err := json.Unmarshal(o["checksum"], &written); err != nil {
		return fmt.Errorf("model is damaged: checksum: %w", err)
	}
	if want := checksumOf(values, o[readingMember]); written != want {
		return fmt.Errorf("model is damaged: the checksum of what was read is %s, the model says %q", want, written)
	}
	return nil
}

// unknown returns the error for unknown members. The error names the unknown member that is
// alphabetically first.
func (o object) unknown() error {
	first := ""
	for name := range o {
		if !slices.Contains(members, name) && name != readingMember && (first == "" || name < first) {
			first = name
		}
	}
	if near := spelling.Near(first, append(slices.Clone(members), readingMember)); len(near) > 0 {
		return fmt.Errorf("it has an unknown member %q: did the writer mean %q?", first, near[0])
	}
	return fmt.Errorf("it has an unknown member %q", first)
}

// Unmarshal decodes a summary or payload into the value to which the parameter into points. It
// is strict: it returns an error if a member has no field in the value, or if text is null.
func Unmarshal(text json.RawMessage, into any) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return errors.New("it is null")
	}
	if a, ok := into.(Apart); ok {
		return a.UnmarshalJSON(text)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(text[strict.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("something follows it after %d bytes", strict.InputOffset())
	}
	return nil
}
