package security

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := newToken(t)
		require.Len(t, token.Reveal(), 43)
		require.False(t, seen[token.Reveal()])
		seen[token.Reveal()] = true
		again, err := ParseToken(" " + token.Reveal() + "\n")
		require.NoError(t, err)
		require.True(t, Equal(token, again))
		require.False(t, Equal(token, Token{}))
	}
	require.False(t, Equal(Token{}, Token{}))
}

func TestTokensAreNotPrinted(t *testing.T) {
	token := newToken(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, token), token.Reveal())
		require.NotContains(t, fmt.Sprintf(verb, &token), token.Reveal())
		require.NotContains(t, fmt.Sprintf(verb, fmt.Sprintf("%x", token.Reveal())+fmt.Sprintf(verb, token)), token.Reveal())
	}
	require.Equal(t, "no token", Token{}.String())
}

func TestTokensThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "is empty",
		" \n":                             "is empty",
		"secret":                          "has 6 characters",
		strings.Repeat("a", 513):          "more than 512",
		strings.Repeat("a", 32) + " b":    "character 33",
		strings.Repeat("a", 32) + "é":     "character 33",
		strings.Repeat("a", 32) + "\n\na": "character 33",
	} {
		_, err := ParseToken(text)
		require.ErrorContains(t, err, want, "%q", text)
		if strings.TrimSpace(text) != "" {
			require.NotContains(t, err.Error(), text)
		}
	}
}

func TestCreateTokenMakesOneForAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "token")
	const many = 20
	tokens := make([]Token, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			var err error
			if tokens[i], err = CreateToken(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	read, err := ReadToken(path)
	require.NoError(t, err)
	for _, token := range tokens {
		require.True(t, Equal(read, token))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary files may be left")
}

func TestFindToken(t *testing.T) {
	runtime, temp := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", temp)
	require.Equal(t, filepath.Join(runtime, "superstep", "token-6123"), DefaultTokenFile(6123))

	_, err := FindToken(6123)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "no token for port 6123 at "+DefaultTokenFile(6123)+" or "+filepath.Join(temp, privateFolder(), "token-6123")+": is a job manager running here as this user?")

	// A service of the user has no runtime directory, but a login of the same user has one.
	t.Setenv("XDG_RUNTIME_DIR", "")
	inTemp := DefaultTokenFile(6123)
	require.Equal(t, filepath.Join(temp, privateFolder(), "token-6123"), inTemp)
	made, err := CreateToken(inTemp)
	require.NoError(t, err)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	found, err := FindToken(6123)
	require.NoError(t, err)
	require.True(t, Equal(made, found))

	_, err = FindToken(6124)
	require.ErrorIs(t, err, fs.ErrNotExist)
	nearer, err := CreateToken(DefaultTokenFile(6123))
	require.NoError(t, err)
	found, err = FindToken(6123)
	require.NoError(t, err)
	require.True(t, Equal(nearer, found))

	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(runtime, "gone"))
	require.Equal(t, inTemp, DefaultTokenFile(6123))
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	require.Equal(t, inTemp, DefaultTokenFile(6123))
}

func FuzzParseToken(f *testing.F) {
	f.Add("")
	f.Add("0123456789abcdef0123456789abcdef")
	f.Add(" x0123456789abcdef0123456789abcdef-._~+/=\r\n")
	f.Add(strings.Repeat("é", 40))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			require.True(t, token.IsZero())
			return
		}
		require.Regexp(t, `^[A-Za-z0-9\-._~+/=]{32,512}$`, token.Reveal())
		require.Equal(t, strings.TrimSpace(text), token.Reveal())
		require.True(t, Equal(token, bearer("bearer "+token.Reveal())))
	})
}
