// Package programs identifies executables by the SHA-256 of their bytes, mainly the executable of
// this process. A version number does not identify them: it is only a string that was passed to the
// linker, and two builds with the same version may compute different results. The package also has
// a cache of executables by hash.
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
	// Hash is the SHA-256 of the file, in lower-case hex.
	Hash     string
	Size     int64 // in bytes
	Platform wire.Platform
	// Path is the path to open and start the program. Name is the path of its file, for
	// messages. For the program of this process, Path leads to the executable that runs even if
	// the file called Name has been replaced.
	Path, Name string

	modified time.Time
}

// Self returns the program of this process. The first call reads and hashes its file.
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

// Of returns the program in the file at path. on is the platform that it was built for.
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

// errReplaced is the error of a program whose file has other bytes now.
var errReplaced = errors.New("the file was replaced or changed since this process started: restart it")

// Check returns an error if the file at Path does not have the program's bytes any more. It reads
// the file only if its size or modification time has changed.
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

// Short returns the first 12 digits of a hash, for messages.
func Short(hash string) string { return hash[:min(len(hash), 12)] }

// CheckHash returns an error if hash is not the Hash of a program: 64 lower-case hexadecimal digits.
// A hash that passes is safe as a file name.
func CheckHash(hash string) error {
	if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("%.80q is not a SHA-256 of 64 lower-case hexadecimal digits", hash)
	}
	return nil
}
