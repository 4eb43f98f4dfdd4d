package textfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is a character encoding. Text that is not UTF-8 is converted to UTF-8 in a spool
// file, just as compressed files are unpacked.
type Encoding string

const (
	// UTF8 is the zero value. The text may begin with a byte order mark.
	UTF8 Encoding = ""
	// UTF16 has two or four bytes per character. A byte order mark determines their order;
	// without a mark, the order is inferred from the first characters.
	UTF16 Encoding = "utf-16"
	// Latin1 is ISO 8859-1: it has one byte per character, for the first 256 characters of
	// Unicode.
	Latin1 Encoding = "latin1"
	// Windows1252 is Latin1 with quotes, dashes, the euro and other characters in place of 27
	// control characters.
	Windows1252 Encoding = "windows-1252"
)

// normal returns the zero value for the name of UTF-8, and an error for unknown encodings.
func (e Encoding) normal() (Encoding, error) {
	switch e {
	case "utf-8":
		return UTF8, nil
	case UTF8, UTF16, Latin1, Windows1252:
		return e, nil
	}
	return e, fmt.Errorf("the encoding %q is not known: want utf-8, utf-16, latin1 or windows-1252", string(e))
}

// windows1252 has the characters for the bytes 0x80 to 0x9f; 0 means that the byte has no
// character.
var windows1252 = [32]rune{
	'€', 0, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0, 'Ž', 0,
	0, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0, 'ž', 'Ÿ',
}

// decoder converts text in an encoding to UTF-8.
type decoder struct {
	src      io.Reader
	encoding Encoding
	order    binary.ByteOrder // byte order of UTF-16; nil while it is not determined
	in       []byte           // bytes that were read but not decoded yet
	at       int64            // offset of in[0]
	out      []byte           // bytes that were decoded but not returned yet
	buffers  [2][]byte
	end      error // error of src; io.EOF at its end
}

func newDecoder(src io.Reader, e Encoding) *decoder {
	return &decoder{src: src, encoding: e, buffers: [2][]byte{make([]byte, 0, 32<<10), make([]byte, 0, 96<<10)}}
}

// Read implements io.Reader. It returns UTF-8.
func (d *decoder) Read(b []byte) (int, error) {
	for len(d.out) == 0 {
		if d.end != nil && len(d.in) == 0 {
			return 0, d.end
		}
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, d.out)
	d.out = d.out[n:]
	return n, nil
}

// fill reads bytes from src and decodes the complete characters.
func (d *decoder) fill() error {
	kept := copy(d.buffers[0][:cap(d.buffers[0])], d.in)
	n, err := d.src.Read(d.buffers[0][kept:cap(d.buffers[0])])
	d.in = d.buffers[0][:kept+n]
	if err != nil {
		d.end = err
		if err != io.EOF {
			return err
		}
	}
	d.out = d.buffers[1][:0]
	if d.encoding == UTF16 {
		return d.units()
	}
	for i, c := range d.in {
		r := rune(c)
		if d.encoding == Windows1252 && c >= 0x80 && c < 0xa0 {
			if r = windows1252[c-0x80]; r == 0 {
				return fmt.Errorf("the byte 0x%02x at offset %d is no character of windows-1252", c, d.at+int64(i))
			}
		}
		d.out = utf8.AppendRune(d.out, r)
	}
	d.at += int64(len(d.in))
	d.in = d.in[:0]
	return nil
}

// units decodes UTF-16. An incomplete character at the end remains in d.in.
func (d *decoder) units() error {
	if d.order == nil {
		if err := d.decide(); err != nil || d.order == nil {
			return err
		}
	}
	for len(d.in) > 0 {
		size, r := 2, utf8.RuneError
		if len(d.in) >= 2 {
			r = rune(d.order.Uint16(d.in))
			if utf16.IsSurrogate(r) {
				size = 4
			}
		}
		if len(d.in) < size {
			if d.end == nil {
				return nil
			}
			return fmt.Errorf("the character at offset %d, of UTF-16, is cut off", d.at)
		}
		if size == 4 {
			if r = utf16.DecodeRune(r, rune(d.order.Uint16(d.in[2:]))); r == utf8.RuneError {
				return fmt.Errorf("the bytes % x at offset %d are no character of UTF-16", d.in[:4], d.at)
			}
		}
		d.out = utf8.AppendRune(d.out, r)
		d.in, d.at = d.in[size:], d.at+int64(size)
	}
	return nil
}

