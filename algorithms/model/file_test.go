package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

type payload struct {
	Numbers []float64         `json:"numbers"`
	Words   map[string]string `json:"words"`
}

func file(t testing.TB) []byte {
	t.Helper()
	text, err := model.Encode("scaler", 2, []model.Input{{Column: "x \"y\"", Type: "float64"}}, map[string]int{"rows": 3},
		payload{Numbers: []float64{0.1, -1e300, 5e-324}, Words: map[string]string{"b": "<&> \\\" ", "a": "{[,"}})
	require.NoError(t, err)
	return text
}

func TestFileReadsBack(t *testing.T) {
	text := file(t)
	require.Equal(t, text, file(t))
	f, err := model.Decode(text, "scaler", 2)
	require.NoError(t, err)
	require.Equal(t, "scaler", f.Kind)
	require.Equal(t, 2, f.Version)
	require.Equal(t, []model.Input{{Column: "x \"y\"", Type: "float64"}}, f.Inputs)
	require.JSONEq(t, `{"rows": 3}`, string(f.Summary))
	var p payload
	require.NoError(t, model.Unmarshal(f.Payload, &p))
	require.Equal(t, []float64{0.1, -1e300, 5e-324}, p.Numbers)
	require.Equal(t, "<&> \\\" ", p.Words["b"])
	kind, err := model.KindOf(text)
	require.NoError(t, err)
	require.Equal(t, "scaler", kind)
}

func TestFileMayBeWrittenWithSpacesAndInAnotherOrder(t *testing.T) {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(file(t), &members))
	text, err := json.MarshalIndent(members, " ", "\t")
	require.NoError(t, err)
	f, err := model.Decode(append(text, "\n\n"...), "scaler", 7)
	require.NoError(t, err)
	require.NotContains(t, string(f.Payload), "\t")
}

func TestEveryTruncationIsAnError(t *testing.T) {
	text := file(t)
	for n := range text {
		_, err := model.Decode(text[:n], "scaler", 2)
		require.Error(t, err, "a file truncated to %d bytes must be an error", n)
		if n > 0 {
			require.ErrorContains(t, err, "truncated", "%d bytes", n)
		}
	}
}

// TestEveryAlterationIsAnError requires that Decode returns an error for a file in which any
// single byte is changed.
func TestEveryAlterationIsAnError(t *testing.T) {
	text := file(t)
	for i := range text {
		for _, c := range []byte{'0', 'x', '"', '\\', text[i] ^ 0x20} {
			if c == text[i] {
				continue
			}
			altered := append([]byte(nil), text...)
			altered[i] = c
			_, err := model.Decode(altered, "scaler", 2)
			require.Error(t, err, "a file with a changed byte must be an error: %s", altered)
		}
	}
}

// TestEveryBitOfAFileIsCovered requires that Decode returns an error for a saved file in which
// any bit is changed or any byte is missing or doubled, and for a file with text after the
// object.
func TestEveryBitOfAFileIsCovered(t *testing.T) {
	text := append(file(t), '\n') // the file that Save writes
	refused := func(altered []byte, what string, at int) {
		t.Helper()
		_, err := model.Decode(altered, "scaler", 2)
		require.Error(t, err, "a file with a damage (%s at byte %d) must be an error: %s", what, at, altered)
	}
	for i, c := range text {
		for bit := range 8 {
			altered := bytes.Clone(text)
			altered[i] ^= 1 << bit
			refused(altered, fmt.Sprintf("bit %d", bit), i)
		}
		if i == len(text)-1 {
			break // a missing or doubled line end is no error
		}
		refused(append(bytes.Clone(text[:i]), text[i+1:]...), "missing byte", i)
		refused(append(append(bytes.Clone(text[:i]), c), text[i:]...), "repeated byte", i)
	}
	for c := range 256 {
		if strings.IndexByte(" \t\r\n", byte(c)) < 0 {
			refused(append(bytes.Clone(text), byte(c)), "appended byte", c)
		}
	}
}

