// Package boltfile reads the file of a bbolt database without trusting it. Package bbolt itself
// maps the file and trusts its pages: on a truncated or damaged file it panics, faults or recurses
// for ever. This package checks every page before it uses anything in the page. It passes on all
// values that can still be read, and returns a list of errors.
//
//	file:   page 0 (meta), page 1 (meta), pages of branches, leaves and the free list
//	page:   id (8 bytes) | kind (2) | elements (2) | further pages (4) | elements | data
package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

const (
	headerBytes  = 16
	elementBytes = 16
	metaBytes    = 64

	branchPage, leafPage, metaPage, freelistPage = 0x01, 0x02, 0x04, 0x10

	magic       = 0xED0CDAED
	version     = 2
	noFreelist  = ^uint64(0)
	bucketFlag  = 1
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
	maxDamage   = 100 // maximal number of errors that Read returns
)

var order = binary.NativeEndian

// ErrBehind is among the errors if the last transaction of the database may be missing. Then the
// values passed on are a complete state, but perhaps the state before the last transaction.
var ErrBehind = errors.New("the last change may be lost")

// ErrNoBeginning is among the errors if neither meta page can be read. Then no value is passed
// on, because pages in use cannot be distinguished from old pages.
var ErrNoBeginning = errors.New("neither of the two pages that say what is current can be read")

// Read reads a database with one level of buckets from f, which has size bytes. It calls visit
// for every value, in the order of buckets and keys; visit may keep the slices. It returns the
// errors in the file; if the file is undamaged, the list is empty.
func Read(f io.ReaderAt, size int64, visit func(bucket, key, value []byte)) []error {
	r := &reader{f: f, size: size, seen: map[uint64]bool{}, visit: visit}
	m, ok := r.meta()
	if !ok {
		return r.damage
	}
	r.pageSize, r.high = int64(m.pageSize), m.high
	if r.high < 2 || r.high > uint64(size/r.pageSize) {
		r.wrong("the file has %d bytes, and %d pages of %d are in use: it was cut short", size, r.high, r.pageSize)
	}
	r.walk(m.root, nil, nil, nil)
	r.freelist(m.freelist)
	return r.damage
}

type reader struct {
	f        io.ReaderAt
	size     int64
	pageSize int64
	high     uint64 // pages with this number and above are not in use
	seen     map[uint64]bool
	damage   []error
	visit    func(bucket, key, value []byte)
}

func (r *reader) wrong(format string, args ...any) {
	if len(r.damage) < maxDamage {
		r.damage = append(r.damage, fmt.Errorf(format, args...))
	}
}

// meta is the content of a meta page: the page numbers of the tree's root and of the free list,
// the number of pages up to the last page in use, and the number of the transaction that wrote
// the meta page.
type meta struct {
	pageSize                     uint32
	root, freelist, high, commit uint64
}

// meta returns the newer of the undamaged meta pages. Transactions alternate between the two
// pages.
func (r *reader) meta() (best meta, ok bool) {
	first, wrong := r.metaAt(0)
	if wrong != nil {
		for at := int64(minPageSize); at <= maxPageSize; at *= 2 {
			if second, err := r.metaAt(at); err == nil && int64(second.pageSize) == at {
				return r.alone(second, 0, 0, wrong), true
			}
		}
		r.wrong("page 0: %w: %w", wrong, ErrNoBeginning)
		return first, false
	}
	at := int64(first.pageSize)
	second, wrong := r.metaAt(at)
	if wrong == nil && int64(second.pageSize) != at {
		wrong = fmt.Errorf("it says that pages have %d bytes, and is at byte %d", second.pageSize, at)
	}
	switch {
	case wrong != nil:
		return r.alone(first, 1, at, wrong), true
	case second.commit > first.commit:
		return second, true
	}
	return first, true
}

