package model_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// list is a member that encodes and decodes itself.
type list []int

func (l list) AppendJSON(dst []byte) ([]byte, error) {
	if l == nil {
		return nil, errors.New("there is no list")
	}
	text, err := json.Marshal([]int(l))
	return append(dst, text...), err
}

func (l *list) UnmarshalJSON(text []byte) error {
	var v []int
	err := json.Unmarshal(text, &v)
	*l = v
	return err
}

// holder has the member list, which AppendApart encodes separately. Tests set its name to a
// text that looks like this member.
type holder struct {
	Name string `json:"name"`
	List *list  `json:"list"`
	Last int    `json:"last"`
}

func (h holder) AppendJSON(dst []byte) ([]byte, error) {
	type plain holder
	small := plain(h)
	small.List = nil
	return model.AppendApart(dst, small, "list", *h.List)
}

// TestApart requires that AppendApart gives the bytes of encoding/json, and that UnmarshalApart
// decodes them.
func TestApart(t *testing.T) {
	l := list{1, 2, 3}
	h := holder{`"list":null,{[\`, &l, 7}
	want, err := model.Encode("test", 1, nil, nil, struct {
		Name string `json:"name"`
		List []int  `json:"list"`
		Last int    `json:"last"`
	}{h.Name, l, h.Last})
	require.NoError(t, err)
	got, err := model.Encode("test", 1, nil, nil, h)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	spaced := append([]byte(" "), got[:len(got)-1]...)
	spaced = append(spaced, " \n}"...)
	for _, file := range [][]byte{got, spaced} {
		f, err := model.Decode(file, "test", 1)
		require.NoError(t, err)
		var back holder
		var apart list
		require.NoError(t, model.UnmarshalApart(f.Payload, &back, "list", &apart))
		require.Nil(t, back.List)
		require.Equal(t, h.Name, back.Name)
		require.Equal(t, h.Last, back.Last)
		require.Equal(t, l, apart)
	}
}

func TestApartTellsWhatIsWrong(t *testing.T) {
	_, err := model.Encode("test", 1, nil, nil, holder{List: new(list)})
	require.ErrorContains(t, err, "payload: there is no list")
	_, err = model.AppendApart(nil, holder{List: &list{}}, "list", list{})
	require.ErrorContains(t, err, `there is no member "list" that is null`)
	_, err = model.AppendApart(nil, make(chan int), "list", list{})
	require.Error(t, err)
	for text, want := range map[string]string{
		``: "no JSON object", `[1]`: "no JSON object", `{"list":[1]`: "no JSON object", `{ "list":[1]}`: "without white space",
		`{"list":null}`: "list is null", `{"list":{}}`: "cannot unmarshal", `{"other":1,"list":[1]}`: "other", `{"list":[1],"last":"x"}`: "last",
	} {
		var h holder
		var l list
		require.ErrorContains(t, model.UnmarshalApart(json.RawMessage(text), &h, "list", &l), want, text)
	}
	var h holder
	var l list
	require.NoError(t, model.UnmarshalApart(json.RawMessage(`{"name":"a,b]}","last":3}`), &h, "list", &l))
	require.Equal(t, holder{"a,b]}", nil, 3}, h)
	require.Nil(t, l)
	require.NoError(t, model.UnmarshalApart(json.RawMessage(`{}`), &h, "list", &l))
}
