// Package programs identifies programs by the SHA-256 of their bytes, above all this process's
// own. A version is only what the linker was told, and two builds of one version may compute
// different numbers; the hash is that of the bytes that run. Caches keep executables by their hashes.
package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Program is an executable file.
type Program struct {
	// Hash is the SHA-256 of its bytes, in lower-case hex.
	Hash     string
	Size     int64
	Platform wire.Platform
	// Path is the path to open and start it. Name is its path when it was started, for people.
	// For the running program, Path leads to the bytes that run even if the file of that name
	// has been replaced.
	Path, Name string

	modified time.Time
}

// Self returns the program of this process. Its file is read the first time.
var Self = sync.OnceValues(self)

func self() (Program, error) {
	name, err := os.Executable()
	path := name
	if running := runningFile(); running != "" {
		path = running
		if err != nil {
			name, err = os.Args[0], nil
		}
	}
	if err != nil {
		return Program{}, fmt.Errorf("find this program's own executable: %w", err)
	}
	p, err := Of(path, wire.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if err != nil {
		return Program{}, fmt.Errorf("read this program's own executable, %s: %w", name, err)
	}
	p.Name = name
	return p, nil
}

// Of returns the program in a file for the given platform.
func Of(path string, on wire.Platform) (p Program, err error) {
	p = Program{Path: path, Name: path, Platform: on}
	p.Hash, p.Size, p.modified, err = hashFile(path)
	return p, err
}

// hashFile returns the hash, size and modification time of a file.
func hashFile(path string) (hash string, size int64, modified time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, modified, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, modified, err
	}
	sum := sha256.New()
	if size, err = io.Copy(sum, f); err != nil {
		return "", 0, modified, err
	}
	return hex.EncodeToString(sum.Sum(nil)), size, info.ModTime(), nil
}

// errReplaced is the error of a program whose bytes are gone.
var errReplaced = errors.New("the file was replaced or changed since this process started: restart it")

// Check returns an error if Path does not lead to the program any more. It reads the file only
// if its size or time has changed.
func (p Program) Check() error {
	info, err := os.Stat(p.Path)
	if err == nil && info.Size() == p.Size && info.ModTime().Equal(p.modified) {
		return nil
	}
	hash := ""
	if err == nil {
		hash, _, _, err = hashFile(p.Path)
	}
	if err == nil && hash != p.Hash {
		err = errReplaced
	}
	if err != nil {
		return fmt.Errorf("executable %s: %w", p.Name, err)
	}
	return nil
}

// Short returns the start of a hash, which is enough for people.
func Short(hash string) string { return hash[:min(len(hash), 12)] }

// CheckHash returns an error if a text is not the hash of a program. A hash is a harmless file
// name.
func CheckHash(hash string) error {
	if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not a SHA-256 of 64 lower-case hexadecimal digits", hash)
	}
	return nil
}
