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

// holder has the member list, which an Apart encodes separately. Tests set the name of a holder
// to a text that looks like this member.
type holder struct {
	Name string `json:"name"`
	List *list  `json:"list"`
	Last int    `json:"last"`
}

// apart returns a payload of h in which writer encodes the list and reader decodes it.
func (h *holder) apart(writer model.Appender, reader json.Unmarshaler) model.Apart {
	return model.Apart{Value: h, Member: "list", Writer: writer, Reader: reader}
}

// TestApart requires that an Apart is encoded to the same bytes as by encoding/json, and that
// these bytes are decoded to the same values.
func TestApart(t *testing.T) {
	l := list{1, 2, 3}
	h := &holder{`"list":null,{[\`, nil, 7}
	want, err := model.Encode("test", 1, nil, nil, struct {
		Name string `json:"name"`
		List []int  `json:"list"`
		Last int    `json:"last"`
	}{h.Name, l, h.Last})
	require.NoError(t, err)
	got, err := model.Encode("test", 1, nil, nil, h.apart(l, nil))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	spaced := append([]byte(" "), got[:len(got)-1]...)
	spaced = append(spaced, " \n}"...)
	for _, file := range [][]byte{got, spaced} {
		f, err := model.Decode(file, "test", 1)
		require.NoError(t, err)
		var back holder
		var apart list
		require.NoError(t, model.Unmarshal(f.Payload, back.apart(nil, &apart)))
		require.Nil(t, back.List)
		require.Equal(t, h.Name, back.Name)
		require.Equal(t, h.Last, back.Last)
		require.Equal(t, l, apart)
	}
}

func TestApartTellsWhatIsWrong(t *testing.T) {
	_, err := model.Encode("test", 1, nil, nil, new(holder).apart(list(nil), nil))
	require.ErrorContains(t, err, "payload: there is no list")
	_, err = (&holder{List: &list{}}).apart(list{}, nil).AppendJSON(nil)
	require.ErrorContains(t, err, `there is no member "list" that is null`)
	_, err = model.Apart{Value: make(chan int), Member: "list", Writer: list{}}.AppendJSON(nil)
	require.Error(t, err)
	for text, want := range map[string]string{
		``: "no JSON object", `[1]`: "no JSON object", `{"list":[1]`: "no JSON object", `{ "list":[1]}`: "without white space",
		`{"list":null}`: "list is null", `{"list":{}}`: "cannot unmarshal", `{"other":1,"list":[1]}`: "other", `{"list":[1],"last":"x"}`: "last",
	} {
		var h holder
		var l list
		require.ErrorContains(t, h.apart(nil, &l).UnmarshalJSON([]byte(text)), want, text)
	}
	var h holder
	var l list
	require.NoError(t, h.apart(nil, &l).UnmarshalJSON([]byte(`{"name":"a,b]}","last":3}`)))
	require.Equal(t, holder{"a,b]}", nil, 3}, h)
	require.Nil(t, l)
	require.NoError(t, h.apart(nil, &l).UnmarshalJSON([]byte(`{}`)))
}
