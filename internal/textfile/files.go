package textfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/zeebo/xxh3"
)

// HashLimit is the size in bytes up to which a file's content is hashed when
// it is resolved. Larger files are recognised by size and modification time
// alone, because reading them twice would cost more than the check is worth.
const HashLimit = 1 << 20

var (
	// ErrChanged marks the error of a file that is no longer the one that was
	// resolved.
	ErrChanged = errors.New("changed between building and reading")
	// ErrEmpty marks the error of input without a single record or header.
	ErrEmpty = errors.New("is empty")
)

// File is what is known of an input file when a job is built: enough to notice later that the
// file has changed.
type File struct {
	// Path is the path as found: the pattern's directory and the name.
	Path string
	// Size is the length in bytes as stored, so of the archive if compressed.
	Size int64
	// ModTime is the modification time in nanoseconds since 1970 UTC.
	ModTime int64
	// Hash is the XXH3-64 of the content in hexadecimal, or empty for a file
	// above HashLimit.
	Hash string
}

// Resolve lists the files a pattern names, sorted by the bytes of their paths.
// The pattern is a file, a directory (its files, not those of its
// subdirectories) or a glob as in path/filepath. Names that begin with '.' or
// '_' are hidden, in a directory always and in a glob unless its last element
// begins that way itself. A pattern that names nothing is an error, which lists
// similar names.
func Resolve(pattern string) ([]File, error) { return ResolveIn(nil, pattern) }

// ResolveIn is Resolve within a file system such as an embedded one. Its files are identified
// by their content: each is hashed, and modification times do not count. With a nil file system
// it is Resolve.
func ResolveIn(fsys fs.FS, pattern string) ([]File, error) {
	d := tree{fsys}
	if pattern == "" {
		return nil, errors.New("the input path is empty")
	}
	pattern = d.clean(pattern)
	info, err := d.stat(pattern)
	var paths []string
	switch {
	case err == nil && info.IsDir():
		if paths, err = d.listDir(pattern); err != nil {
			return nil, err
		}
	case err == nil:
		paths = []string{pattern}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot read input: %w", err)
	case strings.ContainsAny(pattern, "*?["):
		if paths, err = d.listGlob(pattern); err != nil {
			return nil, err
		}
	default:
		return nil, d.missing(pattern, err)
	}
	slices.Sort(paths)
	files := make([]File, 0, len(paths))
	for _, p := range paths {
		f, err := d.fact(p)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// listDir returns the visible files of a directory.
func (d tree) listDir(dir string) ([]string, error) {
	entries, err := d.readDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list input directory: %w", err)
	}
	var paths []string
	hidden, subdirs := 0, 0
	for _, e := range entries {
		p := d.join(dir, e.Name())
		if isHidden(e.Name()) {
			hidden++
			continue
		}
		info, err := d.stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read input: %w", err)
		}
		if info.IsDir() {
			subdirs++
			continue
		}
		paths = append(paths, p)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("directory %s has no input files (%d hidden names and %d subdirectories are not read)",
			dir, hidden, subdirs)
	}
	return paths, nil
}

// listGlob returns the visible files a glob matches.
func (d tree) listGlob(pattern string) ([]string, error) {
	matches, err := d.glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("input pattern %s: %w", pattern, err)
	}
	showHidden := isHidden(filepath.Base(pattern))
	var paths []string
	skipped := 0
	for _, p := range matches {
		info, err := d.stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read input: %w", err)
		}
		if info.IsDir() || (isHidden(filepath.Base(p)) && !showHidden) {
			skipped++
			continue
		}
		paths = append(paths, p)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("input pattern %s matches no file (%d directories and hidden names are not read)",
			pattern, skipped)
	}
	return paths, nil
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// fact looks at one file.
func (d tree) fact(path string) (File, error) {
	info, err := d.stat(path)
	if err != nil {
		return File{}, fmt.Errorf("cannot read input: %w", err)
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("input %s is not a regular file (%s): save what it delivers to a file first, since input is read more than once",
			path, info.Mode().Type())
	}
	f := File{Path: path, Size: info.Size(), ModTime: d.modTime(info)}
	if f.Size <= HashLimit || d.fsys != nil {
		if f.Hash, err = d.hashFile(path); err != nil {
			return File{}, err
		}
	}
	return f, nil
}

func (d tree) hashFile(path string) (string, error) {
	f, err := d.open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read input: %w", err)
	}
	defer f.Close()
	h := xxh3.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read input %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// VerifyIn checks the files of ResolveIn again, and reports the first one that has changed.
// Where a content hash is known it decides, so that a copy of a small file with another time
// passes; otherwise size and modification time must both be as they were.
func VerifyIn(fsys fs.FS, files []File) error {
	for _, f := range files {
		if _, err := (tree{fsys}).verify(f); err != nil {
			return err
		}
	}
	return nil
}

// verify returns the modification time of the file, read before the content: a file that has
// the same time later is the one that was verified.
func (d tree) verify(f File) (mtime int64, err error) {
	info, err := d.stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("input %s %w: it had %d bytes and does not exist any more", f.Path, ErrChanged, f.Size)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read input: %w", err)
	}
	size, mtime := info.Size(), d.modTime(info)
	if size != f.Size || f.Hash == "" && mtime != f.ModTime {
		return 0, changed(f.Path, f.Size, f.ModTime, size, mtime)
	}
	if f.Hash == "" {
		return mtime, nil
	}
	hash, err := d.hashFile(f.Path)
	if err != nil {
		return 0, err
	}
	if hash != f.Hash {
		return 0, changed(f.Path, f.Size, f.ModTime, size, mtime)
	}
	return mtime, nil
}

// changed returns the error that names a file and both of its states.
func changed(path string, oldSize, oldTime, newSize, newTime int64) error {
	return fmt.Errorf("input %s %w: it had %d bytes of %s, now it has %d bytes of %s; run the job again",
		path, ErrChanged, oldSize, stamp(oldTime), newSize, stamp(newTime))
}

func stamp(nanos int64) string {
	return time.Unix(0, nanos).UTC().Format("2006-01-02T15:04:05.999999999Z")
}

// missing returns the error for a path that does not exist, with similar names.
func (d tree) missing(path string, cause error) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	entries, err := d.readDir(dir)
	if err != nil {
		return fmt.Errorf("input %s does not exist, nor can its directory %s be listed: %w", path, dir, cause)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if near := spelling.Near(name, names); len(near) > 0 {
		return fmt.Errorf("input %s does not exist; in %s there is %s: %w", path, dir, strings.Join(near, ", "), cause)
	}
	return fmt.Errorf("input %s does not exist, nor does a similar name in %s: %w", path, dir, cause)
}
