package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read reads the file at path. It returns an error if the file has more than most bytes. If the
// file system reports the size of the file, Read allocates memory only once, and returns the
// error before it reads a file that is too large. Errors are of type *fs.PathError.
func Read(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readAll(file, most)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: cause(err)}
	}
	return data, nil
}

func readAll(file *os.File, most int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	switch {
	case info.IsDir():
		return nil, errors.New("it is a directory: want a file")
	case !info.Mode().IsRegular() || size == 0: // virtual files, as in /proc, report size 0 too
		data, err := io.ReadAll(io.LimitReader(file, most+1))
		if err == nil && int64(len(data)) > most {
			err = fmt.Errorf("it has more than %d bytes, which are the limit", most)
		}
		return data, err
	case size > most:
		return nil, fmt.Errorf("it has %d bytes: the limit is %d", size, most)
	}
	data := make([]byte, size)
	n, err := io.ReadFull(file, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it ended after %d of %d bytes: it changed while it was read", n, size)
	}
	return data, err
}
