package task

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/disk"
)

// A description is a file: a head of 24 bytes, and the content. The head has a mark of 8 bytes, which says what
// is described, the version of the format, the length of the content, and the CRC-32C of these and the content,
// with integers little-endian.

const (
	rowsMark           = "rows-in:"
	madeMark           = "made-by:"
	descriptionVersion = 1
	descriptionHead    = 24
	maxDescription     = 256 << 20 // bytes of the content: offsets are in it
)

// writeDescription writes a file, which gets its name when it is whole. It is not synced: descriptions outlive
// a process, and not the system.
func writeDescription(on disk.FS, mark, path string, content []byte) (err error) {
	if len(content) > maxDescription {
		return fmt.Errorf("the description %s would have %d bytes, of at most %d", path, len(content), maxDescription)
	}
	head := make([]byte, 0, descriptionHead)
	head = append(head, mark...)
	head = binary.LittleEndian.AppendUint32(head, descriptionVersion)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(content)))
	head = binary.LittleEndian.AppendUint32(head, checksum.CRC32C(checksum.CRC32C(0, head), content))
	part := path + ".part"
	f, err := on.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(head)
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = on.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, disk.RemoveIfThere(on, part))
	}
	return nil
}

// readDescription returns the content of a description that is whole and has the given mark.
func readDescription(on disk.FS, mark, path string) (content []byte, err error) {
	f, err := on.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, descriptionHead+maxDescription+1))
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, &disk.DamagedError{File: path, Length: int64(len(data)), Err: fmt.Errorf(format, args...)}
	}
	if len(data) < descriptionHead || !bytes.HasPrefix(data, []byte(mark)) {
		return fail("it is not the description that it should be")
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != descriptionVersion {
		return fail("its format has version %d, and this program reads version %d", v, descriptionVersion)
	}
	content = data[descriptionHead:]
	if n := binary.LittleEndian.Uint64(data[12:]); n != uint64(len(content)) {
		return fail("it has %d bytes of %d", len(content), n)
	}
	want := binary.LittleEndian.Uint32(data[20:])
	if got := checksum.CRC32C(checksum.CRC32C(0, data[:20]), content); got != want {
		return fail("the checksum is %08x where %08x was written", got, want)
	}
	return content, nil
}