// enoughUnits is the number of bytes of UTF-16 without a mark from which the byte order is
// inferred.
const enoughUnits = 4096

// decide determines the byte order of UTF-16, or returns without an order if it needs more
// bytes.
func (d *decoder) decide() (err error) {
	switch {
	case isMark16(d.in, binary.LittleEndian):
		d.order = binary.LittleEndian
		d.in, d.at = d.in[2:], d.at+2
	case isMark16(d.in, binary.BigEndian):
		d.order = binary.BigEndian
		d.in, d.at = d.in[2:], d.at+2
	case len(d.in) < enoughUnits && d.end == nil:
	default:
		d.order, err = orderOf(d.in[:min(len(d.in), enoughUnits)])
	}
	return err
}

// orderOf returns the byte order of UTF-16 without a mark. It is the order in which the text
// has line ends. If the text has line ends in neither order, it is the order in which it has
// more ASCII characters; every delimited text has some ASCII characters. In the wrong order a
// line end is not a character, and most ASCII characters become rare characters. Bytes that are
// clearly not UTF-16 are an error.
func orderOf(b []byte) (binary.ByteOrder, error) {
	var lines, ascii [2]int // little-endian, and big-endian
	orders := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}
	zeros := 0
	for i := 0; i+1 < len(b); i += 2 {
		for k, order := range orders {
			switch u := order.Uint16(b[i:]); {
			case u == '\n':
				lines[k]++
			case u == '\t' || u == '\r' || u >= ' ' && u <= '~':
				ascii[k]++
			}
		}
		if b[i] == 0 && b[i+1] == 0 {
			zeros++
		}
	}
	switch {
	case len(b) >= 2 && isSingleByteText(b):
		return nil, errors.New("it is not UTF-16, as it is read, since no byte is 0: leave Encoding out if it is UTF-8, or set it to what the text is in, such as latin1")
	// In UTF-32 every second unit of most texts is 0.
	case zeros > 0 && 3*zeros >= len(b)/2:
		return nil, errors.New("a third or more of its units of two bytes are 0, so that it is not UTF-16, as it is read, but perhaps UTF-32: convert it to UTF-8")
	case lines[1] > lines[0] || lines[1] == lines[0] && ascii[1] > ascii[0]:
		return binary.BigEndian, nil
	}
	return binary.LittleEndian, nil
}

// isSingleByteText reports whether text seems to be UTF-8, or to have one byte per character, rather
// than UTF-16. Such text has no byte of 0, and most of its bytes are ASCII. In UTF-16, every
// second byte of ASCII text is 0, and text in other scripts has fewer ASCII bytes.
func isSingleByteText(b []byte) bool {
	ascii := 0
	for _, c := range b {
		if c == 0 {
			return false
		}
		if c == '\n' || c == '\t' || c == '\r' || c >= ' ' && c <= '~' {
			ascii++
		}
	}
	whole := b
	for i := 0; i < utf8.UTFMax && len(whole) > 0 && !utf8.Valid(whole[len(whole)-1:]); i++ {
		whole = whole[:len(whole)-1] // the last character may be incomplete
	}
	return 5*ascii >= 4*len(b) || utf8.Valid(whole)
}

func isMark16(b []byte, order binary.ByteOrder) bool { return len(b) >= 2 && order.Uint16(b) == 0xfeff }

// checkStart returns an error if text that is read as UTF-8 begins like UTF-16.
func checkStart(b []byte) error {
	if isMark16(b, binary.LittleEndian) || isMark16(b, binary.BigEndian) {
		return errors.New("it begins with the byte order mark of UTF-16, and is read as UTF-8: set Encoding to utf-16")
	}
	return nil
}

// notUTF8 returns an error for the first byte of text that is not UTF-8, or nil if text is
// UTF-8. offset is the offset of text in its file.
func notUTF8(text []byte, offset int64) error {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return fmt.Errorf("the byte 0x%02x at offset %d is not UTF-8: if the text is in another encoding, such as latin1, set Encoding", text[i], offset+int64(i))
		}
		i += n
	}
	return nil
}
