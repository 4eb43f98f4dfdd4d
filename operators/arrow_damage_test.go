package operators

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// fewColumns returns an Arrow file or stream of 200 rows, with an int64 column and a text
// column, in 5 batches.
func fewColumns(t testing.TB, stream bool, options ...ipc.Option) []byte {
	mem := memory.NewGoAllocator()
	schema := batchtest.Schema(t, "i int64", "t utf8 null")
	options = append(options, ipc.WithSchema(schema))
	var out bytes.Buffer
	var w interface {
		Write(arrow.Record) error
		Close() error
	}
	if w = ipc.NewWriter(&out, options...); !stream {
		f, err := ipc.NewFileWriter(&positioned{w: &out}, options...)
		require.NoError(t, err)
		w = f
	}
	for from := 0; from < 200; from += 40 {
		rows := ""
		for i := from; i < from+40; i++ {
			rows += fmt.Sprintf(`,{"i": %d, "t": "word %d"}`, i, i%7)
		}
		rec := batchtest.Record(t, mem, schema, "["+rows[1:]+"]")
		require.NoError(t, w.Write(rec))
		rec.Release()
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// damagedForms returns undamaged files of 200 rows that were written by this package and by
// pyarrow. The tests damage them.
func damagedForms(t testing.TB) map[string][]byte {
	forms := map[string][]byte{
		"file": fewColumns(t, false), "stream": fewColumns(t, true),
		"file by LZ4": fewColumns(t, false, ipc.WithLZ4()), "stream by LZ4": fewColumns(t, true, ipc.WithLZ4()),
	}
	for _, name := range []string{"compressed/lz4.arrows", "compressed/zstd.feather", "pandas/pandas.feather", "pandas/replaced.arrows", "pandas/deltas.arrow"} {
		data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		require.NoError(t, err)
		forms[name] = data
	}
	return forms
}

// readDamaged reads all rows of a file as a source does, and returns their number.
func readDamaged(data []byte) (rows int64, err error) {
	o := openFile{path: "x.arrow"}
	err = o.guarded(func() (err error) {
		o.RowFile, err = openArrow(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		columns := make([]int, o.Schema().Len())
		for i := range columns {
			columns[i] = i
		}
		cursor, err := o.Rows(0, columns, memory.NewGoAllocator())
		if err != nil {
			return err
		}
		defer cursor.Close()
		for {
			rec, err := cursor.Next(64)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			rows += int64(rec.Len())
			rec.Release()
		}
		if rows != o.NumRows() {
			return errors.New("it has other rows than it told")
		}
		return nil
	})
	return rows, err
}

// TestDamagedArrowFilesKeepTheirRows flips bits of files, zeroes words and ranges, and
// truncates files. Reading may then return other values, as values have no checksum, but never
// another number of rows.
func TestDamagedArrowFilesKeepTheirRows(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for name, whole := range damagedForms(t) {
		rows, err := readDamaged(whole)
		require.NoError(t, err, name)
		require.EqualValues(t, 200, rows, name)
		accepted := 0
		try := func(data []byte, what string, at int) {
			rows, err := readDamaged(data)
			if err == nil {
				accepted++
				require.EqualValues(t, 200, rows, "%s, %s at byte %d of %d", name, what, at, len(whole))
			}
		}
		for at := 4 * draw.IntN(8); at < len(whole); at += 4 * damagedWords {
			data := bytes.Clone(whole)
			clear(data[at:min(at+4, len(data))])
			try(data, "4 bytes zeroed", at)
			clear(data[at:min(at+64, len(data))])
			try(data, "64 bytes zeroed", at)
		}
		for range damagedBits {
			bit := draw.IntN(8 * len(whole))
			data := bytes.Clone(whole)
			data[bit/8] ^= 1 << (bit % 8)
			try(data, fmt.Sprintf("bit %d flipped", bit%8), bit/8)
		}
		require.Positive(t, accepted, "%s: some damaged files must be read without an error, as values have no checksum, or the test proves nothing", name)
		for size := 0; size < len(whole); size += 1 + draw.IntN(16*damagedWords) {
			_, err := readDamaged(whole[:size])
			require.ErrorContains(t, err, "x.arrow", "%s cut to %d of %d bytes", name, size, len(whole))
		}
	}
}

// arrowHeads returns the offsets of the record batches of a file.
func arrowHeads(t testing.TB, data []byte) []int64 {
	x, err := indexArrow(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return x.begin
}

// TestArrowHeadsThatLie requires an error if the header of a message does not fit the message's
// body.
func TestArrowHeadsThatLie(t *testing.T) {
	word := binary.LittleEndian
	for _, stream := range []bool{false, true} {
		whole := fewColumns(t, stream)
		begin := arrowHeads(t, whole)
		require.Len(t, begin, 5)
		second, third := begin[1], begin[2]
		head := func(data []byte, at int64) (f flatBuffer, root, header int64) {
			length := int64(word.Uint32(data[at+4:]))
			f = flatBuffer{b: data[at+8:][:length]}
			root = f.u32(0)
			return f, root, f.follow(f.field(root, 2))
		}
		for name, change := range map[string]func(data []byte) []byte{
			"a length of 0": func(data []byte) []byte {
				word.PutUint32(data[second+4:], 0)
				return data
			},
			"an end mark": func(data []byte) []byte {
				word.PutUint64(data[second:], 0)
				return data
			},
			"no rows": func(data []byte) []byte {
				f, _, header := head(data, second)
				word.PutUint64(f.at(f.field(header, 0), 8), 0)
				return data
			},
			"other rows": func(data []byte) []byte {
				f, _, header := head(data, second)
				word.PutUint64(f.at(f.field(header, 0), 8), 24)
				return data
			},
			"a column of other rows": func(data []byte) []byte {
				f, _, header := head(data, second)
				word.PutUint64(f.at(f.follow(f.field(header, 1))+4+16, 8), 24)
				return data
			},
			"of the kind of a dictionary": func(data []byte) []byte {
				f, root, _ := head(data, second)
				f.at(f.field(root, 1), 1)[0] = messageDictionary
				return data
			},
			"a body that takes in the next message": func(data []byte) []byte {
				f, root, _ := head(data, second)
				at := f.at(f.field(root, 3), 8)
				word.PutUint64(at, word.Uint64(at)+uint64(begin[3]-third))
				return data
			},
			"a head that takes in the next message": func(data []byte) []byte {
				word.PutUint32(data[second+4:], word.Uint32(data[second+4:])+uint32(begin[3]-third))
				return data
			},
			"a schema that takes in the first batch": func(data []byte) []byte {
				at := 4
				if !stream {
					at += 8
				}
				word.PutUint32(data[at:], word.Uint32(data[at:])+uint32(second-begin[0]))
				return data
			},
			"a batch that is not there": func(data []byte) []byte {
				return append(bytes.Clone(data[:second]), data[third:]...)
			},
			"a batch twice": func(data []byte) []byte {
				return append(bytes.Clone(data[:third]), data[second:]...)
			},
			"another stream behind": func(data []byte) []byte { return append(data, data...) },
		} {
			if stream && strings.HasPrefix(name, "a batch") {
				continue // skipped: a stream does not contain its number of batches
			}
			_, err := readDamaged(change(bytes.Clone(whole)))
			require.ErrorContains(t, err, "input x.arrow: ", "%s, stream: %t", name, stream)
			require.ErrorContains(t, err, "byte ", "%s, stream: %t", name, stream)
		}
	}
}

// TestArrowFootersThatLie requires errors if the footer differs from the messages before it.
func TestArrowFootersThatLie(t *testing.T) {
	word := binary.LittleEndian
	whole := fewColumns(t, false)
	begin := arrowHeads(t, whole)
	from := int64(len(whole)) - arrowTail - int64(word.Uint32(whole[int64(len(whole))-arrowTail:]))
	foot := flatBuffer{b: whole[from:]}
	blocks := from + foot.follow(foot.field(foot.u32(0), 3))
	require.EqualValues(t, 5, word.Uint32(whole[blocks:]))
	block := func(data []byte, i int) []byte { return data[blocks+4+24*int64(i):] }
	name := []byte("\x01\x00\x00\x00t\x00")
	for want, change := range map[string]func(data []byte){
		fmt.Sprintf("it lists 4 of 5 messages with a record batch, and not that at byte %d", begin[4]): func(data []byte) { word.PutUint32(data[blocks:], 4) },
		"its metadata is damaged": func(data []byte) { word.PutUint32(data[blocks:], 1<<20) },
		"and there is none":       func(data []byte) { word.PutUint32(data[blocks:], 6) },
		fmt.Sprintf("it lists a record batch at byte %d, of ", begin[1]+8): func(data []byte) {
			word.PutUint64(block(data, 1), uint64(begin[1]+8))
		},
		fmt.Sprintf("it lists a record batch at byte %d, of 8 and ", begin[1]): func(data []byte) { word.PutUint32(block(data, 1)[8:], 8) },
		"and 8 bytes, and there is one":                                        func(data []byte) { word.PutUint64(block(data, 1)[16:], 8) },
		"its schema is another one": func(data []byte) {
			data[bytes.Index(data, name)+4] = 'u' // changes the schema at the beginning of the file, but not its copy in the footer
		},
		"its schema is another one than that before the batches": func(data []byte) {
			data[bytes.LastIndex(data, name)+4] = 'u'
		},
	} {
		data := bytes.Clone(whole)
		change(data)
		_, err := readDamaged(data)
		require.ErrorContains(t, err, fmt.Sprintf("input x.arrow: footer at byte %d: ", from))
		require.ErrorContains(t, err, want)
	}
	// The footer lists a batch that the file does not have.
	data := append(bytes.Clone(whole[:begin[4]]), whole[from:]...)
	_, err := readDamaged(data)
	require.ErrorContains(t, err, fmt.Sprintf("it lists a record batch at byte %d, and there is none", begin[4]))
}
