package security

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sizes of tokens. Tokens of NewToken have 32 random bytes, encoded in 43 characters. Users may
// also use tokens of other tools.
const (
	tokenBytes   = 32
	minTokenText = 32
	maxTokenText = 512
)

// Token is the secret that every client and task manager sends to a job manager. Anybody who
// has it may run programs in the cluster. The zero Token means that there is no token; for
// Equal it is not even equal to itself. Printing a Token does not reveal it.
type Token struct{ text string }

// NewToken returns a new token of 32 random bytes.
func NewToken() (Token, error) {
	secret, err := NewSecret()
	if err != nil {
		return Token{}, err
	}
	return Token{text: base64.RawURLEncoding.EncodeToString(secret)}, nil
}

// NewSecret returns 32 random bytes, for the secret that the workers of an attempt share.
func NewSecret() ([]byte, error) {
	secret := make([]byte, tokenBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("making a secret: %w", err)
	}
	return secret, nil
}

// ParseToken returns the token with the given text: 32 to 512 characters that are allowed for
// bearer tokens in HTTP headers (RFC 6750: letters, digits and -._~+/=). White space around the
// token is ignored. Errors do not contain the text.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Token{}, errors.New("the token is empty")
	case len(text) < minTokenText:
		return Token{}, fmt.Errorf("the token has %d characters, and %d are the least: it could be guessed", len(text), minTokenText)
	case len(text) > maxTokenText:
		return Token{}, fmt.Errorf("the token has more than %d characters", maxTokenText)
	}
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/=", c) >= 0) {
			return Token{}, fmt.Errorf("character %d of the token is not a letter, a digit or one of -._~+/=", i+1)
		}
	}
	return Token{text: text}, nil
}

// Reveal returns the token's text. It must be used only for headers and token files.
func (t Token) Reveal() string { return t.text }

// IsZero reports whether t is the zero Token.
func (t Token) IsZero() bool { return t.text == "" }

// String returns a text that does not reveal the token.
func (t Token) String() string {
	if t.IsZero() {
		return "no token"
	}
	return "token (hidden)"
}

// GoString returns a text that does not reveal the token.
func (t Token) GoString() string { return "security.Token(" + t.String() + ")" }

// Equal reports whether two tokens are equal. Its time does not depend on where the tokens
// differ. The zero Token is not equal to any token.
func Equal(a, b Token) bool {
	x, y := sha256.Sum256([]byte(a.text)), sha256.Sum256([]byte(b.text))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1 && !a.IsZero() && !b.IsZero()
}

// DefaultTokenFile returns the path to which a job manager that listens on port writes its
// token for clients and task managers of the same user. It is in the user's runtime directory
// (XDG_RUNTIME_DIR) if there is one, and otherwise in the user's own folder in the temporary
// directory.
func DefaultTokenFile(port int) string { return tokenFiles(port)[0] }

// tokenFiles returns all paths where the token file may be. New tokens are written to the first
// path. There may be two paths, since a login of a user may have a runtime directory while a
// service of the same user has none.
func tokenFiles(port int) []string {
	var files []string
	name := fmt.Sprintf("token-%d", port)
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			files = append(files, filepath.Join(dir, "superstep", name))
		}
	}
	return append(files, filepath.Join(os.TempDir(), privateFolder(), name))
}

// FindToken reads the token of a job manager on this machine that listens on port and runs as
// the same user. If a process of another user listens on the port, it returns an error: the job
// manager may have ended, and the token would be sent to that process. If there is no token,
// the error has the paths that were tried, and wraps fs.ErrNotExist.
func FindToken(port int) (Token, error) {
	files := tokenFiles(port)
	for _, file := range files {
		t, err := ReadToken(file)
		if err == nil {
			err = checkListener(port)
		}
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Token{}, err
		}
		return t, nil
	}
	return Token{}, &advised{
		text: fmt.Sprintf("no token for port %d at %s: is a job manager running here as this user? If it runs elsewhere, copy its token file and give it with --token-file",
			port, strings.Join(files, " or ")),
		cause: fs.ErrNotExist,
	}
}

// ReadToken reads a token from a file. It returns an error if the file is a symbolic link or
// not a regular file, belongs to another user except root, or can be read or written by others.
// The group of a file that belongs to root may read it, since services get their tokens that
// way.
func ReadToken(path string) (Token, error) {
	f, err := openPrivate(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Token{}, fmt.Errorf("token file: %w", err)
		}
		return Token{}, fmt.Errorf("token file %s: %w", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenText+64))
	if err != nil {
		return Token{}, fmt.Errorf("token file: %w", err)
	}
	t, err := ParseToken(string(text))
	if err != nil {
		return Token{}, fmt.Errorf("token file %s: %w; remove the file to have the job manager make a new token", path, err)
	}
	return t, nil
}

// CreateToken returns the token in the file at path. If there is no file, it makes a token, the
// file and missing folders, which only the user can access. Several processes that call
// CreateToken concurrently get the same token. It returns an error for a file that ReadToken
// refuses, and for a folder in which others may replace files.
func CreateToken(path string) (Token, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Token{}, fmt.Errorf("folder of the token file: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return Token{}, fmt.Errorf("folder of the token file %s: %w", path, err)
	}
	t, err := ReadToken(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	if t, err = NewToken(); err != nil {
		return Token{}, err
	}
	// The file is created atomically: it is written under a temporary name and then linked to
	// its path. The link fails if another process has created the file meanwhile.
	aside, err := writeAside(dir, t.text+"\n")
	if err != nil {
		return Token{}, fmt.Errorf("token file %s: %w", path, err)
	}
	linked := os.Link(aside, path)
	if err := os.Remove(aside); err != nil && linked == nil {
		linked = err
	}
	switch {
	case linked == nil:
		return t, nil
	case errors.Is(linked, fs.ErrExist):
		return ReadToken(path)
	}
	return Token{}, fmt.Errorf("token file %s: %w", path, linked)
}

// writeAside writes content to a new file in dir that only the user may read, and returns its
// path. If it fails, it leaves no file.
func writeAside(dir, content string) (path string, err error) {
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// advised is an error with a text that says what to do, and a cause that programs can test for.
type advised struct {
	text  string
	cause error
}

func (a *advised) Error() string { return a.text }
func (a *advised) Unwrap() error { return a.cause }