func TestDecodeTellsWhatIsWrong(t *testing.T) {
	text := string(file(t))
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{" \n", "empty"},
		{"[]", "no JSON object"},
		{"\x00", `it is no JSON object: it begins with "\x00"`},
		{" \xef\xbb\xbf{}", `it begins with "\xef"`},
		{strings.Repeat("[", 100_000), "no JSON object"},
		{`{"format": "superstep/model", "kind": "scaler"}`, `it has no "version"`},
		{`{"format": "superstep/model", "kind": "scaler", "version": null}`, `versions begin at 1`},
		{`{"format": "superstep/model", "version": 1}`, `it has no "kind"`},
		{"3", "no JSON object"},
		{"{}", "not a model"},
		{`{"format": 3}`, "not a model"},
		{`{"format": "csv"}`, `format is "csv", want "superstep/model"`},
		{`{"format": "superstep/model"}`, `no "kind"`},
		{`{"format": "superstep/model", "kind": "svm", "version": 9}`, `of kind "svm": want one of kind "scaler"`},
		{`{"format": "superstep/model", "kind": "scaler", "version": 3, "new": 1}`, "reads up to version 2 and must be updated"},
		{`{"format": "superstep/model", "kind": "scaler", "version": 1.5}`, "version"},
		{`{"format": "superstep/model", "kind": "scaler", "version": 0}`, "versions begin at 1"},
		{`{"format": "superstep/model", "kind": "scaler", "version": 1}`, `no "inputs"`},
		{`{"format": "superstep/model", "kind": "scaler", "version": 1, "inputs": null, "summary": null, "payload": 1, "checksum": "xxh3:0"}`, `no "inputs"`},
		{`{"format": "superstep/model", "kind": "scaler", "version": 1, "inputs": {}, "summary": null, "payload": null, "checksum": "xxh3:0"}`, `no "payload"`},
		{text + "{}", "something else follows it"},
		{text + "x", "something else follows it"},
		{strings.Replace(text, `"rows":3`, `"rows":3,"rows":4`, 1), `key "rows" twice`},
		{strings.Replace(text, `"kind":"scaler"`, `"kind":"scaler","kin\u0064":"svm"`, 1), `key "kind" twice`},
		{strings.Replace(text, `{"format"`, `{"sumary":1,"format"`, 1), `unknown member "sumary": did the writer mean "summary"`},
		{strings.Replace(text, `{"format"`, `{"zzzzzz":1,"format"`, 1), `unknown member "zzzzzz"`},
		{strings.Replace(text, `"rows":3`, `"rows":4`, 1), "checksum of what was read"},
		{strings.Replace(text, `"payload":{`, `"payload": nul{`, 1), "damaged"},
	} {
		_, err := model.Decode([]byte(c.text), "scaler", 2)
		require.ErrorContains(t, err, c.want, "%s", c.text)
	}
	_, err := model.KindOf([]byte("{"))
	require.ErrorContains(t, err, "truncated after 1 bytes")
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct {
		kind    string
		version int
		payload any
		want    string
	}{
		{"", 1, 3, "kind is empty"},
		{"a", 0, 3, "versions begin at 1"},
		{"a", 1, nil, "no payload"},
		{"a", 1, func() {}, "payload"},
		{"a", 1, json.RawMessage(`{"a":1,"a":2}`), `key "a" twice`},
	} {
		_, err := model.Encode(c.kind, c.version, nil, nil, c.payload)
		require.ErrorContains(t, err, c.want)
	}
}

