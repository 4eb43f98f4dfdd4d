package checkpoint

import (
	"context"
	"fmt"
	"iter"

	"github.com/klauspost/compress/zstd"
)

// window is an upper bound of the memory in bytes that a decoder needs beside the piece.
const window = 8 << 20

// State is the state of a queue to be stored, or those pieces of it that this process has.
type State struct {
	Queue     string
	Superstep int
	Ended     bool
	// Pieces yields encoded pieces of the state, each valid until the next is yielded.
	Pieces iter.Seq2[[]byte, error]
	// First is the number of the first piece that Pieces yields, and Of the number of all pieces
	// of the state. If Of is 0, Pieces yields the whole state.
	First, Of int
}

// pieceWriter writes the pieces of states.
type pieceWriter struct {
	store      Store
	generation int
	key        string // content of the mark of the run; "" if it has none
	encoder    *zstd.Encoder
}

func newPieceWriter(store Store, generation int) (pieceWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return pieceWriter{store: store, generation: generation, encoder: encoder}, err
}

// put stores the pieces of a state that are here, and describes them.
func (w *pieceWriter) put(ctx context.Context, s State) (blobs []Blob, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write a checkpoint of queue %q after superstep %d to %s: %w", s.Queue, s.Superstep, w.store, err)
		}
	}()
	var data []byte
	for piece, err := range s.Pieces {
		if err != nil {
			return nil, err
		}
		name := w.name(stateKind, s, s.First+len(blobs))
		data = w.encoder.EncodeAll(piece, data[:0])
		if err := w.store.Put(ctx, name, data); err != nil {
			return nil, err
		}
		blobs = append(blobs, Blob{Name: name, Size: int64(len(data)), Bytes: int64(len(piece)), Sum: checksum(data)})
	}
	return blobs, nil
}

// discard removes blobs that no manifest names, as far as that is possible. It leaves them if another attempt
// has a mark of the same number, which may have written blobs of the same names.
func (w *pieceWriter) discard(ctx context.Context, blobs []Blob) {
	if there, err := w.store.Get(ctx, markName(w.generation), maxMark); w.key != "" && err == nil && string(there) != w.key {
		return
	}
	for _, b := range blobs {
		_ = w.store.Delete(ctx, b.Name)
	}
}

// name returns the name of a blob of a state.
func (w *pieceWriter) name(k kind, s State, index int) string {
	return blobName{kind: k, number: w.generation, queue: queueHash(s.Queue), superstep: s.Superstep, index: index}.String()
}

// Needed reports whether a process needs a piece of the state of a queue to continue from it. pieces
// is the number of the state's pieces.
type Needed func(queue string, piece, pieces int) bool

// readQueue reads and verifies the pieces of a queue's state, and returns those that are needed.
// The others are nil. If unneeded is false, they are not read. needed may be nil if all are.
func readQueue(ctx context.Context, store Store, q Queue, needed Needed, unneeded bool) (pieces [][]byte, err error) {
	pieces = make([][]byte, len(q.Blobs))
	for i, b := range q.Blobs {
		keep := needed == nil || needed(q.Name, i, len(q.Blobs))
		if !keep && !unneeded {
			continue
		}
		piece, err := readBlob(ctx, store, b)
		if err != nil {
			return nil, fmt.Errorf("queue %q, superstep %d: %s: %w", q.Name, q.Superstep, b.Name, err)
		}
		if keep {
			pieces[i] = piece
		}
	}
	return pieces, nil
}

// readBlob reads and verifies one piece.
func readBlob(ctx context.Context, store Store, b Blob) ([]byte, error) {
	data, err := get(ctx, store, b.Name, b.Size)
	if err != nil {
		return nil, err
	}
	if err := b.verify(data); err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(b.Bytes)+window))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	piece, err := decoder.DecodeAll(data, nil)
	if err == nil && int64(len(piece)) != b.Bytes {
		err = fmt.Errorf("%d bytes", len(piece))
	}
	if err != nil {
		return nil, fmt.Errorf("it does not decode to the %d bytes that were written: %w", b.Bytes, err)
	}
	if piece == nil {
		piece = []byte{} // nil means that a piece is not needed
	}
	return piece, nil
}

// verify returns an error if data is not what was written as the blob.
func (b *Blob) verify(data []byte) error {
	if int64(len(data)) != b.Size {
		return fmt.Errorf("it is damaged: it has %d bytes, and was written with %d", len(data), b.Size)
	}
	if got := checksum(data); got != b.Sum {
		return fmt.Errorf("it is damaged: its checksum is %s, and was %s", got, b.Sum)
	}
	return nil
}
