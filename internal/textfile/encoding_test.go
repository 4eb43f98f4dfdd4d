package textfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"
)

// FuzzDecoder requires that any text is unchanged after encoding and decoding, whatever the
// sizes of the reads are.
func FuzzDecoder(f *testing.F) {
	f.Add("plain", true)
	f.Add("Größe, 漢字 😀\ufeff", false)
	f.Fuzz(func(t *testing.T, text string, big bool) {
		text = strings.ToValidUTF8(text, "")
		var order binary.AppendByteOrder = binary.LittleEndian
		if big {
			order = binary.BigEndian
		}
		var coded []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
			coded = order.AppendUint16(coded, u)
		}
		for _, r := range []io.Reader{bytes.NewReader(coded), iotest.OneByteReader(bytes.NewReader(coded)), iotest.DataErrReader(bytes.NewReader(coded))} {
			got, err := io.ReadAll(newDecoder(r, UTF16))
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
	})
}

// TestSingleByteEncodings requires the characters that Python has for the bytes 0x80 to 0xff in
// latin-1 and cp1252.
func TestSingleByteEncodings(t *testing.T) {
	var all []byte
	for c := 0x80; c < 0x100; c++ {
		all = append(all, byte(c))
	}
	got, err := io.ReadAll(newDecoder(iotest.HalfReader(bytes.NewReader(all)), Latin1))
	require.NoError(t, err)
	for i, r := range []rune(string(got)) {
		require.Equal(t, rune(0x80+i), r)
	}
	var defined []byte
	for _, c := range all {
		if c != 0x81 && c != 0x8d && c != 0x8f && c != 0x90 && c != 0x9d {
			defined = append(defined, c)
		}
	}
	got, err = io.ReadAll(newDecoder(bytes.NewReader(defined), Windows1252))
	require.NoError(t, err)
	require.Equal(t, "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ", string([]rune(string(got))[:27]))
	require.Equal(t, "ÿ", string([]rune(string(got))[122:]))
	_, err = io.ReadAll(newDecoder(strings.NewReader("ab\x81"), Windows1252))
	require.EqualError(t, err, "the byte 0x81 at offset 2 is no character of windows-1252")
	for _, bad := range []string{"\xff\xfe\x00\xd8\x41\x00", "\x00\xdc\x41\x00", "a", "a\x00b", "\x00\xd8"} {
		_, err = io.ReadAll(newDecoder(strings.NewReader(bad), UTF16))
		require.Error(t, err, "%q", bad)
	}
}

// TestOrderOfUTF16 requires that the byte order of UTF-16 without a mark is inferred from its
// first characters, in any script, whatever the sizes of the reads are.
func TestOrderOfUTF16(t *testing.T) {
	for _, text := range []string{
		"", "a", "a,b\n1,2\n", "a;b\r\n", "x", "größe,名\n一,二\n", "一一一一,一\n", "名前\n", "имя,число\nа,1\n", "\n", "ਊ,ਊ\nਊ\n", "😀,b\n",
		strings.Repeat("長い", 3000) + ",b\n", strings.Repeat("long text, ", 3000) + "\n",
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			var coded []byte
			for _, u := range utf16.Encode([]rune(text)) {
				coded = order.AppendUint16(coded, u)
			}
			if order == binary.BigEndian && strings.HasPrefix(text, "長") {
				continue // there is no line end or comma among the first characters
			}
			for _, r := range []io.Reader{bytes.NewReader(coded), iotest.OneByteReader(bytes.NewReader(coded)), iotest.DataErrReader(bytes.NewReader(coded))} {
				got, err := io.ReadAll(newDecoder(r, UTF16))
				require.NoError(t, err, "%.20q", text)
				require.Equal(t, text, string(got), "%.20q, %v", text, order)
			}
		}
	}
	for text, want := range map[string]string{
		"a,b\n1,2\n":                     "it is not UTF-16, as it is read, since no byte is 0: leave Encoding out if it is UTF-8, or set it to what the text is in, such as latin1",
		"gr\xf6\xdfe,name,number\n1,2,3": "since no byte is 0",
		"имя,число,ещё\nодин,два,три\n":                         "since no byte is 0",
		"a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00\n\x00\x00\x00": "perhaps UTF-32",
		"\x00\x00\x00a\x00\x00\x00\n":                           "perhaps UTF-32",
	} {
		_, err := io.ReadAll(newDecoder(strings.NewReader(text), UTF16))
		require.ErrorContains(t, err, want, "%q", text)
	}
}

// TestCutsOfOtherText requires that the rows of a file and the positions of errors do not
// depend on the number of shards. It uses files in several encodings, with skipped lines.
func TestCutsOfOtherText(t *testing.T) {
	var text strings.Builder
	text.WriteString("made by \"nobody\n\nname,n\n")
	for i := range 300 {
		fmt.Fprintf(&text, "\"é%d\n\",%d\n", i, i)
		if i%50 == 7 {
			text.WriteString("# \"not a row\n")
		}
	}
	d := Dialect{Header: true, SkipLines: 2, Comment: '#'}
	latin, wide := []byte{}, []byte{}
	for _, r := range text.String() {
		latin = append(latin, byte(r))
		wide = binary.BigEndian.AppendUint16(wide, uint16(r))
	}
	encoded := map[Encoding]string{UTF8: text.String(), Latin1: string(latin), UTF16: "\xfe\xff" + string(wide)}
	for encoding, content := range encoded {
		d.Encoding = encoding
		for _, bad := range []string{"", "x,y\n"} {
			if bad != "" && encoding == UTF16 {
				bad = "\x00x\x00,\x00y\x00\n"
			}
			files := resolve(t, write(t, map[string]string{"a.csv": content + bad, "b.csv": content}))
			l, err := InferCSV(t.Context(), files, d, InferOptions{SampleRows: 100})
			require.NoError(t, err)
			require.Equal(t, "name utf8 null, n int64 null", columns(l))
			for _, shards := range []int{1, 2, 64} {
				c := opened(t, files, d, l, Config{Shards: shards})
				var rows []string
				err = nil
				for s := range shards {
					err = c.ReadShard(t.Context(), s, 7, func(rec arrow.Record) error {
						for i := range int(rec.NumRows()) {
							rows = append(rows, rec.Column(0).ValueStr(i)+"="+rec.Column(1).ValueStr(i))
						}
						return nil
					})
					if err != nil {
						break
					}
				}
				if bad != "" {
					require.ErrorContains(t, err, `a.csv:610: column "n": cannot read "y" as int64`)
					continue
				}
				require.NoError(t, err)
				require.Len(t, rows, 600)
				for i, row := range rows {
					require.Equal(t, fmt.Sprintf("é%d\n=%d", i%300, i%300), row)
				}
			}
		}
	}
	_, err := infer(t, "a\n1\n", Dialect{Header: true, SkipLines: 5}, InferOptions{})
	require.ErrorIs(t, err, ErrEmpty)
	_, err = infer(t, "a\n1\n", Dialect{SkipLines: -1}, InferOptions{})
	require.ErrorContains(t, err, "must not be negative")
	_, err = infer(t, "a\n1\n", Dialect{Encoding: "ebcdic"}, InferOptions{})
	require.ErrorContains(t, err, `the encoding "ebcdic" is not known`)
}