// TestFilesRefuseBytesThatAreNoText requires that Encode and Decode return an error for bytes
// that are not UTF-8. JSON cannot represent such bytes: they would be read back as other text.
func TestFilesRefuseBytesThatAreNoText(t *testing.T) {
	type inner struct {
		Values [][]string        `json:"values"`
		Names  map[string]string `json:"names"`
	}
	type outer struct {
		Rows   int     `json:"rows"`
		Params *inner  `json:"params"`
		Note   string  `json:"note"`
		Slope  float64 `json:"slope"`
	}
	for _, c := range []struct {
		kind    string
		inputs  []model.Input
		payload any
		want    string
	}{
		{"a", nil, outer{Note: "a\xff"}, `payload: member "note": the text "a\ufffd" has bytes that are not UTF-8`},
		{"a", nil, outer{Params: &inner{Values: [][]string{{"x"}, {"y", "\\", "\\\xfe"}}}}, `payload: member "params.values": the text "\\\ufffd" has`},
		{"a", nil, outer{Params: &inner{Names: map[string]string{"b\xff": "c"}}}, `payload: member "params.names": the text "b\ufffd" has`},
		{"a", nil, outer{Params: &inner{Names: map[string]string{"b": "\xff"}}}, `payload: member "params.names.b": the text "\ufffd" has`},
		{"a", nil, "\xff" + strings.Repeat("x", 100), `payload: the text "\ufffdxxx`},
		{"a", nil, json.RawMessage("[1,{\"a\":2},\"\xff\"]"), `payload: the text "\ufffd" has`},
		{"a", []model.Input{{Column: "x\xff", Type: "int64"}}, 1, `inputs: member "column": the text "x\ufffd" has`},
		{"k\xff", nil, 1, `kind: the text "k\ufffd" has`},
	} {
		_, err := model.Encode(c.kind, 1, c.inputs, nil, c.payload)
		require.ErrorContains(t, err, c.want)
	}
	text, err := model.Encode("a", 1, nil, nil, outer{Note: "\uFFFD é \\ufffd \u2028", Params: &inner{}})
	require.NoError(t, err)
	file, err := model.Decode(text, "a", 1)
	require.NoError(t, err)
	var back outer
	require.NoError(t, json.Unmarshal(file.Payload, &back))
	require.Equal(t, "\uFFFD é \\ufffd \u2028", back.Note)
	_, err = model.Decode(bytes.Replace(text, []byte("é"), []byte{0xff}, 1), "a", 1)
	require.ErrorContains(t, err, `model is damaged: member "payload.note": the text`)
}

func TestUnmarshalIsStrict(t *testing.T) {
	var p payload
	require.ErrorContains(t, model.Unmarshal(json.RawMessage(`{"number": 1}`), &p), "number")
	require.ErrorContains(t, model.Unmarshal(json.RawMessage(` null`), &p), "null")
	require.ErrorContains(t, model.Unmarshal(json.RawMessage(`{} 1`), &p), "something follows it")
	require.ErrorContains(t, model.Unmarshal(json.RawMessage(`{"numbers": ["a"]}`), &p), "numbers")
}

func TestSaveReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.json")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, model.Save(path, scaler{Length: 3}))
	text, err := model.ReadFile(path)
	require.NoError(t, err)
	m, err := decodeScaler(text)
	require.NoError(t, err)
	require.Equal(t, 3.0, m.Length)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.ErrorContains(t, model.Save(filepath.Join(dir, "none", "m.json"), scaler{Length: 1}), "save model")
	require.ErrorContains(t, model.Save(path, scaler{Length: -1}), "length")
	_, err = model.ReadFile(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "load model")
	again, err := model.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, again)
}

// FuzzDecode decodes files, encodes the decoded values, and decodes the result. It requires
// that the values are the same after both decodings.
func FuzzDecode(f *testing.F) {
	text := file(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte(`{"format":"superstep/model","kind":"scaler","version":1,"inputs":[],"summary":null,"payload":{"a":["\"",{}],"b":{}},"checksum":""}`))
	f.Add([]byte(`{"a":{"a":{"a":"\\"}},"b":[[[{"a":1,"\u0061":2}]]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := model.Decode(text, "scaler", 2)
		if err != nil {
			return
		}
		again, err := model.Encode(file.Kind, file.Version, file.Inputs, file.Summary, file.Payload)
		if bytes.Contains(text, []byte(`\ufffd`)) && err != nil { // the escape sequence that encoding/json writes for a byte that is not UTF-8
			require.ErrorContains(t, err, "not UTF-8")
			return
		}
		require.NoError(t, err)
		same, err := model.Decode(again, "scaler", 2)
		require.NoError(t, err)
		require.Equal(t, file.Inputs, same.Inputs)
		require.Equal(t, file.Version, same.Version)
	})
}
