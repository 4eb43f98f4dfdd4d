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

// Sizes of tokens. Ours have 32 random bytes, in 43 characters; users may also bring tokens
// from other tools.
const (
	tokenBytes   = 32
	minTokenText = 32
	maxTokenText = 512
)

// Token is the secret that every client and task manager shows a job manager: anybody who has
// it may run programs there. The zero Token is no token, and equals nothing, not even itself.
// Printing a Token does not reveal it.
type Token struct{ text string }

// NewToken makes a token of 32 random bytes.
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

// ParseToken reads a token's text, which is 32 to 512 characters that may stand in an
// HTTP header (RFC 6750: letters, digits and -._~+/=). White space around it is
// ignored. No error repeats the text.
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

// Reveal returns the token's text, for a header or a file and nothing else.
func (t Token) Reveal() string { return t.text }

// IsZero reports whether t is no token.
func (t Token) IsZero() bool { return t.text == "" }

// String does not reveal the token.
func (t Token) String() string {
	if t.IsZero() {
		return "no token"
	}
	return "token (hidden)"
}

// GoString does not reveal the token either.
func (t Token) GoString() string { return "security.Token(" + t.String() + ")" }

// Equal compares two tokens in a time that reveals nothing about them, not even their lengths.
// The zero Token equals nothing.
func Equal(a, b Token) bool {
	x, y := sha256.Sum256([]byte(a.text)), sha256.Sum256([]byte(b.text))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1 && !a.IsZero() && !b.IsZero()
}

// DefaultTokenFile returns the path where a job manager that listens on port leaves its token
// for clients and task managers of the same user: in the user's runtime directory
// (XDG_RUNTIME_DIR) if there is one, else in a folder of the user's own in the temporary
// directory.
func DefaultTokenFile(port int) string { return tokenFiles(port)[0] }

// tokenFiles returns all paths where a token may be; new ones go to the first. There are
// several because a service and a login of the same user may differ in having a runtime
// directory.
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
// the same user. It is an error if another user listens on the port, as the job manager may
// have ended: the token would be given away. If there is no token, the error says where it was
// looked for, and wraps fs.ErrNotExist.
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

// ReadToken reads a token from a file. It refuses a file that is a symbolic link or not a
// regular file, that belongs to somebody else, or that others may read or write. A file that
// belongs to root may be readable by a group, as services get their tokens that way.
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

// CreateToken returns the token in the file at path. If there is no file, it makes the file, a
// token and missing folders, accessible only to the user. Several processes that do so at once
// all get the same token. It refuses what ReadToken refuses, and a folder in which others may
// replace files.
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
	// The file appears as a whole: it is written under a temporary name and then linked, which
	// fails if another process was faster.
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

// writeAside writes a file under a new name that only the user may read, and returns
// its path. If it fails it leaves nothing.
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

// advised is an error with a text of our own for people and a cause for programs.
type advised struct {
	text  string
	cause error
}

func (a *advised) Error() string { return a.text }
func (a *advised) Unwrap() error { return a.cause }
