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

// HashLimit is the largest size in bytes of a file whose content is hashed when it is resolved.
// Changes of larger files are detected only by size and modification time, because it would
// take too long to read such files twice.
const HashLimit = 1 << 20

var (
	// ErrChanged is the error for a file that has changed since it was resolved.
	ErrChanged = errors.New("changed between building and reading")
	// ErrEmpty is the error for input that has no record and no header.
	ErrEmpty = errors.New("is empty")
)

// File has the facts about an input file that are determined when a job is built. They suffice
// to detect later that the file has changed.
type File struct {
	// Path is the path of the file: the directory in the pattern, and the name.
	Path string
	// Size is the size in bytes of the stored file, which may be compressed.
	Size int64
	// ModTime is the modification time in nanoseconds since 1970 UTC.
	ModTime int64
	// Hash is the XXH3-64 of the content in hexadecimal, or empty for a file
	// above HashLimit.
	Hash string
}

// Resolve returns the files that match a pattern, sorted by the bytes of their paths. The
// pattern is a file, a directory or a glob as in path/filepath. A directory stands for its
// files, without the files of its subdirectories. Names that begin with '.' or '_' are hidden.
// In a directory they are always ignored. For a glob they are ignored unless its last element
// begins with '.' or '_'. If nothing matches, the error lists similar names.
func Resolve(pattern string) ([]File, error) { return ResolveIn(nil, pattern) }

// ResolveIn is Resolve for files in fsys, such as an embedded file system. Changes of such
// files are detected by content: files of any size are hashed, and modification times are
// ignored. If fsys is nil, ResolveIn is the same as Resolve.
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

// listGlob returns the visible files that match a glob.
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

// fact returns the facts about one file.
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

// VerifyIn checks files that ResolveIn returned, and returns an error for the first file that
// has changed. If the hash of the content is known, a file with the same content counts as
// unchanged, so that a copy of a small file may have another modification time. Otherwise size
// and modification time must be the same.
func VerifyIn(fsys fs.FS, files []File) error {
	for _, f := range files {
		if _, err := (tree{fsys}).verify(f); err != nil {
			return err
		}
	}
	return nil
}

// verify is VerifyIn for one file. It returns the modification time of the file, which it reads
// before the content. So a file that has the same time later is the file that was verified.
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

// changed returns the error for a file that has changed, with its old and new size and time.
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
