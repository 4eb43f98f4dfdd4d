package textfile

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var dialects = []Dialect{
	{}, {Comment: '#'}, {TrimSpace: true}, {TrimSpace: true, Comment: '#', Delimiter: '\t'}, {Quote: NoByte, Comment: '#'}, {Quote: '\'', Delimiter: ';'},
}

// specialBytes draws text with many quotes, delimiters, comments and line ends.
var specialBytes = rapid.SliceOfN(rapid.SampledFrom([]byte("\"\"\"',;#\n\n\r \tab")), 0, 300)

func TestTransitionIsTheAutomatonFromEveryState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := rapid.SampledFrom(dialects).Draw(t, "dialect").normal()
		require.NoError(t, err)
		a := newAutomaton(d)
		text := specialBytes.Draw(t, "text")
		if rapid.Bool().Draw(t, "long") {
			// The text is longer than scanBlock, so that transitions of several blocks are
			// composed.
			filler := rapid.SampledFrom([]string{"a", ",", "\n", "\"x\"", "\"\"", "\"a\n"}).Draw(t, "filler")
			var long []byte
			for len(long) < 2*scanBlock {
				long = append(long, filler...)
			}
			text = append(long, text...)
		}
		got := a.transition(text)
		for s := range numStates {
			if s == stateQuoted && !a.quoting || s == stateQuote && !a.quoting {
				continue // states that cannot be reached
			}
			require.Equal(t, a.run(s, text), state(got[s]), "from state %d", s)
		}
	})
}

func TestTokenizerEndsRecordsWhereTheAutomatonDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := rapid.SampledFrom(dialects).Draw(t, "dialect").normal()
		require.NoError(t, err)
		a := newAutomaton(d)
		tok := newTokenizer(d, a)
		tok.fields = rapid.IntRange(0, 2).Draw(t, "fields")
		text := specialBytes.Draw(t, "text")
		for pos := 0; pos < len(text); {
			next, what := tok.next(text, pos, true)
			require.NotEqual(t, needMore, what)
			i, _ := a.recordStart(a.next[stateRecord][text[pos]], text[pos+1:])
			want := pos + 1 + i
			if i < 0 {
				want = len(text)
			}
			require.Equal(t, want, next, "%q at %d: %d", text, pos, what)
			pos = next
		}
	})
}

func TestTokenizerWithMoreBytesComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := rapid.SampledFrom(dialects).Draw(t, "dialect").normal()
		require.NoError(t, err)
		whole, parts := newTokenizer(d, newAutomaton(d)), newTokenizer(d, newAutomaton(d))
		text := specialBytes.Draw(t, "text")
		for pos := 0; pos < len(text); {
			next, what := whole.next(text, pos, true)
			for end := pos + 1; ; end++ {
				got, found := parts.next(text[:end], pos, end == len(text))
				if found == needMore {
					continue
				}
				require.Equal(t, what, found, "%q at %d with %d bytes", text, pos, end)
				require.Equal(t, next, got)
				break
			}
			require.Equal(t, whole.cells, parts.cells)
			pos = next
		}
	})
}

func TestPlanCoversEveryByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []part
		for range rapid.IntRange(1, 5).Draw(t, "files") {
			body := rapid.Int64Range(0, 5).Draw(t, "body")
			parts = append(parts, part{body: body, size: body + rapid.Int64Range(0, 40).Draw(t, "bytes")})
		}
		shards := rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(t, "shards")
		p, err := newPlan(&text{parts: parts}, shards)
		require.NoError(t, err)
		k, at := 0, parts[0].body
		for i := range shards {
			for _, c := range p.pieces(i) {
				require.Less(t, c.from, c.to)
				for at == parts[k].size {
					k++
					at = parts[k].body
				}
				require.Same(t, &p.parts[k], c.part)
				require.Equal(t, at, c.from)
				at = c.to
			}
		}
		var total, last int64
		for _, part := range parts {
			total += part.size - part.body
		}
		require.Equal(t, total, p.Bytes())
		for i := range shards {
			require.Equal(t, int64(i+1)*total/int64(shards), p.bound(i+1))
			require.GreaterOrEqual(t, p.bound(i+1), last)
			last = p.bound(i + 1)
		}
	})
	huge, err := newPlan(&text{parts: []part{{size: math.MaxInt64}}}, maxShards)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, huge.bound(maxShards))
	_, err = newPlan(&text{parts: []part{{size: 1}}}, 0)
	require.ErrorContains(t, err, "the number of shards must be between")
}

func TestCancelledScanIsDoneAgain(t *testing.T) {
	dir := write(t, map[string]string{"a.csv": "1,\"2\n\"\n3,4\n"})
	c := opened(t, resolve(t, dir), Dialect{}, textLayout(2), Config{Shards: 4})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Index(ctx), context.Canceled)
	_, err := rows(ctx, c, 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, [][]string{{"1", "2\n"}, {"3", "4"}}, allRows(t, c, 1))
}
