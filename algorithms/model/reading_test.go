package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// TestReading requires that the checksum of a file covers its Reading, and that files without a
// Reading do not change.
func TestReading(t *testing.T) {
	plain, err := model.Encode("toy", 1, nil, nil, map[string]int{"a": 1})
	require.NoError(t, err)
	same, err := model.WithReading(plain, model.Reading{})
	require.NoError(t, err)
	require.Equal(t, string(plain), string(same))
	r, err := model.ReadingOf(plain)
	require.NoError(t, err)
	require.Zero(t, r)

	said := model.Reading{Nulls: []string{"-999", `"?"`, "é"}, ZeroBased: true}
	file, err := model.WithReading(plain, said)
	require.NoError(t, err)
	require.Contains(t, string(file), `,"reading":{"nulls":["-999","\"?\"","é"],"zero_based":true},"checksum":"xxh3:`)
	r, err = model.ReadingOf(file)
	require.NoError(t, err)
	require.Equal(t, said, r)
	f, err := model.Decode(file, "toy", 1)
	require.NoError(t, err)
	require.Equal(t, said, f.Reading)
	require.JSONEq(t, `{"a":1}`, string(f.Payload))

	// White space and the order of members may change, but not the value of the member reading.
	open := strings.Index(string(file), `,"reading"`)
	behind := strings.Index(string(file), `,"checksum"`)
	moved := "{ " + string(file[open+1:behind]) + ", " + string(file[1:open]) + string(file[behind:])
	f, err = model.Decode([]byte(moved), "toy", 1)
	require.NoError(t, err)
	require.Equal(t, said, f.Reading)
	_, err = model.Decode([]byte(strings.Replace(string(file), "-999", "-998", 1)), "toy", 1)
	require.ErrorContains(t, err, "model is damaged: the checksum of what was read is")

	for value, want := range map[string]string{
		`null`:                        "it is null",
		`{}`:                          "it is empty",
		`[]`:                          "cannot unmarshal array",
		`{"nulls":"NA"}`:              "cannot unmarshal string",
		`{"nulls":[""]}`:              "nulls: one is empty",
		`{"nulls":["a","a"]}`:         `nulls: "a" occurs twice`,
		`{"zero_based":1}`:            "cannot unmarshal number",
		`{"nulls":["a"],"other":"b"}`: `unknown field "other"`,
	} {
		body := string(file[:open]) + `,"reading":` + value
		damaged := []byte(fmt.Sprintf(`%s,"checksum":"xxh3:%016x"}`, body, xxh3.HashString(body+"}")))
		_, err := model.Decode(damaged, "toy", 1)
		require.ErrorContains(t, err, "model is damaged: reading: ", value)
		require.ErrorContains(t, err, want, value)
		_, err = model.ReadingOf(damaged)
		require.ErrorContains(t, err, want, value)
	}

	for _, r := range []model.Reading{{Nulls: []string{""}}, {Nulls: []string{"a", "a"}}, {Nulls: []string{"\xff"}}} {
		_, err := model.WithReading(plain, r)
		require.ErrorContains(t, err, "model: reading: ")
	}
	_, err = model.WithReading([]byte("{}"), said)
	require.ErrorContains(t, err, "not as Encode writes it")
}