// alone returns the newest known meta page if only one of the two, right, is undamaged. The
// damaged page has the number page and the offset at, and wrong is the error about it. It was
// written by the transaction before or after the transaction that wrote right; its transaction
// number says by which. If only this number is damaged, the page can be repaired: alone tries
// both numbers, and the correct number makes the checksum right.
func (r *reader) alone(right meta, page int, at int64, wrong error) meta {
	data := make([]byte, headerBytes+metaBytes)
	if _, err := r.f.ReadAt(data, at); err != nil {
		r.wrong("page %d: %w: %w", page, wrong, ErrBehind)
		return right
	}
	number := data[headerBytes+48:]
	found := order.Uint64(number)
	for _, commit := range []uint64{right.commit + 1, right.commit - 1} {
		order.PutUint64(number, commit)
		if m, err := parseMeta(data); err == nil && m.pageSize == right.pageSize {
			r.wrong("page %d: %w, and right with the number %d of its change: nothing of it is lost", page, wrong, commit)
			if commit > right.commit {
				return m
			}
			return right
		}
	}
	if found == right.commit-1 {
		r.wrong("page %d: %w; it is the older of two, and nothing of it is lost", page, wrong)
	} else {
		r.wrong("page %d: %w: %w", page, wrong, ErrBehind)
	}
	return right
}

func (r *reader) metaAt(at int64) (m meta, err error) {
	page := make([]byte, headerBytes+metaBytes)
	if _, err := r.f.ReadAt(page, at); err != nil {
		return m, fmt.Errorf("it cannot be read: %w", err)
	}
	return parseMeta(page)
}

func parseMeta(page []byte) (m meta, err error) {
	data := page[headerBytes:]
	sum := fnv.New64a()
	sum.Write(data[:metaBytes-8])
	switch {
	case order.Uint16(page[8:]) != metaPage:
		return m, errors.New("it is of another kind")
	case order.Uint32(data) != magic:
		return m, errors.New("it does not belong to a bbolt database")
	case order.Uint32(data[4:]) != version:
		return m, fmt.Errorf("it is of version %d", order.Uint32(data[4:]))
	case order.Uint64(data[metaBytes-8:]) != sum.Sum64():
		return m, errors.New("its checksum is wrong")
	}
	m = meta{pageSize: order.Uint32(data[8:]), root: order.Uint64(data[16:]), freelist: order.Uint64(data[32:]), high: order.Uint64(data[40:]), commit: order.Uint64(data[48:])}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return m, fmt.Errorf("pages of %d bytes cannot be", m.pageSize)
	}
	return m, nil
}

// page reads page id with its continuation pages, and returns their bytes and the page's kind.
func (r *reader) page(id uint64) (data []byte, kind uint16, ok bool) {
	head := make([]byte, headerBytes)
	if id < 2 || id >= r.high || int64(id) >= r.size/r.pageSize {
		r.wrong("page %d is not in the file", id)
		return nil, 0, false
	}
	if _, err := r.f.ReadAt(head, int64(id)*r.pageSize); err != nil {
		r.wrong("page %d: %w", id, err)
		return nil, 0, false
	}
	more := uint64(order.Uint32(head[12:]))
	if got := order.Uint64(head); got != id || id+more >= r.high || int64(id+more) >= r.size/r.pageSize {
		r.wrong("page %d says that it is page %d, with %d more", id, got, more)
		return nil, 0, false
	}
	for n := id; n <= id+more; n++ {
		if r.seen[n] {
			r.wrong("page %d is used twice", n)
			return nil, 0, false
		}
		r.seen[n] = true
	}
	data = make([]byte, int64(more+1)*r.pageSize)
	if _, err := r.f.ReadAt(data, int64(id)*r.pageSize); err != nil {
		r.wrong("page %d: %w", id, err)
		return nil, 0, false
	}
	return data, order.Uint16(head[8:]), true
}

// part returns the n bytes of data that begin at index from, or nil if data is too short.
func part(data []byte, from, n uint64) []byte {
	if from > uint64(len(data)) || n > uint64(len(data))-from {
		return nil
	}
	return data[from : from+n : from+n]
}

// walk visits the subtree below page id. If bucket is nil, the subtree belongs to the tree of
// all buckets, and otherwise to the tree of this bucket. Keys must be at least low and below
// high; a bound that is nil does not apply.
func (r *reader) walk(id uint64, bucket, low, high []byte) {
	data, kind, ok := r.page(id)
	switch {
	case !ok:
	case kind == leafPage:
		r.leaf(id, data, bucket, low, high)
	case kind == branchPage:
		r.branch(id, data, bucket, low, high)
	default:
		r.wrong("page %d is of kind %#x, not of a tree", id, kind)
	}
}

func (r *reader) branch(id uint64, data, bucket, low, high []byte) {
	type child struct {
		key []byte
		id  uint64
	}
	var children []child
	n := int(order.Uint16(data[10:]))
	if n == 0 {
		r.wrong("page %d is a branch of nothing", id)
	}
	for i := range n {
		at := uint64(headerBytes + i*elementBytes)
		e := part(data, at, elementBytes)
		if e == nil {
			r.wrong("page %d has %d elements, more than it has room for", id, n)
			break
		}
		key := part(data, at+uint64(order.Uint32(e)), uint64(order.Uint32(e[4:])))
		if key == nil || !within(key, low, high) || i > 0 && len(children) > 0 && bytes.Compare(children[len(children)-1].key, key) >= 0 {
			r.wrong("page %d: element %d is not in order", id, i)
			continue
		}
		children = append(children, child{key, order.Uint64(e[8:])})
	}
	for i, c := range children {
		end := high
		if i+1 < len(children) {
			end = children[i+1].key
		}
		r.walk(c.id, bucket, c.key, end)
	}
}

func within(key, low, high []byte) bool {
	return (low == nil || bytes.Compare(low, key) <= 0) && (high == nil || bytes.Compare(key, high) < 0)
}

func (r *reader) leaf(id uint64, data, bucket, low, high []byte) {
	var before []byte
	n := int(order.Uint16(data[10:]))
	for i := range n {
		at := uint64(headerBytes + i*elementBytes)
		e := part(data, at, elementBytes)
		if e == nil {
			r.wrong("page %d has %d elements, more than it has room for", id, n)
			return
		}
		from, keyBytes := at+uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[8:]))
		key, value := part(data, from, keyBytes), part(data, from+keyBytes, uint64(order.Uint32(e[12:])))
		isBucket := order.Uint32(e) == bucketFlag
		if key == nil || value == nil || len(key) == 0 || !within(key, low, high) || before != nil && bytes.Compare(before, key) >= 0 ||
			order.Uint32(e) > bucketFlag || isBucket != (bucket == nil) {
			r.wrong("page %d: element %d is not what it should be", id, i)
			continue
		}
		before = key
		if isBucket {
			r.bucket(id, key, value)
		} else {
			r.visit(bucket, key, value)
		}
	}
}

// bucket visits the values of the bucket called name. A bucket has its own tree or, if it is small,
// a leaf inside value.
func (r *reader) bucket(id uint64, name, value []byte) {
	if len(value) < headerBytes {
		r.wrong("page %d: bucket %q is cut short", id, name)
		return
	}
	if root := order.Uint64(value); root != 0 {
		r.walk(root, name, nil, nil)
		return
	}
	inside := value[headerBytes:]
	if len(inside) < headerBytes || order.Uint16(inside[8:]) != leafPage {
		r.wrong("page %d: bucket %q has no leaf", id, name)
		return
	}
	r.leaf(id, inside, name, nil, nil)
}

// freelist checks page id, which has the list of free pages. If the list contained a page in
// use, the database would overwrite that page.
func (r *reader) freelist(id uint64) {
	if id == noFreelist {
		return
	}
	data, kind, ok := r.page(id)
	if !ok {
		return
	}
	if kind != freelistPage {
		r.wrong("page %d is of kind %#x, not the list of free pages", id, kind)
		return
	}
	n, at := uint64(order.Uint16(data[10:])), uint64(headerBytes)
	if n == 0xFFFF {
		n, at = order.Uint64(data[headerBytes:]), at+8
	}
	list := []byte(nil)
	if n <= r.high {
		list = part(data, at, 8*n)
	}
	if list == nil && n > 0 {
		r.wrong("page %d lists %d free pages, more than it has room for", id, n)
		return
	}
	last := uint64(1)
	for i := uint64(0); i < n; i++ {
		free := order.Uint64(list[8*i:])
		if free <= last || free >= r.high || r.seen[free] {
			r.wrong("page %d lists page %d as free, which it is not", id, free)
			return
		}
		last = free
	}
}
